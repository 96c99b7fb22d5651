//go:build linux

package local

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// Files that are read and written while the session is let go of are done with, or
// refused, but the folder is not closed under them.
func TestDetachWaitsForFiles(t *testing.T) {
	const writers = 8
	at := binding(t)
	env := open(t, at)
	files := env.(backends.FileSystem)
	var group sync.WaitGroup
	begun := make(chan struct{}, writers)
	for i := range writers {
		group.Go(func() {
			name := fmt.Sprintf("d%d/f", i)
			for n := 0; ; n++ {
				_, err := files.WriteFile(t.Context(), name, []byte("content"))
				if err == nil {
					_, err = files.ReadFile(t.Context(), name, 0, -1)
				}
				if err == nil {
					_, err = files.Stat(t.Context(), name)
				}
				if err == nil {
					_, err = files.ReadDirectory(t.Context(), "")
				}
				if n == 0 {
					begun <- struct{}{}
				}
				if err != nil {
					wantKind(t, "a file after the end", err, tool.Cancelled)
					return
				}
			}
		})
	}
	for range writers {
		<-begun
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := env.Detach(ctx); err != nil {
		t.Error(err)
	}
	group.Wait()
}
