package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"
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
