package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
)

func TestLinks(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := open(t, map[string]string{"file": "content", "dir/inner": "inner"})
	at := func(name string) string { return filepath.Join(r.Dir(), name) }
	for name, target := range map[string]string{
		"relative":     "file",
		"dir/up":       "../file",
		"absolute":     at("file"),
		"absolute-dir": at("dir"),
		"chain":        "absolute",
		"root":         r.Dir(),
		"dot":          ".",
		"out":          filepath.Join(outside, "secret"),
		"out-dir":      outside,
		"out-relative": "../" + filepath.Base(outside) + "/secret",
		"out-chain":    "out-dir/secret",
		"near":         r.Dir() + "-beside/x",
		"dangling":     "nothing",
		"dangling-out": filepath.Join(outside, "nothing"),
		"loop":         "loop",
		"ping":         "pong",
		"pong":         "ping",
		"loop-abs":     at("loop-abs"),
	} {
		link(t, target, at(name))
	}
	for name, want := range map[string]string{
		"relative": "content", "dir/up": "content", "absolute": "content", "absolute-dir/inner": "inner",
		"chain": "content", "root/file": "content", "root/root/dot/file": "content", "absolute-dir/up": "content",
	} {
		if got, err := read(t, r, name); err != nil || got != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"out", "out-dir", "out-dir/secret", "out-relative", "out-chain", "near", "dangling-out", "root/out"} {
		_, _, err := r.Open(name)
		wantKind(t, err, tool.PathOutsideRoot)
		_, err = r.Stat(name)
		wantKind(t, err, tool.PathOutsideRoot)
		_, err = r.Write(name, []byte("x"), WriteOptions{})
		wantKind(t, err, tool.PathOutsideRoot)
	}
	_, err := r.Write("out-dir/new", []byte("x"), WriteOptions{})
	wantKind(t, err, tool.PathOutsideRoot)
	_, err = r.Write("out-dir/new/deep", []byte("x"), WriteOptions{})
	wantKind(t, err, tool.PathOutsideRoot)
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("outside are %v, %v", entries, err)
	}
	for _, name := range []string{"loop", "ping", "loop-abs"} {
		if _, _, err := r.Open(name); !errors.Is(err, syscall.ELOOP) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := r.Open("dangling"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("dangling: %v", err)
	}
	// The link itself can be described wherever it leads.
	for _, name := range []string{"out", "loop", "dangling", "absolute-dir/up"} {
		if info, err := r.Lstat(name); err != nil || info.Mode()&fs.ModeSymlink == 0 {
			t.Errorf("Lstat(%s): %v, %v", name, info, err)
		}
	}
	if target, err := r.Readlink("absolute-dir/up"); err != nil || target != "../file" {
		t.Errorf("Readlink: %q, %v", target, err)
	}
}

// TestSwappedLink lets somebody change a directory into a link to the outside
// and back while everybody reads and writes through it.
func TestSwappedLink(t *testing.T) {
	outside := t.TempDir()
	for _, name := range []string{"file", "new"} {
		if err := os.WriteFile(filepath.Join(outside, name), []byte("SECRET"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := open(t, map[string]string{"real/file": "inside"})
	at := func(name string) string { return filepath.Join(r.Dir(), name) }
	link(t, "real", at("inner"))
	link(t, outside, at("outer"))

	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			os.RemoveAll(at("dir")) // a write may have made a directory of it
			if i%2 == 0 {
				os.Symlink(outside, at("dir"))
			} else if i%4 == 1 {
				os.Symlink(at("real"), at("dir"))
			} else {
				os.Symlink("real", at("dir"))
			}
		}
	})
	done, refused := 0, 0
	for done < 500 || refused < 500 {
		f, _, err := r.Open("dir/file")
		if err == nil {
			b, err := io.ReadAll(f)
			f.Close()
			if err != nil || string(b) != "inside" && string(b) != "written" {
				t.Fatalf("read %q, %v", b, err)
			}
			done++
		} else if tool.KindOf(err) == tool.PathOutsideRoot {
			refused++
		}
		if _, err := r.Write("dir/new", []byte("written"), WriteOptions{}); err == nil {
			done++
		}
		if d, err := r.OpenDir("dir"); err == nil {
			if g, err := d.Open("file"); err == nil {
				b, _ := io.ReadAll(g)
				g.Close()
				if strings.Contains(string(b), "SECRET") {
					t.Fatal("the walk left the workspace")
				}
			}
			d.Close()
		}
	}
	close(stop)
	swapper.Wait()
	if b, err := os.ReadFile(filepath.Join(outside, "new")); err != nil || string(b) != "SECRET" {
		t.Fatalf("the outside holds %q, %v", b, err)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 2 {
		t.Fatalf("the outside has %v, %v", entries, err)
	}
}

func TestDirNeverFollows(t *testing.T) {
	r := open(t, map[string]string{"dir/file": "x"})
	link(t, "dir", filepath.Join(r.Dir(), "link"))
	link(t, "dir/file", filepath.Join(r.Dir(), "filelink"))
	d, err := r.OpenDir(".")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.OpenDir("link"); err == nil {
		t.Error("a link is entered")
	}
	if _, err := d.Open("filelink"); err == nil {
		t.Error("a link is opened")
	}
	entries, err := d.Entries()
	if err != nil || len(entries) != 3 {
		t.Errorf("entries %v, %v", entries, err)
	}
}
