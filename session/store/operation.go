package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/diskfile"
)

// maxOperations is how many operations a session remembers. The oldest go:
// a start is repeated soon after it was made, or never.
const maxOperations = 1024

// Operation is a start of a process that its caller named, so that asking
// again does not start it again.
type Operation struct {
	ID string `json:"id"`
	// Parameters is a hash of what was asked for.
	Parameters string `json:"parameters"`
	// Process is the process's id in its environment; "" while the start's
	// reply is not known.
	Process string    `json:"process,omitempty"`
	At      time.Time `json:"at"`
}

func (s *Store) operation(session, id string) string {
	sum := sha256.Sum256([]byte(id))
	return s.session(session, "operations", hex.EncodeToString(sum[:]))
}

// Operation reads an operation of the session, or says [ErrNotFound].
func (s *Store) Operation(session, id string) (Operation, error) {
	file := s.operation(session, id)
	var o Operation
	err := readJSON(file, &o)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return o, ErrNotFound
	case err != nil:
		return o, err
	case o.ID != id:
		return o, &BrokenError{file, fmt.Errorf("it belongs to the operation %q", o.ID)}
	}
	return o, nil
}

// SaveOperation writes an operation. The session's lock is held by the caller.
func (s *Store) SaveOperation(session string, o Operation) error {
	file := s.operation(session, o.ID)
	if err := PrivateDir(filepath.Dir(file)); err != nil {
		return err
	}
	if o.Process == "" {
		if err := s.trimOperations(filepath.Dir(file)); err != nil {
			return err
		}
	}
	return writeJSON(file, o)
}

// ForgetOperation removes an operation that is known to have started nothing.
func (s *Store) ForgetOperation(session, id string) error {
	file := s.operation(session, id)
	if err := removeFile(file); err != nil {
		return err
	}
	return diskfile.SyncDir(filepath.Dir(file))
}

// trimOperations makes room for one more.
func (s *Store) trimOperations(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) < maxOperations {
		return err
	}
	type aged struct {
		name string
		at   time.Time
	}
	var all []aged
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			all = append(all, aged{e.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(all, func(a, b aged) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return strings.Compare(a.name, b.name)
	})
	for i := 0; i <= len(all)-maxOperations; i++ {
		if err := os.Remove(filepath.Join(dir, all[i].name)); err != nil {
			return err
		}
	}
	return nil
}
