package wasm

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wasm/engine"
	"github.com/caisson-dev/caisson/diskfile"
)

// hashes remember what module files hash to, as long as the files look the same.
// A file that is changed without looking so is caught by the engine, which reads
// it by its hash.
type hashes struct {
	mu    sync.Mutex
	known map[string]hashed
}

type hashed struct {
	info fs.FileInfo
	sum  string
}

// of is the hash of the file, in hex.
func (h *hashes) of(path string) (string, error) {
	f, info, err := diskfile.Open(path)
	if errors.Is(err, diskfile.ErrNotRegular) {
		return "", noModule(path)
	}
	if err != nil {
		return "", unreadable(path, err)
	}
	defer f.Close()
	if info.Size() > engine.MaxModule {
		return "", noModule(path)
	}
	h.mu.Lock()
	known, ok := h.known[path]
	h.mu.Unlock()
	if ok && os.SameFile(known.info, info) && known.info.Size() == info.Size() && known.info.ModTime().Equal(info.ModTime()) {
		return known.sum, nil
	}
	sha := sha256.New()
	if _, err := io.Copy(sha, io.LimitReader(f, engine.MaxModule+1)); err != nil {
		return "", unreadable(path, err)
	}
	sum := hex.EncodeToString(sha.Sum(nil))
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known == nil || len(h.known) >= maxModules {
		h.known = make(map[string]hashed)
	}
	h.known[path] = hashed{info, sum}
	return sum, nil
}

func noModule(path string) error {
	return tool.Errorf(tool.ConfigInvalid, "the module %s is not a regular file of at most %d bytes", path, engine.MaxModule).WithPath(path)
}

func unreadable(path string, err error) error {
	return tool.Errorf(tool.ConfigInvalid, "the module cannot be read: %w", err).
		WithHint("correct modules in the profile").WithPath(path)
}
