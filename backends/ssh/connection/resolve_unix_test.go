//go:build unix

package connection

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/ssh/sshtest"
	"github.com/caisson-dev/caisson/backends/tool"
)

// TestMatchExecEnds: a command of the configuration's that nobody waits for any more
// does not outlive the question.
func TestMatchExecEnds(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	c := sshtest.NewClient(t, "", "Match host box exec \"(echo up; sleep 1000) > "+pipe+"\"\n User u\n")
	p := newPool(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked := make(chan error, 1)
	go func() {
		_, err := p.Resolve(ctx, Destination{Host: "box", ConfigFile: c.ConfigFile})
		asked <- err
	}()
	f, err := os.Open(pipe) // it waits for the command
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(f)
	if line, err := r.ReadString('\n'); err != nil || line != "up\n" {
		t.Fatalf("the command said %q, %v", line, err)
	}
	cancel()
	if err := <-asked; tool.KindOf(err) != tool.Cancelled {
		t.Errorf("got %v", err)
	}
	// The pipe ends with the last process that holds it.
	if _, err := io.ReadAll(r); err != nil {
		t.Errorf("the command runs on: %v", err)
	}
}
