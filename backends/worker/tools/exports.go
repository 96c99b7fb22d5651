package tools

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/workspace"
)

// exportPrefix begins the names of snapshots.
const exportPrefix = "export-"

// Exports keeps immutable snapshots of presented files until the host has
// fetched them. Its methods may be called concurrently.
type Exports struct {
	dir     string
	prepare func() error

	mu     sync.Mutex
	live   map[string]*export
	coming int   // that are being copied
	total  int64 // bytes of all that are live or coming
}

// export is one snapshot.
type export struct {
	file  *os.File
	path  string // "" once the file has no name any more
	size  int64
	since time.Time // when it was made or last read
	users int       // open readers
	gone  bool      // released
}

// NewExports keeps snapshots in dir, which no command can write to. The first
// snapshot creates it, 0700, and removes what a crash left there.
func NewExports(dir string) *Exports {
	e := &Exports{dir: dir, live: map[string]*export{}}
	e.prepare = sync.OnceValue(func() error {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		entries, err := os.ReadDir(dir)
		for _, entry := range entries {
			if strings.HasPrefix(entry.Name(), exportPrefix) {
				err = errors.Join(err, os.Remove(filepath.Join(dir, entry.Name())))
			}
		}
		return err
	})
	return e
}

// Create copies src from its beginning and returns the token that names the
// copy, and its size. It fails with [tool.ArtifactTooLarge] for more than
// [MaxExportBytes], and with [tool.Overloaded] when too many snapshots wait to be
// fetched. Those that a host has lost are given up by then: it fetches at once, or
// its connection ended before it did.
func (e *Exports) Create(ctx context.Context, src *os.File) (token string, size int64, err error) {
	if err := e.prepare(); err != nil {
		return "", 0, e.unkept(err)
	}
	info, err := src.Stat()
	if err != nil {
		return "", 0, err
	}
	if info.Size() > MaxExportBytes {
		return "", 0, tooLargeToExport(info.Size())
	}
	if err := e.admit(info.Size()); err != nil {
		return "", 0, err
	}
	x, err := e.snapshot(ctx, src)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.coming--
	e.total -= info.Size()
	if err != nil {
		return "", 0, err
	}
	token = rand.Text()
	x.since = time.Now()
	e.live[token] = x
	e.total += x.size
	return token, x.size, nil
}

// admit makes room for a snapshot, or refuses it as one too many.
func (e *Exports) admit(size int64) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	full := func() bool { return len(e.live)+e.coming >= maxExports || e.total+size > maxExportTotal }
	if full() {
		e.giveUpLost()
	}
	if full() {
		err := tool.Errorf(tool.Overloaded, "%d presented files with %d bytes wait to be fetched", len(e.live), e.total).WithHint("present it again when they are fetched")
		err.Retryable = true
		return err
	}
	e.coming++
	e.total += size
	return nil
}

// giveUpLost releases what nobody has come for. The caller holds mu.
func (e *Exports) giveUpLost() {
	for token, x := range e.live {
		if x.users == 0 && time.Since(x.since) >= lostExport {
			_ = e.release(token) // its space is all that anybody wants of it
		}
	}
}

func tooLargeToExport(size int64) error {
	return tool.Errorf(tool.ArtifactTooLarge, "the file has %d bytes, and at most %d (256 MiB) can be presented", size, MaxExportBytes).
		WithHint("present a smaller part, or a compressed copy")
}

// snapshot copies src into a file that, where the system allows it, has no name
// from then on and so cannot be left behind.
func (e *Exports) snapshot(ctx context.Context, src *os.File) (x *export, err error) {
	if _, err := src.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(e.dir, exportPrefix+"*")
	if err != nil {
		return nil, e.unkept(err)
	}
	x = &export{file: f, path: f.Name()}
	if os.Remove(x.path) == nil {
		x.path = ""
	}
	for {
		if ctx.Err() != nil {
			return nil, errors.Join(ended(ctx), x.close())
		}
		// The kernel copies, or shares the blocks where the file system can.
		n, err := io.CopyN(f, src, copyChunk)
		x.size += n
		switch {
		case x.size > MaxExportBytes:
			return nil, errors.Join(tooLargeToExport(x.size), x.close())
		case errors.Is(err, io.EOF):
			return x, nil
		case tool.IsDiskFull(err):
			return nil, errors.Join(e.unkept(err), x.close())
		case err != nil:
			return nil, errors.Join(err, x.close())
		}
	}
}

// unkept is the error of a copy that could not be made, which is no fault of the
// file.
func (e *Exports) unkept(err error) error {
	return tool.Errorf(tool.Internal, "the snapshot could not be kept: %w", err).WithPath(e.dir).WithDisk(e.dir)
}

func (x *export) close() error {
	err := x.file.Close()
	if x.path != "" {
		err = errors.Join(err, os.Remove(x.path))
	}
	return err
}

// acquire finds a snapshot for a reader, which gives it back with done.
func (e *Exports) acquire(token string) (*export, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.live[token]
	if x == nil {
		return nil, tool.Errorf(tool.ArtifactNotFound, "there is no export with this token").
			WithHint("an export can be fetched once; present the file again")
	}
	x.users++
	return x, nil
}

func (e *Exports) done(x *export) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	x.since = time.Now()
	if x.users--; x.users == 0 && x.gone {
		return x.close()
	}
	return nil
}

// Open returns a reader of the whole snapshot, and its size. Closing the reader
// leaves the snapshot alone. An unknown token fails with [tool.ArtifactNotFound].
func (e *Exports) Open(token string) (io.ReadCloser, int64, error) {
	x, err := e.acquire(token)
	if err != nil {
		return nil, 0, err
	}
	return x.reader(func() error { return e.done(x) }), x.size, nil
}

// Take is Open for who comes once: closing the reader releases the snapshot. Done
// is called after that, and when there is none.
func (e *Exports) Take(token string, done func()) (io.ReadCloser, error) {
	x, err := e.acquire(token)
	if err != nil {
		done()
		return nil, err
	}
	return x.reader(func() error {
		defer done()
		return errors.Join(e.done(x), e.Release(token))
	}), nil
}

func (x *export) reader(closed func() error) io.ReadCloser {
	return &exportReader{SectionReader: io.NewSectionReader(x.file, 0, x.size), close: sync.OnceValue(closed)}
}

type exportReader struct {
	*io.SectionReader
	close func() error
}

// Close gives the snapshot back.
func (r *exportReader) Close() error { return r.close() }

// ReadAt reads at most len(p) bytes of a snapshot, as [io.ReaderAt] does: fewer
// only with [io.EOF]. An unknown token fails with [tool.ArtifactNotFound].
func (e *Exports) ReadAt(token string, p []byte, offset int64) (int, error) {
	x, err := e.acquire(token)
	if err != nil {
		return 0, err
	}
	n, err := io.NewSectionReader(x.file, 0, x.size).ReadAt(p, offset)
	if closeErr := e.done(x); err == nil {
		err = closeErr
	}
	return n, err
}

// Size is the size of a snapshot. An unknown token fails with
// [tool.ArtifactNotFound].
func (e *Exports) Size(token string) (int64, error) {
	x, err := e.acquire(token)
	if err != nil {
		return 0, err
	}
	return x.size, e.done(x)
}

// Release removes a snapshot. Releasing an unknown one is no error. Open
// readers finish undisturbed.
func (e *Exports) Release(token string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.release(token)
}

func (e *Exports) release(token string) error {
	x := e.live[token]
	if x == nil {
		return nil
	}
	delete(e.live, token)
	e.total -= x.size
	if x.gone = true; x.users == 0 {
		return x.close()
	}
	return nil
}

// Close releases every snapshot.
func (e *Exports) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var err error
	for token := range e.live {
		err = errors.Join(err, e.release(token))
	}
	return err
}

type presentArgs struct {
	Path string `json:"path" required:""`
}

// presented is the text that names an export: the contract's own form.
type presented struct {
	Export string `json:"execution_export"`
	Name   string `json:"name"`
	Size   int64  `json:"size"`
}

func (s *Set) presentArtifact(ctx context.Context, c *call, a presentArgs) (tool.Result, error) {
	name, err := s.fileName(c, a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	f, info, err := s.o.Root.Open(name)
	if err != nil {
		return tool.Result{}, err
	}
	defer f.Close()
	if info.IsDir() {
		return tool.Result{}, refuse("%q is a directory; present one file, such as an archive of it", s.o.Root.Format(name))
	}
	token, size, err := s.o.Exports.Create(ctx, f)
	if err != nil {
		var e *tool.Error
		if errors.As(err, &e) && e.Path == "" {
			e.Path = s.o.Root.Format(name)
		}
		return tool.Result{}, err
	}
	raw, err := json.Marshal(presented{token, workspace.Format(path.Base(name)), size})
	if err != nil {
		return tool.Result{}, errors.Join(err, s.o.Exports.Release(token))
	}
	return tool.Result{Content: []tool.Part{{Type: tool.PartText, Text: string(raw)}}}, nil
}
