// Package store keeps sessions and their environments on disk: bindings,
// tokens, what was provisioned, and who owns what. It knows files and locks,
// and nothing of what runs in an environment.
//
//	<dir>/store.json                        the store's own id
//	      bell                              written whenever a session has changed
//	<dir>/sessions/<id>/binding.json        a [Session]
//	                    token               what authenticates its connections
//	                    token.<identity>    the same for another of its places
//	                    operations/<hash>   starts of processes by operation id
//	                    used.json           what it has used of its budgets
//	                    lock                held by the service that owns it
//	<dir>/environments/<identity>/environment.json   an [Environment]
//	                              provisioned        marks that it was created
//	                              state/             the backend's own
//	                              lock               held while it is made or removed
//
// Directories are 0700 and files 0600. Every file is replaced atomically and
// synced, the directory too, but for the bell, which says nothing. Locks are advisory
// file locks, which the system gives up when their owner dies: two services may share
// a store.
package store

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/caisson-dev/caisson/diskfile"
)

// The errors that callers tell apart, matched with [errors.Is] and [errors.As].
var (
	// ErrNotFound is a session that the store does not have.
	ErrNotFound = errors.New("not in the store")
	// ErrID is an id that cannot be one.
	ErrID = errors.New("must be one path component of at most 64 letters, digits, _ . and -, beginning with a letter or digit")
)

// Store is an open store. Its methods may be called concurrently, also while
// another process has the store open.
type Store struct {
	dir  string
	id   string
	bell *diskfile.Bell
}

// Open opens the store in the directory, which is created when it is missing. The log is
// told what fails nobody.
func Open(dir string, log *slog.Logger) (*Store, error) {
	s := &Store{dir: dir, bell: diskfile.NewBell(dir, "sessions", log)}
	for _, d := range []string{dir, s.sessions(), s.environments()} {
		if err := PrivateDir(d); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(sweep(s.sessions()), sweep(s.environments()), s.sweepUnbound()); err != nil {
		return nil, err
	}
	id, err := s.identify()
	if err != nil {
		return nil, err
	}
	s.id = id
	return s, nil
}

// ID tells this store from every other, also on other machines that use the
// same daemons: 32 hex digits.
func (s *Store) ID() string { return s.id }

// Bell is the file that is written whenever a session of the store has changed: it was
// taken or given up by a service, saved or forgotten. Its directory can be watched.
func (s *Store) Bell() string { return s.bell.File() }

func (s *Store) sessions() string     { return filepath.Join(s.dir, "sessions") }
func (s *Store) environments() string { return filepath.Join(s.dir, "environments") }

// identify reads the store's id, or makes it.
func (s *Store) identify() (string, error) {
	file := filepath.Join(s.dir, "store.json")
	id, err := readID(file)
	if !errors.Is(err, os.ErrNotExist) {
		return id, err
	}
	raw, err := json.Marshal(storeRecord{format, randomHex(16)})
	if err != nil {
		return "", err
	}
	// Another service may be doing the same: the first one wins.
	if err := diskfile.CreateFile(file, raw); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	return readID(file)
}

// storeRecord is what store.json holds.
type storeRecord struct {
	Format int    `json:"format"`
	ID     string `json:"id"`
}

func readID(file string) (string, error) {
	var record storeRecord
	if err := readJSON(file, &record); err != nil {
		return "", err
	}
	if record.Format != format || len(record.ID) != 32 {
		return "", &BrokenError{file, fmt.Errorf("it is not of format %d", format)}
	}
	return record.ID, nil
}

// randomHex makes n random bytes in hex.
func randomHex(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
