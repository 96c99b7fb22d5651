package engine

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"

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
// the user's alone is refused.
func openCache(dir string) (*cache, error) {
	if dir == "" {
		return nil, nil
	}
	dir = filepath.Join(dir, CacheVersion())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for _, d := range []string{filepath.Dir(dir), dir} {
		info, err := os.Lstat(d)
		if err != nil {
			return nil, err
		}
		if err := private(info); err != nil {
			return nil, fmt.Errorf("%s is not used as a cache of machine code: %w", d, err)
		}
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

// removeOthers removes what is neither a file nor a directory from a cache: a pipe
// would be waited for when it is read, and a link may lead to one.
func removeOthers(dir string) error {
	return filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !d.Type().IsRegular() {
			err = os.Remove(file)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another process was first
		}
		return err
	})
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
	_ = filepath.WalkDir(c.dir, func(file string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			_ = os.Remove(file) // what stays fails as it did
		}
		return nil
	})
}

// checkDirectory refuses what is no directory.
func checkDirectory(info fs.FileInfo) error {
	if !info.IsDir() {
		return errNotDirectory
	}
	return nil
}
