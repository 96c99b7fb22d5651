package artifacts

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/caisson-dev/caisson/diskfile"
)

// Content is an open content. It may outlive the deletion of its artifact.
type Content interface {
	io.ReaderAt
	io.Reader
	io.Closer
	Size() int64 // bytes
}

type content struct {
	*os.File
	size int64
}

func (c content) Size() int64 { return c.size }

// OpenContent opens the content id for reading, or says [ErrNotFound].
func (s *Store) OpenContent(id string) (Content, error) {
	sum, err := digest(id)
	if err != nil {
		return nil, err
	}
	f, size, err := s.open(blobPath(sum))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", id, ErrNotFound)
	} else if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", id, err)
	}
	return content{f, size}, nil
}

// open opens a regular file of the store, and says how large it is. What else stands in
// the place of one is not waited for.
func (s *Store) open(path string) (*os.File, int64, error) {
	f, info, err := diskfile.OpenIn(s.root, path)
	if err != nil {
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// Read returns at most length bytes of the content from offset on, and whether
// they are its last. A length that is not positive, or above [MaxRead], is
// MaxRead; an offset at or behind the end gives no bytes and eof.
func (s *Store) Read(id string, offset, length int64) (data []byte, eof bool, err error) {
	if offset < 0 {
		return nil, false, fmt.Errorf("%w: offset %d is negative", ErrInvalid, offset)
	}
	if length <= 0 || length > MaxRead {
		length = MaxRead
	}
	c, err := s.OpenContent(id)
	if err != nil {
		return nil, false, err
	}
	left := max(c.Size()-offset, 0)
	data = make([]byte, min(length, left))
	if len(data) > 0 { // a short read is an error: the content never shrinks
		_, err = c.ReadAt(data, offset)
		if errors.Is(err, io.EOF) && int64(len(data)) == left {
			err = nil
		}
	}
	if err := errors.Join(err, c.Close()); err != nil {
		return nil, false, fmt.Errorf("%s cannot be read: %w", id, err)
	}
	return data, int64(len(data)) == left, nil
}

// Save writes the content to a file of the host, whole or not at all. The path
// is absolute, its directory exists. An existing file is [ErrExists] unless
// overwrite is set; a directory never gives way.
func (s *Store) Save(ctx context.Context, id, path string, overwrite bool) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("%w: the path %q is not absolute", ErrInvalid, path)
	}
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("the artifact cannot be saved: %w", err)
	case info.IsDir():
		return fmt.Errorf("%q is a directory: %w", path, ErrExists)
	case !overwrite:
		return fmt.Errorf("%q: %w", path, ErrExists)
	}
	c, err := s.OpenContent(id)
	if err != nil {
		return err
	}
	tmp, err := copyBeside(ctx, c, path)
	if err = errors.Join(err, c.Close()); err == nil {
		err = place(tmp, path, overwrite)
	}
	if tmp != "" { // it has become the file, unless something went wrong
		if rerr := os.Remove(tmp); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%q: %w", path, ErrExists)
	} else if err != nil {
		return fmt.Errorf("the artifact cannot be saved as %q: %w", path, err)
	}
	return nil
}

// copyBeside writes the content to a temporary file in the directory of path,
// with the permissions that a new file gets, synced. The name is "" when the
// file could not be made.
func copyBeside(ctx context.Context, c Content, path string) (name string, err error) {
	name = filepath.Join(filepath.Dir(path), ".caisson-"+rand.Text())
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return "", err
	}
	buf := make([]byte, chunk)
	for err == nil {
		if err = ctx.Err(); err != nil {
			break
		}
		var n int
		n, err = c.Read(buf)
		if _, werr := f.Write(buf[:n]); werr != nil {
			err = werr
		}
	}
	if errors.Is(err, io.EOF) {
		err = f.Sync()
	}
	return name, errors.Join(err, f.Close())
}

// place gives the temporary file its name. Without overwrite a hard link does
// it, which fails when somebody made the file in the meantime; file systems
// without links get a rename into a name that was reserved just before.
func place(tmp, path string, overwrite bool) error {
	if overwrite {
		return os.Rename(tmp, path)
	}
	err := os.Link(tmp, path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	reserved, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	if err := reserved.Close(); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
