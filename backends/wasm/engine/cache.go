package engine

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"

	"github.com/caisson-dev/caisson/backends/wasm/meter"
)

// cache keeps modules with their metering, and their machine code, in a directory.
// Both are checked against accidents only, machine code by the engine with a CRC, and
// run: nobody but the user may be able to write there. The nil cache keeps nothing.
type cache struct {
	dir  string
	code wazero.CompilationCache
}

// CacheVersion names the part of a cache that this build uses: machine code and
// metering of another version are never looked at.
func CacheVersion() string {
	return fmt.Sprintf("%s-meter%d-%s-%s", engineVersion(), meter.Version, runtime.GOOS, runtime.GOARCH)
}

// engineVersion is the version of the module that compiles.
func engineVersion() string {
	const path = "github.com/tetratelabs/wazero"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return m.Version
			}
		}
	}
	return "unknown"
}

// openCache opens the cache in dir, which it makes 0700. A directory that is not
// the user's alone is refused; what is in it and cannot be of use is removed.
func openCache(dir string) (*cache, error) {
	if dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := isPrivate(dir); err != nil {
		return nil, fmt.Errorf("%s is not used as a cache of machine code: %w", dir, err)
	}
	dir = filepath.Join(dir, CacheVersion())
	switch info, err := os.Lstat(dir); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case private(info) != nil:
		if err := discard(dir); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := removeOthers(dir); err != nil {
		return nil, err
	}
	code, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return nil, err
	}
	return &cache{dir: dir, code: code}, nil
}

// isPrivate refuses what is not a directory of the user's alone.
func isPrivate(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	return private(info)
}

// isCode reports whether a name in a cache is that of the directory in which the engine
// keeps machine code: there is no other directory.
func isCode(name string) bool { return strings.HasPrefix(name, "wazero-") }

// removeOthers removes what neither we nor the engine have put into a cache: a pipe would
// be waited for when it is read, a link may lead to one, and a directory in the place of
// a file is never replaced by one.
func removeOthers(dir string) error {
	return each(dir, os.ReadDir, func(file string, d fs.DirEntry, code bool) error {
		if d.Type().IsRegular() && (code || !isCode(d.Name())) {
			return nil
		}
		return discard(file)
	})
}

// each calls f with what is in a cache, and in its directories of machine code, which it
// is not called with: code says that it is there. One that is closed to its own user is
// discarded; one that cannot be read for another reason is in use, and stays.
func each(dir string, read func(string) ([]fs.DirEntry, error), f func(file string, d fs.DirEntry, code bool) error) error {
	kept, err := read(dir)
	if err != nil {
		return err
	}
	for _, d := range kept {
		file := filepath.Join(dir, d.Name())
		if !d.IsDir() || !isCode(d.Name()) {
			if err := f(file, d, false); err != nil {
				return err
			}
			continue
		}
		below, err := read(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // another process has discarded it
		case errors.Is(err, fs.ErrPermission):
			if err := discard(file); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		}
		for _, d := range below {
			if err := f(filepath.Join(file, d.Name()), d, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// unusable is how the names begin of what could only be put aside.
const unusable = "unusable-"

// discard removes something from a cache, whatever it is: a link itself, a directory with
// all that is in it. One that cannot be removed, since its own user may not look into it,
// is put aside, where it is in nobody's way.
func discard(file string) error {
	err := os.RemoveAll(file)
	if err == nil || strings.HasPrefix(filepath.Base(file), unusable) {
		return nil
	}
	if aside := os.Rename(file, filepath.Join(filepath.Dir(file), unusable+rand.Text())); aside != nil && !errors.Is(aside, fs.ErrNotExist) {
		return errors.Join(err, aside)
	}
	return nil
}

// errNotDirectory is something else where a cache should be.
var errNotDirectory = errors.New("it is not a directory")

func (c *cache) compiled() wazero.CompilationCache {
	if c == nil {
		return nil
	}
	return c.code
}

// parent is the directory with which the cache was opened.
func (c *cache) parent() string { return filepath.Dir(c.dir) }

func (c *cache) path(sum string) string { return filepath.Join(c.dir, sum+".wasm") }

// load returns the metered module whose original has this hash. One that is not what
// was kept would be a program of its own, or have no metering: it is not there.
func (c *cache) load(sum string) ([]byte, bool) {
	// A pipe would be waited for; what is compiled instead takes its place.
	if info, err := os.Lstat(c.path(sum)); err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	kept, err := os.ReadFile(c.path(sum))
	if err != nil || len(kept) < sha256.Size {
		return nil, false
	}
	metered := kept[sha256.Size:]
	hash := sha256.Sum256(metered)
	return metered, bytes.Equal(hash[:], kept[:sha256.Size])
}

// store keeps a metered module, behind its hash.
func (c *cache) store(sum string, metered []byte) error {
	f, err := os.CreateTemp(c.dir, sum+".*.tmp")
	if err != nil {
		return err
	}
	hash := sha256.Sum256(metered)
	_, err = f.Write(slices.Concat(hash[:], metered))
	// A file that a power cut emptied must not have its final name.
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), c.path(sum))
	}
	if err != nil {
		_ = os.Remove(f.Name()) // it would be removed with the cache
	}
	return err
}

// empty removes all that is kept: something of it is damaged, and nobody says what.
func (c *cache) empty() {
	_ = each(c.dir, os.ReadDir, func(file string, _ fs.DirEntry, _ bool) error { return discard(file) }) // what stays fails as it did
}

// checkDirectory refuses what is no directory.
func checkDirectory(info fs.FileInfo) error {
	if !info.IsDir() {
		return errNotDirectory
	}
	return nil
}
