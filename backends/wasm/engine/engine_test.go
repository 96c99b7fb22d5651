package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"math"
	mathrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// The test binary is also what compiles.
func TestMain(m *testing.M) {
	if handled, code := Main(os.Args[1:]); handled {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}

// command is a module whose _start has the body given, and one page of memory.
func command(body ...byte) []byte {
	m := []byte("\x00asm\x01\x00\x00\x00" +
		"\x01\x04\x01\x60\x00\x00" + "\x03\x02\x01\x00" + "\x05\x03\x01\x00\x01" +
		"\x07\x13\x02\x06memory\x02\x00\x06_start\x00\x00")
	n := byte(len(body) + 2)
	m = append(m, 0x0a, n+2, 1, n, 0)
	return append(append(m, body...), 0x0b)
}

// started is an engine in this process, and the service's end of its connection.
func started(t *testing.T, o Setup) *wire.Client {
	t.Helper()
	here, there := net.Pipe()
	s := newServer()
	done := make(chan error, 1)
	go func() {
		err := wire.Serve(context.Background(), there, s, wire.ServerOptions{MaxRequests: maxRequests})
		done <- errors.Join(err, s.close(context.Background()))
	}()
	c := wire.NewClient(here, wire.ClientOptions{})
	t.Cleanup(func() {
		if err := errors.Join(c.Close(), <-done); err != nil {
			t.Error(err)
		}
	})
	if _, err := c.Initialize(t.Context(), wire.Initialize{Root: t.TempDir(), Session: "s"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Call(t.Context(), MethodRun, Run{Args: []string{"x"}}, nil); tool.KindOf(err) != tool.InvalidParams {
		t.Errorf("a run before the setup: %v", err)
	}
	if _, err := c.Call(t.Context(), MethodSetup, o, nil); err != nil {
		t.Fatal(err)
	}
	return c
}

// asked is a run of the module.
func asked(t *testing.T, module []byte) Run {
	t.Helper()
	path := filepath.Join(t.TempDir(), "module.wasm")
	if err := os.WriteFile(path, module, 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(module)
	return Run{
		Path: path, SHA256: hex.EncodeToString(sum[:]), Args: []string{"module"},
		Fuel: 1 << 40, MemoryPages: 16, MaxOutput: 1000, Deterministic: true,
	}
}

func ran(t *testing.T, c *wire.Client, r Run) Outcome {
	t.Helper()
	reply, err := c.Call(t.Context(), MethodRun, r, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out Outcome
	if err := reply.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestServer(t *testing.T) {
	c := started(t, Setup{CacheDir: filepath.Join(t.TempDir(), "cache"), MemoryPages: 16})
	fine, endless := asked(t, command()), asked(t, command(0x03, 0x40, 0x0c, 0x00, 0x0b))
	if out := ran(t, c, fine); out.Ending != Exited || out.FuelRemaining != fine.Fuel {
		t.Errorf("%+v", out)
	}
	endless.Fuel = 12345
	if out := ran(t, c, endless); out.Ending != OutOfFuel || out.FuelRemaining > 1 {
		t.Errorf("%+v", out)
	}
	endless.Fuel, endless.Timeout = math.MaxInt64, int64(50*time.Millisecond)
	if out := ran(t, c, endless); out.Ending != OutOfTime || time.Duration(out.Duration) < 50*time.Millisecond {
		t.Errorf("%+v", out)
	}
	endless.Timeout = 0
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Call(ctx, MethodRun, endless, nil); tool.KindOf(err) != tool.Timeout {
		t.Errorf("a cancelled run: %v", err)
	}
	for name, change := range map[string]func(*Run){
		"no name":      func(r *Run) { r.Args = nil },
		"much memory":  func(r *Run) { r.MemoryPages = 1 << 17 },
		"no directory": func(r *Run) { r.Mounts = []Mount{{Host: "/none", Guest: "/x"}} },
		"another directory": func(r *Run) {
			r.Mounts = []Mount{{Host: t.TempDir(), Guest: "/x", File: "1:1"}}
		},
		"leads out": func(r *Run) { r.Mounts = []Mount{{Host: t.TempDir(), Below: "..", Guest: "/x"}} },
	} {
		r := fine
		change(&r)
		if _, err := c.Call(t.Context(), MethodRun, r, nil); err == nil {
			t.Errorf("%s: it ran", name)
		}
	}
	if _, err := c.Call(t.Context(), MethodSetup, Setup{}, nil); tool.KindOf(err) != tool.InvalidParams {
		t.Errorf("a second setup: %v", err)
	}
	if _, err := c.Call(t.Context(), "wasm/none", Setup{}, nil); tool.KindOf(err) != tool.Unsupported {
		t.Errorf("an unknown method: %v", err)
	}
}

// TestEviction compiles more modules than are kept.
func TestEviction(t *testing.T) {
	c := started(t, Setup{MemoryPages: 16})
	for i := range maxCompiled + 3 {
		body := bytes.Repeat([]byte{0x01}, i) // nop
		r := asked(t, command(body...))
		for range 2 {
			if out := ran(t, c, r); out.Ending != Exited || out.FuelRemaining != r.Fuel-uint64(i) {
				t.Fatalf("%d: %+v", i, out)
			}
		}
	}
}

// TestEvictionWaits: what is being compiled makes no room, though nobody waits for it
// any more.
func TestEvictionWaits(t *testing.T) {
	ms := &modules{all: map[string]*module{}}
	for i := range maxCompiled {
		ms.all[strings.Repeat("x", i)] = &module{done: make(chan struct{})}
	}
	if ms.evict(t.Context()); len(ms.all) != maxCompiled {
		t.Errorf("%d of %d are left", len(ms.all), maxCompiled)
	}
}

// TestRandomEnds: random numbers are the same in whatever pieces they are made, and
// end with whoever asked.
func TestRandomEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	whole, pieces := make([]byte, 3*randomPiece), make([]byte, 3*randomPiece)
	_, _ = mathrand.NewChaCha8(seed).Read(whole)
	from := random(&guest{ctx: ctx}, true)
	if _, err := io.ReadFull(from, pieces); err != nil || !bytes.Equal(whole, pieces) {
		t.Errorf("they are others in pieces, or end: %v", err)
	}
	cancel()
	if _, err := io.ReadFull(from, pieces); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits for them, and they go on: %v", err)
	}
}

// TestDamagedCache: what is kept and damaged is made again.
func TestDamagedCache(t *testing.T) {
	r := asked(t, command(0x01))
	setup := Setup{CacheDir: filepath.Join(t.TempDir(), "cache"), MemoryPages: 16}
	for name, damage := range map[string]func([]byte) []byte{
		"cut":     func(b []byte) []byte { return b[:len(b)/2] },
		"garbled": func(b []byte) []byte { b[len(b)/2] ^= 0xff; return b },
		"empty":   func([]byte) []byte { return nil },
	} {
		for _, what := range []string{".wasm", ""} {
			if out := ran(t, started(t, setup), r); out.Ending != Exited {
				t.Fatalf("%+v", out)
			}
			damaged := 0
			err := filepath.WalkDir(setup.CacheDir, func(file string, d os.DirEntry, err error) error {
				if err != nil || d.IsDir() || filepath.Ext(file) != what {
					return err
				}
				b, err := os.ReadFile(file)
				if err != nil {
					return err
				}
				damaged++
				return os.WriteFile(file, damage(b), 0o600)
			})
			if err != nil || damaged == 0 {
				t.Fatalf("%d files were damaged: %v", damaged, err)
			}
			if out := ran(t, started(t, setup), r); out.Ending != Exited || out.FuelRemaining != r.Fuel-1 {
				t.Errorf("%s%s: %+v", name, what, out)
			}
		}
	}
}

func TestFixedClock(t *testing.T) {
	c := &fixedClock{}
	sec, nsec := c.walltime()
	if sec*int64(time.Second)+int64(nsec) != Epoch+tick {
		t.Errorf("it begins at %d.%09d", sec, nsec)
	}
	before := c.nanotime()
	c.nanosleep(int64(time.Hour))
	if after := c.nanotime(); after != before+int64(time.Hour)+tick {
		t.Errorf("an hour took %d ns", after-before)
	}
	for _, ns := range []int64{-1, math.MaxInt64, math.MaxInt64, math.MinInt64} {
		before := c.nanotime()
		c.nanosleep(ns)
		if sec, _ := c.walltime(); c.nanotime() < before || sec < Epoch/int64(time.Second) {
			t.Errorf("after sleeping for %d ns it is %d", ns, sec)
		}
	}
}

func TestRealClock(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := &realClock{&guest{ctx: ctx, began: time.Now()}}
	if sec, _ := c.walltime(); time.Since(time.Unix(sec, 0)) > time.Minute {
		t.Errorf("it is %d", sec)
	}
	cancel()
	c.nanosleep(int64(time.Hour)) // ends with its guest
	if ns := c.nanotime(); ns <= 0 || ns > int64(time.Minute) {
		t.Errorf("it took %d", ns)
	}
}

func TestOutput(t *testing.T) {
	write := func(s *stream, text string) {
		t.Helper()
		if n, err := s.Write([]byte(text)); n != len(text) || err != nil {
			t.Fatal(n, err)
		}
	}
	for _, tt := range []struct {
		name      string
		limit     int64
		out, errs []string
		wantOut   string
		wantErrs  string
		truncated bool
	}{
		{"fits", 6, []string{"abc"}, []string{"def"}, "abc", "def", false},
		{"the middle", 40, []string{strings.Repeat("a", 30), strings.Repeat("b", 30)}, nil,
			strings.Repeat("a", 9) + "\n[41 bytes left out]\n" + strings.Repeat("b", 10), "", true},
		{"much", 40, []string{strings.Repeat("a", 300), strings.Repeat("c", 3000), strings.Repeat("b", 30)}, nil,
			strings.Repeat("a", 8) + "\n[3313 bytes left out]\n" + strings.Repeat("b", 9), "", true},
		{"a short one comes whole", 40, []string{strings.Repeat("a", 100)}, []string{"short"},
			strings.Repeat("a", 6) + "\n[87 bytes left out]\n" + strings.Repeat("a", 7), "short", true},
		{"characters", 40, []string{"a" + strings.Repeat("é", 30)}, nil,
			"a" + strings.Repeat("é", 4) + "\n[42 bytes left out]\n" + strings.Repeat("é", 5), "", true},
		{"no room", 4, []string{"abcdefgh"}, nil, "abcd", "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newOutput(tt.limit, true)
			for _, text := range tt.out {
				write(&o.out, text)
			}
			for _, text := range tt.errs {
				write(&o.errs, text)
			}
			out, errs, truncated := o.finish()
			if string(out) != tt.wantOut || string(errs) != tt.wantErrs || truncated != tt.truncated {
				t.Errorf("%q, %q, %v", out, errs, truncated)
			}
			if int64(len(out)+len(errs)) > tt.limit {
				t.Errorf("%d bytes came back of at most %d", len(out)+len(errs), tt.limit)
			}
		})
	}
	o := newOutput(3, false)
	write(&o.out, "abc")
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, errOutput) {
			t.Errorf("more than it may: %v", err)
		}
		if out, _, _ := o.finish(); string(out) != "abc" {
			t.Errorf("what it wrote is %q", out)
		}
	}()
	_, _ = o.out.Write([]byte("x"))
}

func TestMemory(t *testing.T) {
	m := &memory{limit: 3 * PageSize}
	l := m.Allocate(PageSize, 10*PageSize)
	if b := l.Reallocate(PageSize); len(b) != PageSize {
		t.Fatal(len(b))
	}
	b := l.Reallocate(3 * PageSize)
	b[len(b)-1] = 1
	if m.refused || l.Reallocate(4*PageSize) != nil || !m.refused {
		t.Error("more than the limit was given")
	}
	l.Free()
	l.Free()
}

// TestDirectoryCost: all entries of a directory are read for a guest that asks for
// one, and it pays for all, each time.
func TestDirectoryCost(t *testing.T) {
	list := []byte{0x41, 3, 0x41, 0, 0x41, 24, 0x42, 0, 0x41, 32, 0x10, 0, 0x1a} // fd_readdir(3, 0, 24, 0, 32)
	body := append([]byte{0}, append(bytes.Repeat(list, 3), 0x0b)...)
	module := []byte("\x00asm\x01\x00\x00\x00" +
		"\x01\x0d\x02\x60\x00\x00\x60\x05\x7f\x7f\x7f\x7e\x7f\x01\x7f" +
		"\x02\x25\x01\x16wasi_snapshot_preview1\x0afd_readdir\x00\x01" +
		"\x03\x02\x01\x00" + "\x05\x03\x01\x00\x01" + "\x07\x13\x02\x06memory\x02\x00\x06_start\x00\x01")
	module = append(module, 0x0a, byte(len(body)+2), 1, byte(len(body)))
	r := asked(t, append(module, body...))
	c := started(t, Setup{MemoryPages: 16})
	spent := func(entries int) uint64 {
		dir := t.TempDir()
		for i := range entries {
			if err := os.WriteFile(filepath.Join(dir, strings.Repeat("x", i+1)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r.Mounts = []Mount{{Host: dir, Guest: "/"}}
		out := ran(t, c, r)
		if out.Ending != Exited {
			t.Fatalf("%+v", out)
		}
		return r.Fuel - out.FuelRemaining
	}
	if none, ten := spent(0), spent(10); ten-none != 3*10*costEntry {
		t.Errorf("ten entries, read three times, cost %d", ten-none)
	}
}

// TestDeepCost: what lies deep is found by its whole path, also in a directory that the
// guest has open, and it pays for that each time.
func TestDeepCost(t *testing.T) {
	const times = 3
	c := started(t, Setup{MemoryPages: 16})
	spent := func(name string) uint64 {
		section := func(id byte, body string) string {
			return string(binary.AppendUvarint([]byte{id}, uint64(len(body)))) + body
		}
		open := "\x41\x03\x41\x00\x41\x00\x41" + string(rune(len(name))) + // path_open(3, 0, 0, len(name),
			"\x41\x02\x42\x7f\x42\x7f\x41\x00\x41\x3c\x10\x00\x1a" // O_DIRECTORY, -1, -1, 0, 60)
		stat := "\x41\x3c\x28\x02\x00\x41\x00\x41\x00\x41\x01\x41\xc0\x00\x10\x01" + // path_filestat_get(*60, 0, 0, 1, 64)
			"\x04\x40\x00\x0b" // or a trap
		body := "\x00" + open + strings.Repeat(stat, times) + "\x0b"
		wasi := "\x16wasi_snapshot_preview1"
		r := asked(t, []byte("\x00asm\x01\x00\x00\x00"+
			section(1, "\x03\x60\x00\x00\x60\x09\x7f\x7f\x7f\x7f\x7f\x7e\x7e\x7f\x7f\x01\x7f\x60\x05\x7f\x7f\x7f\x7f\x7f\x01\x7f")+
			section(2, "\x02"+wasi+"\x09path_open\x00\x01"+wasi+"\x11path_filestat_get\x00\x02")+
			section(3, "\x01\x00")+section(5, "\x01\x00\x01")+section(7, "\x02\x06memory\x02\x00\x06_start\x00\x02")+
			section(10, "\x01"+string(binary.AppendUvarint(nil, uint64(len(body))))+body)+
			section(11, "\x01\x00\x41\x00\x0b"+string(rune(len(name)))+name)))
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, name, name[:1]), 0o700); err != nil {
			t.Fatal(err)
		}
		r.Mounts = []Mount{{Host: dir, Guest: "/"}}
		out := ran(t, c, r)
		if out.Ending != Exited {
			t.Fatalf("%+v", out)
		}
		return r.Fuel - out.FuelRemaining
	}
	if near, far := spent("d"), spent("d/d/d/d/d/d/d/d/d/d/d"); far-near != 20*costPathByte*(1+times) {
		t.Errorf("20 bytes more, walked %d times, cost %d", 1+times, far-near)
	}
}

func TestCosts(t *testing.T) {
	g := &guest{arguments: 1600, variables: 3200}
	for name, want := range map[string]uint64{
		"random_get": costCall + 100, "fd_readdir": costFile + 100, "clock_time_get": costCall, "fd_sync": costFile,
		"poll_oneoff": costCall + 4800/8, "args_get": costCall + 200, "environ_get": costCall + 400,
		"path_open": costFile + 8*costPathByte, "path_filestat_get": costFile + 8*costPathByte,
		"path_filestat_set_times": costFile + 8*costPathByte, "path_link": costFile + (8+40)*costPathByte,
		"path_readlink": costFile + 900*costPathByte, "path_rename": costFile + 830*costPathByte,
		"path_symlink": costFile + 900*costPathByte, "path_unlink_file": costFile + 800*costPathByte,
		"path_create_directory": costFile + 800*costPathByte, "path_remove_directory": costFile + 800*costPathByte,
		"fd_prestat_dir_name": costFile + 800*costPathByte,
	} {
		params := []uint64{0, 800, 800, 8, 100, 30, 40}
		if name == "poll_oneoff" {
			params[2] = 100
		}
		if got := costOf(name).of(g, sized(8000), params); got != want {
			t.Errorf("%s costs %d, not %d", name, got, want)
		}
	}
	// What a guest asks for beyond its memory costs no more than its memory, and all
	// of 4 GiB is what it is.
	for size, want := range map[uint32]uint64{8000: costCall + 1000, 0: costCall + 1<<29 - 1} {
		if got := costOf("random_get").of(g, sized(size), []uint64{0, math.MaxUint32}); got != want {
			t.Errorf("of %d bytes it costs %d, not %d", size, got, want)
		}
	}
	// Each buffer of a list costs, also an empty one, and no more than there may be.
	for n, want := range map[uint64]uint64{0: costCall, 100: 101 * costCall, math.MaxUint32: 1001 * costCall} {
		if got := costOf("fd_write").of(g, sized(8000), []uint64{1, 0, n}); got != want {
			t.Errorf("%d buffers cost %d, not %d", n, got, want)
		}
	}
}
