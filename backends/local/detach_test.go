//go:build linux

package local

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/caisson-dev/caisson/backends/tool"
)

// A call that does not end, such as one in a file system that does not answer, is not
// waited for longer than the context lets; the folder is closed when it has ended.
func TestDetachClosesAtLast(t *testing.T) {
	at := binding(t)
	synctest.Test(t, func(t *testing.T) {
		env, err := New(Options{}).Open(t.Context(), at, nil)
		if err != nil {
			t.Fatal(err)
		}
		e := env.(*environment)
		_, done, err := e.begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if err := e.Detach(over); tool.KindOf(err) != tool.Internal {
			t.Errorf("detached: %v", err)
		}
		if _, err := e.root.Info(); err != nil {
			t.Errorf("the folder is closed under the call: %v", err)
		}
		done()
		synctest.Wait()
		if _, err := e.root.Info(); err == nil {
			t.Error("the folder is still open")
		}
	})
}
