package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestModeAndAttributesAreKept(t *testing.T) {
	r := open(t, map[string]string{"file": "old"})
	p := filepath.Join(r.Dir(), "file")
	xattr := unix.Setxattr(p, "user.caisson", []byte("kept"), 0)
	for _, mode := range []fs.FileMode{0o600, 0o755, 0o666, 0o755 | fs.ModeSetgid, 0o4711 & 0o777} {
		if err := os.Chmod(p, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Write("file", []byte("new"), WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(p); err != nil || info.Mode() != mode {
			t.Errorf("the mode is %v, not %v, %v", info.Mode(), mode, err)
		}
	}
	if xattr == nil {
		value := make([]byte, 16)
		if n, err := unix.Getxattr(p, "user.caisson", value); err != nil || string(value[:n]) != "kept" {
			t.Errorf("the attribute is %q, %v", value[:max(n, 0)], err)
		}
	}
	old := syscall.Umask(0o027)
	defer syscall.Umask(old)
	if info, err := r.Write("new", nil, WriteOptions{}); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("a new file has %v, %v", info, err)
	}
	if info, err := r.Write("created", nil, WriteOptions{CreateOnly: true}); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("a created file has %v, %v", info, err)
	}
}

// TestAsRootOwner needs two users: root becomes nobody in a child.
func TestAsRootOwner(t *testing.T) {
	if os.Getenv("WORKSPACE_TEST_CHILD") != "" {
		asNobody(t)
		return
	}
	if os.Getuid() != 0 {
		t.Skip("only root can make files of two users")
	}
	dir, err := os.MkdirTemp("/tmp", "workspace") //nolint:usetesting // the directories above t.TempDir let nobody through
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := func(name, content string, uid int, mode fs.FileMode) {
		p := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(p, []byte(content), mode), os.Chmod(p, mode), os.Chown(p, uid, uid)); err != nil {
			t.Fatal(err)
		}
	}
	const nobody = 65534
	file("others", "old and long", 0, 0o666)
	file("readonly", "old", 0, 0o444)
	file("own", "old", nobody, 0o640)
	if err := errors.Join(os.Chmod(dir, 0o777), os.Mkdir(filepath.Join(dir, "closed"), 0o755)); err != nil {
		t.Fatal(err)
	}
	file("closed/file", "old", nobody, 0o644)

	// Root itself keeps the owner by giving the new file away.
	root, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, err := root.Write("own", []byte("by root"), WriteOptions{}); err != nil {
		t.Error(err)
	}
	if uid := owner(t, filepath.Join(dir, "own")); uid != nobody {
		t.Errorf("root took the file: it is %d's", uid)
	}

	self := filepath.Join(dir, "test")
	binary, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(self, binary, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestAsRootOwner$", "-test.v")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "WORKSPACE_TEST_CHILD="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("as nobody: %v\n%s", err, out)
	}
}

func asNobody(t *testing.T) {
	dir := os.Getenv("WORKSPACE_TEST_CHILD")
	root, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, row := range []struct {
		name    string
		uid     uint32
		content string
		err     error
	}{
		{"others", 0, "short", nil},
		{"others", 0, strings.Repeat("longer", 100), nil},
		{"readonly", 0, "", fs.ErrPermission},
		{"own", 65534, "mine", nil},
		{"closed/file", 65534, "in place", nil},
		{"closed/new", 0, "", fs.ErrPermission},
	} {
		t.Run(fmt.Sprintf("%s %d", row.name, len(row.content)), func(t *testing.T) {
			p := filepath.Join(dir, row.name)
			_, err := root.Write(row.name, []byte(row.content), WriteOptions{})
			if !errors.Is(err, row.err) {
				t.Fatalf("error %v, want %v", err, row.err)
			}
			if row.err != nil {
				return
			}
			b, err := os.ReadFile(p)
			if err != nil || string(b) != row.content {
				t.Errorf("it holds %.40q, %v", b, err)
			}
			if uid := owner(t, p); uid != row.uid {
				t.Errorf("it is %d's now", uid)
			}
		})
	}
	noTemp(t, root)
}

func owner(t *testing.T, p string) uint32 {
	t.Helper()
	info, err := os.Stat(p)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Uid
}

// TestAsRootFullDisk fills a small file system and finds the old content untouched.
func TestAsRootFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can mount a small file system")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Fatalf("mount a small file system: %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	root, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, err := root.Write("file", []byte("old"), WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "there", "before"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, o := range []struct {
		name string
		WriteOptions
	}{
		{"file", WriteOptions{}}, {"new", WriteOptions{}}, {"new", WriteOptions{CreateOnly: true}},
		{"made/for/it", WriteOptions{}}, {"there/before/it", WriteOptions{}}, {"there/made/for/it", WriteOptions{}},
	} {
		if _, err := root.Write(o.name, make([]byte, 1<<20), o.WriteOptions); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("%s: %v", o.name, err)
		}
	}
	for name, want := range map[string]bool{"made": false, "there/before": true, "there/made": false} {
		if _, err := root.Lstat(name); (err == nil) != want {
			t.Errorf("of the directory %s: %v", name, err)
		}
	}
	// In place it is no different.
	f, err := os.OpenFile(filepath.Join(dir, "file"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := writer{data: make([]byte, 1<<20)}
	if err := w.inPlace(f, 3); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("in place: %v", err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(b) != "old" {
		t.Errorf("it holds %d bytes, %v", len(b), err)
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half a file is there: %v", err)
	}
	noTemp(t, root)
}
