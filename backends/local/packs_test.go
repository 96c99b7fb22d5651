//go:build linux

package local

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
)

const listing = `echo '{"tools":[{"name":"packed","description":"Does nothing."}]}'`

// TestReopeningGivenUp: who gives up opening a session whose worker lives, while its
// packs are asked, ends nothing that runs there.
func TestReopeningGivenUp(t *testing.T) {
	at := binding(t)
	at.Packs = []tool.Pack{{Name: "p", Command: []string{"/bin/sh", "-c", listing}}}
	first := open(t, at)
	p, err := first.Processes().Start(t.Context(), tool.StartRequest{OperationID: "o", Command: "read x", Actor: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	at.Provisioned = true
	ctx, giveUp := context.WithCancel(t.Context())
	_, err = New(Options{}).Open(ctx, at, func(step string) {
		if step == askingPacks {
			giveUp()
		}
	})
	wantKind(t, "opening", err, tool.Cancelled)
	p, err = open(t, at).Processes().Get(t.Context(), p.ID)
	if err != nil || p.Status.Terminal() {
		t.Errorf("the process is %s, %v", p.Status, err)
	}
}

// TestFailingPackIsAskedOnce: a pack that cannot be had is not asked again by what
// ends its worker.
func TestFailingPackIsAskedOnce(t *testing.T) {
	at := binding(t)
	asked := filepath.Join(at.WorkspaceFolder, "asked")
	at.Packs = []tool.Pack{{Name: "p", Command: []string{"/bin/sh", "-c", "echo >> " + asked}}}
	_, err := New(Options{}).Open(t.Context(), at, nil)
	wantKind(t, "opening", err, tool.Unsupported)
	if got, err := os.ReadFile(asked); err != nil || string(got) != "\n" {
		t.Errorf("asked %d times, %v", len(got), err)
	}
}
