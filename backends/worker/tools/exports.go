package tools

import (
	"context"
	"io"
	"os"
	"sync"
)

// MaxExportBytes is the size of the largest file that can be presented.
const MaxExportBytes = 256 << 20

// Exports keeps immutable snapshots of presented files until the host has
// fetched them. Its methods may be called concurrently.
type Exports struct {
	dir string

	mu   sync.Mutex
	live map[string]*export
}

type export struct {
	file *os.File
	size int64
}

// NewExports keeps snapshots in dir, which it creates 0700 when the first one
// is made. What an earlier crash left there is removed by the first one too.
func NewExports(dir string) *Exports { return &Exports{dir: dir, live: map[string]*export{}} }

// Create copies size bytes of src, at most [MaxExportBytes], and returns the
// token that names the copy. It fails with [tool.ArtifactTooLarge] for more and with
// [tool.Overloaded] when too many snapshots wait to be fetched.
func (e *Exports) Create(ctx context.Context, src *os.File) (token string, size int64, err error) {
	return "", 0, nil
}

// Open returns a reader of the whole snapshot and its size. Closing the reader
// leaves the snapshot alone. An unknown token fails with [tool.ArtifactNotFound].
func (e *Exports) Open(token string) (io.ReadCloser, int64, error) { return nil, 0, nil }

// ReadAt reads at most len(p) bytes of a snapshot, as [io.ReaderAt] does: fewer
// only with [io.EOF]. An unknown token fails with [tool.ArtifactNotFound].
func (e *Exports) ReadAt(token string, p []byte, offset int64) (int, error) { return 0, nil }

// Release removes a snapshot. Releasing an unknown one is no error. Readers that are
// open finish undisturbed.
func (e *Exports) Release(token string) error { return nil }

// Close removes every snapshot.
func (e *Exports) Close() error { return nil }
