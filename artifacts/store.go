package artifacts

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/caisson-dev/caisson/diskfile"
)

// The directories and files of a store.
const (
	blobsDir = "blobs"
	indexDir = "index"
	tmpDir   = "tmp"
	lockFile = "lock"
)

// Options are what a store may be given; the zero value will do.
type Options struct {
	// Log is told of records that cannot be read, and what fails nobody; nil discards.
	Log *slog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Store is an open store. Its methods may be called concurrently, also while
// other processes use the same directory.
type Store struct {
	root *os.Root
	bell *diskfile.Bell
	log  *slog.Logger
	now  func() time.Time
}

// Open opens the store in the directory, which is made, private to the user,
// when it is not there.
func Open(dir string, o Options) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the artifact store cannot be made: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("the artifact store cannot be opened: %w", err)
	}
	for _, d := range []string{blobsDir, indexDir, tmpDir} {
		if err := root.Mkdir(d, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, errors.Join(fmt.Errorf("the artifact store cannot be made: %w", err), root.Close())
		}
	}
	s := &Store{root: root, log: o.Log, now: o.Now}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.bell = diskfile.NewBell(dir, "artifacts", s.log)
	if s.now == nil {
		s.now = time.Now
	}
	return s, nil
}

// Close releases the directory; open contents stay usable.
func (s *Store) Close() error { return s.root.Close() }

// Bell is the file that is written whenever the list of artifacts has changed, by
// whichever process. Its directory can be watched.
func (s *Store) Bell() string { return s.bell.File() }

// List returns the artifacts of the session, or of every session when it is
// empty, oldest first. Records that cannot be read are logged and left alone.
func (s *Store) List(session string) ([]Artifact, error) {
	if session != "" {
		if err := checkSession(session); err != nil {
			return nil, err
		}
	}
	records, err := s.records(session, "")
	if err != nil {
		return nil, err
	}
	all := make([]Artifact, len(records))
	for i, r := range records {
		all[i] = r.Artifact
	}
	return all, nil
}

// Find returns the artifact with the content id that was published last, in
// whichever session, or [ErrNotFound].
func (s *Store) Find(id string) (Artifact, error) {
	sum, err := digest(id)
	if err != nil {
		return Artifact{}, err
	}
	records, err := s.records("", sum)
	if err != nil {
		return Artifact{}, err
	}
	if len(records) == 0 {
		return Artifact{}, fmt.Errorf("%s: %w", id, ErrNotFound)
	}
	return records[len(records)-1].Artifact, nil
}

// Delete removes the artifact that the URI names, and its content when nothing
// else refers to it. What is not there is [ErrNotFound].
func (s *Store) Delete(ctx context.Context, uri string) error {
	session, id, name, err := ParseURI(uri)
	if err != nil {
		return err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	path := recordPath(session, id, name)
	if err := s.root.Remove(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", uri, ErrNotFound)
	} else if err != nil {
		return fmt.Errorf("%s cannot be deleted: %w", uri, err)
	}
	s.bell.Ring()
	return s.untie(session, id)
}

// untie removes what a removed record may have been the last to need: the
// session's directory and the content. The lock is held.
func (s *Store) untie(session, id string) error {
	sum, err := digest(id)
	if err != nil {
		return err
	}
	dir := indexDir + "/" + session
	if err := s.syncDir(dir); err != nil {
		return err
	}
	// A directory that still holds records stays; that is the answer wanted.
	if names, err := s.names(dir); err == nil && len(names) == 0 {
		if err := s.remove(dir); err != nil {
			return fmt.Errorf("the index of session %s cannot be removed: %w", session, err)
		}
	}
	used, err := s.referenced(sum)
	if err != nil || used {
		return err
	}
	if err := s.remove(blobPath(sum)); err != nil {
		return fmt.Errorf("the content %s cannot be removed: %w", id, err)
	}
	return s.syncDir(blobsDir)
}

// staleAfter is how long a content that stopped arriving is left in tmp: no
// publication goes without a byte for that long.
const staleAfter = 24 * time.Hour

// Expire removes the artifacts that are older than keep, when keep is
// positive, and what crashes left behind; it returns what it removed.
func (s *Store) Expire(ctx context.Context, keep time.Duration) ([]Artifact, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	var removed []Artifact
	defer func() {
		if len(removed) > 0 {
			s.bell.Ring()
		}
	}()
	if keep > 0 {
		records, err := s.records("", "")
		if err != nil {
			return nil, err
		}
		deadline := s.now().Add(-keep)
		for _, r := range records {
			if !r.CreatedAt.Before(deadline) {
				break // they are in the order of their age
			}
			if err := ctx.Err(); err != nil {
				return removed, err
			}
			if err := s.root.Remove(r.path); err != nil {
				return removed, fmt.Errorf("%s cannot be expired: %w", r.URI, err)
			}
			removed = append(removed, r.Artifact)
			if err := s.untie(r.SessionID, r.ID); err != nil {
				return removed, err
			}
		}
	}
	return removed, errors.Join(s.sweepBlobs(), s.sweepTmp())
}

// sweepBlobs removes contents that no record refers to. The lock is held, so
// none of them is about to be tied.
func (s *Store) sweepBlobs() error {
	names, err := s.names(blobsDir)
	if err != nil {
		return err
	}
	used := make(map[string]bool)
	err = s.walkIndex("", func(_, file string) error {
		if sum, ok := recordDigest(file); ok {
			used[sum] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		if !isHex64(name) || used[name] {
			continue // not ours, or needed
		}
		if err := s.remove(blobPath(name)); err != nil {
			return fmt.Errorf("an unreferenced content cannot be removed: %w", err)
		}
	}
	return nil
}

func (s *Store) sweepTmp() error {
	names, err := s.names(tmpDir)
	if err != nil {
		return err
	}
	for _, name := range names {
		path := tmpDir + "/" + name
		info, err := s.root.Lstat(path)
		if err != nil || s.now().Sub(info.ModTime()) < staleAfter {
			continue // it has just been published, or is arriving
		}
		if err := s.remove(path); err != nil {
			return fmt.Errorf("an abandoned content cannot be removed: %w", err)
		}
	}
	return nil
}

// names lists a directory of the store, in no order. One that is gone is empty.
func (s *Store) names(dir string) ([]string, error) {
	f, err := s.root.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("the artifact store cannot be read: %w", err)
	}
	names, err := list(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("the artifact store cannot be read: %w", err)
	}
	return names, nil
}

// list are the names in a directory. One that was removed since it was opened has none.
func list(dir *os.File) ([]string, error) {
	names, err := dir.Readdirnames(-1)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return names, err
}

// createTmp makes a file of a random name in tmp.
func (s *Store) createTmp(mode fs.FileMode) (*os.File, string, error) {
	path := tmpDir + "/" + rand.Text()
	f, err := s.root.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		if at, ok := errors.AsType[*fs.PathError](err); ok {
			at.Path = filepath.Join(s.root.Name(), at.Path) // whoever has to make room looks there
		}
		return nil, "", fmt.Errorf("the artifact store cannot be written: %w", err)
	}
	return f, path, nil
}

// writeAtomic puts the data under the path, whole and synced.
func (s *Store) writeAtomic(path, dir string, data []byte) error {
	f, tmp, err := s.createTmp(0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = s.root.Rename(tmp, path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("the artifact store cannot be written: %w", err), s.remove(tmp))
	}
	return s.syncDir(dir)
}

// remove removes a file, or an empty directory, that may be gone already.
func (s *Store) remove(path string) error {
	if err := s.root.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// syncDir makes the names in a directory of the store last.
func (s *Store) syncDir(dir string) error {
	if err := diskfile.SyncDirIn(s.root, dir); err != nil {
		return fmt.Errorf("the artifact store cannot be synced: %w", err)
	}
	return nil
}
