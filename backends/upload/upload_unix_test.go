//go:build unix

package upload

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/backends/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// files writes a tree: a name that ends in a slash is a directory, a content
// that begins with "-> " a link.
func files(t *testing.T, dir string, tree map[string]string) string {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		switch target, link := strings.CutPrefix(tree[name], "-> "); {
		case err != nil:
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o755)
		case link:
			err = os.Symlink(target, path)
		default:
			err = os.WriteFile(path, []byte(tree[name]), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

type sentEntry struct {
	*tar.Header
	content string
}

// sent is what a folder's archive holds.
func sent(t *testing.T, folder string, o Options) map[string]sentEntry {
	t.Helper()
	r, size, err := Open(t.Context(), folder, o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all := map[string]sentEntry{}
	archive := tar.NewReader(r)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if parent := filepath.Dir(strings.TrimSuffix(h.Name, "/")); parent != "." && all[parent+"/"].Header == nil {
			t.Errorf("%q comes before its directory", h.Name)
		}
		all[h.Name] = sentEntry{h, string(content)}
	}
	if len(all) != size.Entries {
		t.Errorf("%d entries were sent, and %d announced", len(all), size.Entries)
	}
	return all
}

func names(all map[string]sentEntry) []string { return slices.Sorted(maps.Keys(all)) }

func TestIgnored(t *testing.T) {
	dir := files(t, t.TempDir(), map[string]string{
		".gitignore":          "*.o\n/dist/\n!kept.o\nsecret\n",
		".ignore":             "big.bin\n!wanted.o\n",
		".git/config":         "[core]\n",
		".git/objects/ab/x.o": "an object, whatever its name",
		".git/info/exclude":   "private\n",
		".git/secret":         "git's own",
		"a.o":                 "", "kept.o": "", "wanted.o": "", "big.bin": "", "private": "", "main.go": "package main",
		"dist/app": "", "src/dist/app": "", "src/secret/key": "",
		"src/.gitignore": "!a.o\n",
		"src/a.o":        "",
		"module/.git":    "gitdir: ../.git/modules/module\n",
		"module/a.o":     "another repository has its own rules",
		"empty/":         "",
	})
	want := []string{
		".git/", ".git/config", ".git/info/", ".git/info/exclude", ".git/objects/", ".git/objects/ab/", ".git/objects/ab/x.o", ".git/secret",
		".gitignore", ".ignore", "empty/", "kept.o", "main.go", "module/", "module/.git", "module/a.o",
		"src/", "src/.gitignore", "src/a.o", "src/dist/", "src/dist/app", "wanted.o",
	}
	got := sent(t, dir, Options{})
	if !slices.Equal(names(got), want) {
		t.Errorf("sent %q\nwant %q", names(got), want)
	}
	if got["main.go"].content != "package main" {
		t.Errorf("main.go holds %q", got["main.go"].content)
	}
}

// A folder inside a repository is ruled by the directories above it, too.
func TestFolderInARepository(t *testing.T) {
	dir := files(t, t.TempDir(), map[string]string{
		".git/info/exclude": "/part/private\n",
		".gitignore":        "/part/inner/out\n*.key\n",
		"part/.gitignore":   "!public.key\n",
		"part/private":      "", "part/public.key": "", "part/a.key": "",
		"part/inner/out": "", "part/inner/in": "", "part/inner/b.key": "", "elsewhere": "",
	})
	if got, want := names(sent(t, filepath.Join(dir, "part", "inner"), Options{})), []string{"in"}; !slices.Equal(got, want) {
		t.Errorf("of part/inner: %q", got)
	}
	want := []string{".gitignore", "inner/", "inner/in", "public.key"}
	if got := names(sent(t, filepath.Join(dir, "part"), Options{})); !slices.Equal(got, want) {
		t.Errorf("of part: %q", got)
	}
}

func TestEntries(t *testing.T) {
	outside := files(t, t.TempDir(), map[string]string{"secret": "outside"})
	strange := "not-utf8-\xff\xfe"
	long := strings.Repeat("long-name-", 20)
	dir := files(t, t.TempDir(), map[string]string{
		"run.sh": "#!/bin/sh\n", "private": "", "new\nline": "n", strange: "s", long: "l", "é": "e",
		"link": "-> run.sh", "dangling": "-> nowhere", "leaves": "-> " + filepath.Join(outside, "secret"),
		"up": "-> ../..", "dirlink": "-> " + outside, "sub/loop": "-> ../sub", "to" + strange: "-> " + strange,
	})
	times := time.Date(2020, 2, 3, 4, 5, 6, 700, time.UTC)
	for name, mode := range map[string]fs.FileMode{"run.sh": 0o755, "private": 0o600, "sub": fs.ModeSetgid | 0o750} {
		if err := errors.Join(os.Chmod(filepath.Join(dir, name), mode), os.Chtimes(filepath.Join(dir, name), times, times)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	all := sent(t, dir, Options{UID: 1000, GID: 1001})
	for name, mode := range map[string]int64{"run.sh": 0o755, "private": 0o600, "sub/": 0o2750} {
		if h := all[name]; h.Mode != mode || !h.ModTime.Equal(times.Truncate(time.Second)) {
			t.Errorf("%s: mode %#o, time %s", name, h.Mode, h.ModTime)
		}
	}
	for name, target := range map[string]string{
		"link": "run.sh", "dangling": "nowhere", "leaves": filepath.Join(outside, "secret"), "up": "../..",
		"dirlink": outside, "sub/loop": "../sub", "to" + strange: strange,
	} {
		if h := all[name]; h.Header == nil || h.Typeflag != tar.TypeSymlink || h.Linkname != target {
			t.Errorf("%q is %+v", name, h)
		}
	}
	for name, content := range map[string]string{"new\nline": "n", strange: "s", long: "l", "é": "e"} {
		if h := all[name]; h.Header == nil || h.content != content {
			t.Errorf("%q is %+v", name, h)
		}
	}
	if all["pipe"].Header != nil {
		t.Error("a pipe was sent")
	}
	for name, h := range all {
		if h.Uid != 1000 || h.Gid != 1001 || h.Uname != "" || strings.Contains(h.content, "outside") {
			t.Errorf("%q: %+v", name, h)
		}
	}
}

func TestLimits(t *testing.T) {
	dir := files(t, t.TempDir(), map[string]string{"a": strings.Repeat("x", 1000), "b/c": "y", ".gitignore": "ignored\n", "ignored": strings.Repeat("z", 5000)})
	for _, o := range []Options{{MaxBytes: 1000}, {MaxEntries: 3}} {
		r, _, err := Open(t.Context(), dir, o)
		if tool.KindOf(err) != tool.Unsupported || !strings.Contains(err.Error(), dir) || r != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
	r, size, err := Open(t.Context(), dir, Options{MaxBytes: 1009, MaxEntries: 4})
	if err != nil || size != (Size{4, 1009}) {
		t.Fatalf("%+v, %v", size, err)
	}
	r.Close()
}

func TestUnreadable(t *testing.T) {
	if os.Getuid() == 0 {
		t.Log("nothing is unreadable to root: another test's user sees to this")
		return
	}
	dir := files(t, t.TempDir(), map[string]string{"a": "a", "closed/": ""})
	if err := os.Chmod(filepath.Join(dir, "closed"), 0); err != nil {
		t.Fatal(err)
	}
	_, _, err := Open(t.Context(), dir, Options{})
	if tool.KindOf(err) != tool.Denied || !strings.Contains(err.Error(), "closed") {
		t.Errorf("got %v", err)
	}
}

// What changes while it is sent ends the stream with an error, never with an
// archive that looks whole.
func TestChangedMeanwhile(t *testing.T) {
	for what, change := range map[string]func(path string) error{
		"shrinks": func(path string) error { return os.Truncate(path, 10) },
		"grows":   func(path string) error { return os.Truncate(path, 64<<20) },
	} {
		dir := files(t, t.TempDir(), map[string]string{"a": strings.Repeat("x", 1<<20), "b": strings.Repeat("x", 1<<20)})
		r, _, err := Open(t.Context(), dir, Options{MaxBytes: 4 << 20})
		if err != nil {
			t.Fatal(err)
		}
		// The beginning of a is on its way, b has not been opened.
		if _, err := io.ReadFull(r, make([]byte, 600)); err != nil {
			t.Fatal(err)
		}
		if err := change(filepath.Join(dir, "b")); err != nil {
			t.Fatal(err)
		}
		if err := change(filepath.Join(dir, "a")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, r); tool.KindOf(err) == "" || err == nil {
			t.Errorf("a file that %s: %v", what, err)
		}
		r.Close()
	}
}

func TestCancelled(t *testing.T) {
	dir := files(t, t.TempDir(), map[string]string{"a": strings.Repeat("x", 8<<20), "b": "y"})
	ctx, cancel := context.WithCancel(t.Context())
	r, _, err := Open(ctx, dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.Copy(io.Discard, r); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	r.Close()
	if _, _, err := Open(ctx, dir, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("opening: %v", err)
	}
	// Who closes it half-way leaves nobody behind: see TestMain.
	if r, _, err = Open(t.Context(), dir, Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, r, 1<<20); err != nil {
		t.Fatal(err)
	}
	r.Close()
}

func TestProgress(t *testing.T) {
	dir := files(t, t.TempDir(), map[string]string{"a": strings.Repeat("x", 3<<20)})
	var steps []string
	r, _, err := Open(t.Context(), dir, Options{Report: func(s string) { steps = append(steps, s) }})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(r); err != nil {
		t.Fatal(err)
	}
	r.Close()
	if got := fmt.Sprint(steps); !strings.Contains(got, "0 of 3 MiB") {
		t.Errorf("reported %s", got)
	}
}
