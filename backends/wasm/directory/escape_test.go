//go:build unix

package directory

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	"golang.org/x/sys/unix"
)

// TestLinks is why this package is there: through the engine's own file system a
// guest reads and overwrites what a link leads to, through ours it does not.
func TestLinks(t *testing.T) {
	dir, secret := world(t)
	must(t, os.Symlink(secret, filepath.Join(dir, "absolute")))
	must(t, os.Symlink("../secret", filepath.Join(dir, "relative")))
	must(t, os.Symlink("..", filepath.Join(dir, "up")))
	must(t, os.Symlink("inside", filepath.Join(dir, "fine")))
	must(t, os.WriteFile(filepath.Join(dir, "inside"), []byte("ours"), 0o644))

	ours, theirs := mount(t, dir, Options{}), sysfs.DirFS(dir)
	for _, path := range []string{"absolute", "relative", "up/secret"} {
		if got, errno := read(theirs, path); got != "secret" {
			t.Errorf("the engine's own file system read %q (%v) through %s: is this package still needed?", got, errno, path)
		}
		if got, errno := read(ours, path); errno != experimentalsys.EPERM {
			t.Errorf("%s: %q, %v", path, got, errno)
		}
		if errno := write(ours, path, "overwritten"); errno != experimentalsys.EPERM {
			t.Errorf("write %s: %v", path, errno)
		}
	}
	if got, errno := read(ours, "fine"); got != "ours" || errno != 0 {
		t.Errorf("a link that stays inside: %q, %v", got, errno)
	}
	for name, errno := range map[string]experimentalsys.Errno{
		"mkdir":      ours.Mkdir("up/made", 0o755),
		"rename":     ours.Rename("inside", "up/stolen"),
		"rename in":  ours.Rename("up/secret", "stolen"),
		"unlink":     ours.Unlink("up/secret"),
		"rmdir":      ours.Rmdir("up/dir"),
		"link":       ours.Link("up/secret", "hard"),
		"link out":   ours.Link("inside", "up/hard"),
		"symlink in": ours.Symlink("x", "up/link"),
		"utimes":     ours.Utimens("absolute", 0, 0),
		"chmod":      ours.Chmod("absolute", 0o777),
		"stat":       second(ours.Stat("absolute")),
		"absolute":   ours.Symlink("/etc/passwd", "new"),
		"leads out":  ours.Symlink("a/../../secret", "new"),
	} {
		if errno != experimentalsys.EPERM {
			t.Errorf("%s: %v", name, errno)
		}
	}
	if got, err := os.ReadFile(secret); err != nil || string(got) != "secret" {
		t.Errorf("the secret is %q now (%v)", got, err)
	}
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil || len(entries) != 2 {
		t.Errorf("beside the directory there is %v (%v)", entries, err)
	}
	if errno := ours.Symlink("inside", "sub-link"); errno != 0 {
		t.Errorf("a link that stays inside cannot be made: %v", errno)
	}
}

// TestSwap swaps a directory for a link that leads out, while files are opened
// through it. The engine's own file system is shown to fall for it.
func TestSwap(t *testing.T) {
	dir, _ := world(t)
	must(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "sub", "secret"), []byte("ours"), 0o644))
	must(t, os.Symlink("..", filepath.Join(dir, "link")))
	done := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		path := func(name string) string { return filepath.Join(dir, name) }
		for {
			select {
			case <-done:
				return
			default:
			}
			for _, move := range [][2]string{{"sub", "aside"}, {"link", "sub"}, {"sub", "link"}, {"aside", "sub"}} {
				if err := os.Rename(path(move[0]), path(move[1])); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	ours, theirs := mount(t, dir, Options{}), sysfs.DirFS(dir)
	inside, leaked := 0, false
	deadline := time.Now().Add(10 * time.Second)
	for (inside < 2000 || !leaked) && time.Now().Before(deadline) {
		switch got, _ := read(ours, "sub/secret"); got {
		case "secret":
			t.Fatal("a swapped link led out")
		case "ours":
			inside++
		}
		got, _ := read(theirs, "sub/secret")
		leaked = leaked || got == "secret"
	}
	close(done)
	swapping.Wait()
	if inside == 0 {
		t.Error("the file was never read while it was there")
	}
	if !leaked {
		t.Error("the engine's own file system did not follow the link: the test shows nothing")
	}
}

func TestPaths(t *testing.T) {
	dir, _ := world(t)
	d := mount(t, dir, Options{})
	for _, path := range []string{"..", "../secret", "a/../../secret", "/../secret", "//../secret"} {
		if got, errno := read(d, path); errno == 0 {
			t.Errorf("%s was read: %q", path, got)
		}
	}
}

// TestSpecial opens a pipe, whose opening would wait for its other end.
func TestSpecial(t *testing.T) {
	dir, _ := world(t)
	must(t, makePipe(filepath.Join(dir, "pipe")))
	must(t, os.Symlink("pipe", filepath.Join(dir, "link")))
	d := mount(t, dir, Options{})
	for _, path := range []string{"pipe", "link"} {
		for _, flag := range []experimentalsys.Oflag{experimentalsys.O_RDONLY, experimentalsys.O_RDWR} {
			if _, errno := d.OpenFile(path, flag, 0); errno != experimentalsys.EACCES {
				t.Errorf("%s with %d: %v", path, flag, errno)
			}
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

// TestPipeIsNotOpened: whoever waits for the other end of a pipe goes on waiting.
func TestPipeIsNotOpened(t *testing.T) {
	dir, _ := world(t)
	pipe := filepath.Join(dir, "pipe")
	must(t, makePipe(pipe))
	reader, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	must(t, err)
	defer reader.Close()
	d := mount(t, dir, Options{})
	for _, flag := range []experimentalsys.Oflag{experimentalsys.O_WRONLY, experimentalsys.O_RDWR | experimentalsys.O_TRUNC} {
		if _, errno := d.OpenFile("pipe", flag, 0); errno != experimentalsys.EACCES {
			t.Errorf("%v: %v", flag, errno)
		}
	}
	// A reader is told of the end once there was a writer.
	polled := []unix.PollFd{{Fd: int32(reader.Fd()), Events: unix.POLLIN}}
	if n, err := unix.Poll(polled, 0); n != 0 || err != nil {
		t.Errorf("a writer was there: %+v, %v", polled, err)
	}
}

func makePipe(path string) error { return syscall.Mkfifo(path, 0o644) }
