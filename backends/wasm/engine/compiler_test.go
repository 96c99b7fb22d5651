package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// having is a module whose _start has these locals and this body, and one page of
// memory.
func having(locals, body []byte) []byte {
	code := slices.Concat(locals, body, []byte{0x0b})
	function := append(binary.AppendUvarint([]byte{1}, uint64(len(code))), code...)
	return slices.Concat(command()[:8+6+4+5+21], binary.AppendUvarint([]byte{0x0a}, uint64(len(function))), function)
}

// branching is a valid module whose compiling takes minutes: a table of a million
// branches to one place.
func branching() []byte {
	const n = 1 << 20
	body := binary.AppendUvarint([]byte{0x41, 0, 0x0e}, n)
	return having([]byte{0}, append(body, make([]byte, n+1)...))
}

func asking(t *testing.T, cache string, module []byte) compilation {
	t.Helper()
	r := asked(t, module)
	return compilation{Path: r.Path, SHA256: r.SHA256, CacheDir: cache}
}

// TestSlowCompilers: modules that are not soon compiled do not keep the others waiting,
// however many they are, and end with the engine.
func TestSlowCompilers(t *testing.T) {
	life, end := context.WithCancel(t.Context())
	cs := newCompilers(life, time.Hour)
	cs.soon = 100 * time.Millisecond
	fine := *cs
	fine.soon = time.Hour // however busy the machine is
	cache := filepath.Join(t.TempDir(), "cache")
	const bombs = maxCompiling + maxSlow + 1
	ended := make(chan error, bombs)
	for range bombs {
		c := asking(t, cache, branching())
		go func() { ended <- cs.compile(c) }()
	}
	if err := fine.compile(asking(t, cache, command())); err != nil {
		t.Error(err)
	}
	select {
	case err := <-ended:
		t.Errorf("one that takes minutes has ended: %v", err)
	default:
	}
	end()
	for range bombs {
		if err := <-ended; err == nil {
			t.Error("it was compiled")
		}
	}
}

// TestCompileTime: one that takes too long is ended where it is.
func TestCompileTime(t *testing.T) {
	cs := newCompilers(t.Context(), 200*time.Millisecond)
	cs.soon = 100 * time.Millisecond
	if err := cs.compile(asking(t, filepath.Join(t.TempDir(), "cache"), branching())); !errors.Is(err, errTooLong) || errors.Is(err, errStuck) {
		t.Error(err)
	}
	if len(cs.quick)+len(cs.slow) > 0 {
		t.Error("it keeps its place")
	}
}

// TestCompilersAlone: whoever waits for a compiler may be killed.
func TestCompilersAlone(t *testing.T) {
	p, err := startCompiler(t.Context(), asking(t, filepath.Join(t.TempDir(), "cache"), branching()))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.input.Close(); err != nil {
		t.Fatal(err)
	}
	<-p.ended
	if p.err == nil {
		t.Error("it has an answer")
	}
}

// TestLongNames: a module's own names may be of any length, and why it is refused is told
// all the same.
func TestLongNames(t *testing.T) {
	name := strings.Repeat("n", 2*maxSaid)
	imported := slices.Concat([]byte{1, 1, 'x'}, binary.AppendUvarint(nil, uint64(len(name))), []byte(name), []byte{0, 0})
	types := []byte("\x01\x04\x01\x60\x00\x00")
	module := slices.Concat(command()[:8], types, binary.AppendUvarint([]byte{2}, uint64(len(imported))), imported, command()[8+len(types):])
	err := newCompilers(t.Context(), 0).compile(asking(t, filepath.Join(t.TempDir(), "cache"), module))
	if tool.KindOf(err) != tool.Unsupported || len(err.Error()) > 2*maxDetail {
		t.Errorf("%.200v (%s)", err, tool.KindOf(err))
	}
}

// TestSaid keeps the beginning, and takes all.
func TestSaid(t *testing.T) {
	s := &Said{Max: 5}
	for _, text := range []string{" ab", "cdef", "gh"} {
		if n, err := s.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%q: %d bytes are taken (%v)", text, n, err)
		}
	}
	if got := s.String(); got != "abcd" {
		t.Errorf("%q is kept", got)
	}
}
