package store

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/diskfile"
)

// Environment describes an environment for whoever looks at its directory.
type Environment struct {
	Format    int       `json:"format"`
	Identity  string    `json:"identity"`
	Backend   string    `json:"backend"`
	Profile   string    `json:"profile"`
	Shared    bool      `json:"shared,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	// Incarnation tells this environment from every other one of its identity,
	// before and after. [Store.Describe] makes it.
	Incarnation string `json:"incarnation,omitempty"`
}

func (s *Store) environment(identity string, names ...string) string {
	return filepath.Join(append([]string{s.environments(), identity}, names...)...)
}

// Describe writes an environment's description, unless it has one, and returns
// the one that it has.
func (s *Store) Describe(e Environment) (Environment, error) {
	if err := PrivateDir(s.environment(e.Identity)); err != nil {
		return Environment{}, err
	}
	file := s.environment(e.Identity, "environment.json")
	var old Environment
	err := readJSON(file, &old)
	switch {
	case errors.Is(err, os.ErrNotExist):
		e.Format, e.Incarnation = format, randomHex(8)
		return e, writeJSON(file, e)
	case err != nil:
		return Environment{}, err
	case old.Format != format || old.Identity != e.Identity:
		return Environment{}, &BrokenError{file, errors.New("it describes another environment")}
	}
	return old, nil
}

// Renew notes that the environment was not created, as another incarnation of
// the one that e describes, and returns that one's description. Its lock is held
// by the caller.
func (s *Store) Renew(e Environment) (Environment, error) {
	if err := s.MarkProvisioned(e.Identity, false); err != nil {
		return Environment{}, err
	}
	e.Incarnation = randomHex(8)
	return e, writeJSON(s.environment(e.Identity, "environment.json"), e)
}

// StatePath is where the environment's own directory for its backend is or would be.
func (s *Store) StatePath(identity string) string { return s.environment(identity, "state") }

// StateDir is the environment's own directory for its backend, which is made.
func (s *Store) StateDir(identity string) (string, error) {
	dir := s.StatePath(identity)
	return dir, PrivateDir(dir)
}

// Described reports whether the environment has a description, which stands before
// anything is created.
func (s *Store) Described(identity string) (bool, error) {
	return exists(s.environment(identity, "environment.json"))
}

// Undescribe notes that nothing was created after all. Its lock is held by the caller.
func (s *Store) Undescribe(identity string) error {
	if err := removeFile(s.environment(identity, "environment.json")); err != nil {
		return err
	}
	return diskfile.SyncDir(s.environment(identity))
}

// Provisioned reports whether the environment was created.
func (s *Store) Provisioned(identity string) (bool, error) {
	return exists(s.environment(identity, "provisioned"))
}

// MarkProvisioned notes that the environment was created, or that it is not
// any more.
func (s *Store) MarkProvisioned(identity string, is bool) error {
	file := s.environment(identity, "provisioned")
	if is {
		return diskfile.WriteFile(file, nil, 0o600)
	}
	if err := removeFile(file); err != nil {
		return err
	}
	return diskfile.SyncDir(filepath.Dir(file))
}

// RemoveEnvironment removes the environment's directory. Its lock is held by
// the caller.
func (s *Store) RemoveEnvironment(identity string) error {
	if err := removeLocked(s.environment(identity)); err != nil {
		return err
	}
	return diskfile.SyncDir(s.environments())
}

// Environments lists the identities that the store has.
func (s *Store) Environments() ([]string, error) {
	entries, err := os.ReadDir(s.environments())
	if err != nil {
		return nil, err
	}
	var all []string
	for _, e := range entries {
		if e.IsDir() && profile.IsIdentity(e.Name()) {
			all = append(all, e.Name())
		}
	}
	return all, nil
}
