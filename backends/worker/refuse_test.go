//go:build linux

package worker_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// Who finds all places taken is told so, and who does not ask is hung up on. A place
// that is free again is given.
func TestTooManyConnections(t *testing.T) {
	t.Parallel() // it waits more than it works
	o := options(t)
	start(t, o)
	root := t.TempDir()
	var held []net.Conn
	for range 32 {
		held = append(held, dial(t, o.Listen))
	}
	defer func() {
		for _, c := range held {
			c.Close()
		}
	}()
	_, err := client(t, o.Listen).Initialize(t.Context(), binding(root))
	wantKind(t, "one too many", err, tool.Overloaded, "it has 32")
	if e, ok := errors.AsType[*tool.Error](err); !ok || !e.Retryable || e.Hint == "" {
		t.Errorf("%+v", err)
	}
	// However long its request is: it is the host.
	large := binding(root)
	large.Environment = map[string]string{"LARGE": strings.Repeat("x", 100<<10)}
	_, err = client(t, o.Listen).Initialize(t.Context(), large)
	wantKind(t, "one too many with large variables", err, tool.Overloaded, "it has 32")
	silent := dial(t, o.Listen)
	if err := silent.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if said, err := io.ReadAll(silent); len(said) > 0 || err != nil {
		t.Errorf("who asks for nothing is told %q, %v", said, err)
	}
	silent.Close()
	held[0].Close()
	held = held[1:]
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if _, err = client(t, o.Listen).Initialize(t.Context(), binding(root)); err == nil {
			break
		}
		if tool.KindOf(err) != tool.Overloaded && !strings.Contains(err.Error(), "EOF") || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
