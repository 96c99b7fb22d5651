package artifacts

import (
	"context"
	"io"
	"log/slog"
	"os"
	"time"
)

// Options are what a store may be given; the zero value will do.
type Options struct {
	// Log is told of records that cannot be read; nil discards.
	Log *slog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Store is an open store. Its methods may be called concurrently, also while
// other processes use the same directory.
type Store struct {
	root *os.Root
	log  *slog.Logger
	now  func() time.Time
}

// Open opens the store in the directory, which is made, private to the user,
// when it is not there.
func Open(dir string, o Options) (*Store, error) {
	panic("unwritten")
}

// Close releases the directory; open readers stay usable.
func (s *Store) Close() error { return s.root.Close() }

// PublishRequest describes a content that is about to arrive.
type PublishRequest struct {
	SessionID string
	// Name is a base name of at most 255 bytes.
	Name string
	// SourcePath and Profile say where it comes from.
	SourcePath string
	Profile    string
	// Size is what the sender declared, in bytes; negative when it did not.
	Size int64
}

// Publish stores the content of r as it arrives, hashing while it writes. More
// than [MaxSize] is [ErrTooLarge], another size than the declared one
// [ErrSize]; a failed publication leaves nothing behind. The artifact is on
// disk, synced, when Publish returns. Between reads ctx is heeded; a reader
// that blocks is the caller's to close.
func (s *Store) Publish(ctx context.Context, req PublishRequest, r io.Reader) (Artifact, error) {
	panic("unwritten")
}

// List returns the artifacts of the session, or of every session when it is
// empty, oldest first. Records that cannot be read are logged and left alone.
func (s *Store) List(session string) ([]Artifact, error) { panic("unwritten") }

// Get returns the artifact that the URI names, or [ErrNotFound].
func (s *Store) Get(uri string) (Artifact, error) { panic("unwritten") }

// Find returns the newest artifact with the content id, or [ErrNotFound].
func (s *Store) Find(id string) (Artifact, error) { panic("unwritten") }

// Content is an open content. It may outlive the deletion of its artifact.
type Content interface {
	io.ReaderAt
	io.Reader
	io.Closer
	Size() int64
}

// OpenContent opens the content id for reading, or says [ErrNotFound].
func (s *Store) OpenContent(id string) (Content, error) { panic("unwritten") }

// Read returns at most length bytes of the content from offset on, and whether
// they are its last. A length that is not positive, or above [MaxRead], is
// MaxRead; an offset at or behind the end gives no bytes and eof.
func (s *Store) Read(id string, offset, length int64) (data []byte, eof bool, err error) {
	panic("unwritten")
}

// Save writes the content to a file of the host, whole or not at all. The path
// is absolute, its directory exists. An existing file is [ErrExists] unless
// overwrite is set.
func (s *Store) Save(ctx context.Context, id, path string, overwrite bool) error {
	panic("unwritten")
}

// Delete removes the artifact that the URI names, and its content when nothing
// else refers to it. What is not there is [ErrNotFound].
func (s *Store) Delete(ctx context.Context, uri string) error { panic("unwritten") }

// Expire removes the artifacts that are older than keep, when keep is
// positive, and what crashes left behind; it returns what it removed.
func (s *Store) Expire(ctx context.Context, keep time.Duration) ([]Artifact, error) {
	panic("unwritten")
}
