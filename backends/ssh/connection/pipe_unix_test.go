//go:build unix

package connection

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestPipeIsNoFile: a pipe in the place of a key, or of known hosts, keeps nobody
// waiting.
func TestPipeIsNoFile(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := readLimited(pipe, maxIdentity)
		read <- err
	}()
	select {
	case err := <-read:
		if err == nil || !strings.Contains(err.Error(), "is no file") {
			t.Errorf("got %v", err)
		}
	case <-time.After(patience):
		t.Error("it waits for whoever writes")
		f, err := os.OpenFile(pipe, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		<-read
	}
}
