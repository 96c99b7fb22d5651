package wasm

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/caisson-dev/caisson/backends"
)

// Instructions of the modules that tests make by hand.
const (
	opUnreachable = 0x00
	opLoop        = 0x03
	opIf          = 0x04
	opEnd         = 0x0b
	opBr          = 0x0c
	opCall        = 0x10
	opDrop        = 0x1a
	opMemorySize  = 0x3f
	opMemoryGrow  = 0x40
	opConst       = 0x41
	opEqual       = 0x46
	noResult      = 0x40
)

// handmade is a command whose _start has the body given, without the final end.
// Function 0 is proc_exit, function 1 is _start itself. It has pages of memory,
// less than 128.
func handmade(pages byte, body ...byte) []byte {
	section := func(id byte, content ...byte) []byte { return append([]byte{id, byte(len(content))}, content...) }
	name := func(s string) []byte { return append([]byte{byte(len(s))}, s...) }
	join := func(parts ...[]byte) (all []byte) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	code := append([]byte{0}, append(body, opEnd)...)
	return join(
		[]byte("\x00asm\x01\x00\x00\x00"),
		section(1, 2, 0x60, 1, 0x7f, 0, 0x60, 0, 0), // (i32) and ()
		section(2, join([]byte{1}, name("wasi_snapshot_preview1"), name("proc_exit"), []byte{0, 0})...),
		section(3, 1, 1),
		section(5, 1, 0, pages),
		section(7, join([]byte{2}, name("memory"), []byte{2, 0}, name("_start"), []byte{0, 1})...),
		section(10, append([]byte{1, byte(len(code))}, code...)...),
	)
}

// tangled is a valid module of 7 KB that the engine's compiler takes half a minute
// for: five hundred loops in each other, and as many variables that are changed in
// them.
func tangled() []byte {
	const n = 500
	u := func(v int) []byte { return binary.AppendUvarint(nil, uint64(v)) }
	section := func(id byte, content ...byte) []byte {
		return append(append([]byte{id}, u(len(content))...), content...)
	}
	code := append(append([]byte{1}, u(n)...), 0x7f) // locals of the type i32
	code = append(code, bytes.Repeat([]byte{opLoop, noResult}, n)...)
	for i := range n {
		code = append(append(code, 0x20), u(i)...)                       // local.get
		code = append(append(code, opConst, 1, 0x6a, 0x22), u(i*7%n)...) // i32.add, local.tee
		code = append(append(code, 0x0d, 0 /* br_if */), opEnd)          // of this loop
	}
	code = append(code, opEnd)
	return slices.Concat(
		[]byte("\x00asm\x01\x00\x00\x00"), section(1, 1, 0x60, 0, 0), section(3, 1, 0), section(5, 1, 0, 1),
		section(7, []byte("\x02\x06memory\x02\x00\x06_start\x00\x00")...),
		section(10, append(append([]byte{1}, u(len(code))...), code...)...),
	)
}

// written is a request for one run of the module.
func written(t testing.TB, module []byte) backends.ModuleRequest {
	t.Helper()
	path := filepath.Join(t.TempDir(), "module.wasm")
	if err := os.WriteFile(path, module, 0o600); err != nil {
		t.Fatal(err)
	}
	return backends.ModuleRequest{ID: "call", Path: path, SHA256: sumOf(t, path)}
}

// endless is a loop without an end.
func endless() []byte { return handmade(1, opLoop, noResult, opBr, 0, opEnd) }

// greedy takes memory until it gets none, and then does what last says.
func greedy(last ...byte) []byte {
	body := []byte{
		opLoop, noResult,
		opConst, 1, opMemoryGrow, 0, opConst, 0x7f /* -1 */, opEqual,
		opIf, noResult,
	}
	body = append(body, last...)
	return handmade(1, append(body, opEnd, opBr, 0, opEnd)...)
}
