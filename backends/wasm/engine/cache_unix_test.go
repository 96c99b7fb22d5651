//go:build unix

package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// codeDir is where the engine keeps machine code.
func codeDir(t *testing.T, c *cache) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(c.dir, "*"))
	for _, dir := range found {
		if isCode(filepath.Base(dir)) {
			return dir
		}
	}
	t.Fatalf("%q: there is no directory of machine code, %v", found, err)
	return ""
}

// A module is compiled and kept again whatever has taken the place of something in its
// cache: of its metered form, of its machine code, of the directory of that, or of the
// cache of this version; in an engine that runs, or before one starts. What a link leads
// to stays as it is.
func TestUnusableInCache(t *testing.T) {
	module := command(0x01)
	elsewhere := t.TempDir()
	outside := filepath.Join(elsewhere, "outside")
	if err := os.WriteFile(outside, []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	replacements := map[string]func(path string) error{
		"an empty directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"a directory": func(path string) error {
			if err := os.MkdirAll(filepath.Join(path, "in", "it"), 0o700); err != nil {
				return err
			}
			return os.Symlink(outside, filepath.Join(path, "in", "link"))
		},
		"a closed directory": func(path string) error {
			if err := os.MkdirAll(filepath.Join(path, "in"), 0o700); err != nil {
				return err
			}
			return os.Chmod(path, 0)
		},
		"an open directory":   func(path string) error { return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o777)) },
		"a link to nothing":   func(path string) error { return os.Symlink(filepath.Join(elsewhere, "nothing"), path) },
		"a link to a file":    func(path string) error { return os.Symlink(outside, path) },
		"a link to elsewhere": func(path string) error { return os.Symlink(elsewhere, path) },
		"a file":              func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) },
		"a closed file":       func(path string) error { return os.WriteFile(path, []byte("x"), 0) },
	}
	for place, find := range map[string]func(t *testing.T, c *cache, sum string) string{
		"module": func(_ *testing.T, c *cache, sum string) string { return c.path(sum) },
		"machine code": func(t *testing.T, c *cache, _ string) string {
			t.Helper()
			found, err := filepath.Glob(filepath.Join(codeDir(t, c), "*"))
			if err != nil || len(found) != 1 {
				t.Fatalf("machine code: %q, %v", found, err)
			}
			return found[0]
		},
		"directory of machine code": func(t *testing.T, c *cache, _ string) string { t.Helper(); return codeDir(t, c) },
		"version":                   func(_ *testing.T, c *cache, _ string) string { return c.dir },
	} {
		for name, replace := range replacements {
			for _, running := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s is %s, running %v", place, name, running), func(t *testing.T) {
					dir := filepath.Join(t.TempDir(), "cache")
					c := asking(t, dir, module)
					kept := compileOnce(t, c, nil)
					path := find(t, kept, c.SHA256)
					t.Cleanup(func() { _ = filepath.WalkDir(dir, opened) })
					if err := errors.Join(os.RemoveAll(path), replace(path)); err != nil {
						t.Fatal(err)
					}
					if !running {
						kept = nil
					}
					kept = compileOnce(t, c, kept)
					if _, ok := kept.load(c.SHA256); !ok {
						t.Error("the module is not kept")
					}
					if got, err := os.ReadFile(outside); err != nil || string(got) != "theirs" {
						t.Errorf("what a link led to: %q, %v", got, err)
					}
				})
			}
		}
	}
}

// Machine code that cannot be read for now may be what another process writes: it stays,
// unless it is closed to its own user.
func TestUnreadMachineCode(t *testing.T) {
	for _, test := range []struct {
		reason error
		kept   bool
	}{{syscall.ENFILE, true}, {syscall.ENOMEM, true}, {syscall.EACCES, false}} {
		c, err := openCache(filepath.Join(t.TempDir(), "cache"))
		if err != nil {
			t.Fatal(err)
		}
		code := codeDir(t, c)
		err = each(c.dir, func(dir string) ([]fs.DirEntry, error) {
			if dir == code {
				return nil, &fs.PathError{Op: "open", Path: dir, Err: test.reason}
			}
			return os.ReadDir(dir)
		}, func(string, fs.DirEntry, bool) error { return nil })
		if errors.Is(err, test.reason) != test.kept {
			t.Errorf("%v: it ends with %v", test.reason, err)
		}
		if _, err := os.Lstat(code); (err == nil) != test.kept {
			t.Errorf("%v: machine code is kept: %v", test.reason, err == nil)
		}
	}
}

// opened opens a directory that is closed to its user, so that it can be removed.
func opened(path string, d fs.DirEntry, err error) error {
	if d != nil && d.IsDir() {
		return os.Chmod(path, 0o700)
	}
	return err
}

// compileOnce has an engine, with this cache or one that it opens, compile a module.
func compileOnce(t *testing.T, c compilation, kept *cache) *cache {
	t.Helper()
	if kept == nil {
		var err error
		if kept, err = openCache(c.CacheDir); err != nil {
			t.Fatal(err)
		}
	}
	life, end := context.WithCancel(t.Context())
	defer end()
	r, err := newRuntime(life, kept)
	if err != nil {
		t.Fatal(err)
	}
	ms := &modules{runtime: r, cache: kept, compilers: newCompilers(life, 0), all: make(map[string]*module)}
	code, release, err := ms.get(life, c.Path, c.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	release()
	if err := errors.Join(code.Close(life), r.Close(life)); err != nil {
		t.Error(err)
	}
	return kept
}

// A pipe in the cache, or a link to one, keeps nobody waiting: neither where a module
// with its metering is, nor where the engine has its machine code.
func TestPipeInCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	c, err := openCache(dir)
	if err != nil {
		t.Fatal(err)
	}
	const sum = "0123456789abcdef"
	if err := c.store("kept", command(0x01)); err != nil {
		t.Fatal(err)
	}
	pipe, link := filepath.Join(codeDir(t, c), "code"), c.path(sum)
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(pipe, link); err != nil {
		t.Fatal(err)
	}
	if _, kept := c.load(sum); kept {
		t.Error("a link to a pipe is a module")
	}
	if c, err = openCache(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{pipe, link} {
		if _, err := os.Lstat(name); !os.IsNotExist(err) {
			t.Fatalf("%s is still there: %v", name, err)
		}
	}
	if _, kept := c.load("kept"); !kept {
		t.Error("a module is gone with the pipe")
	}
}
