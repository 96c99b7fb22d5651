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
// synced, the directory too, but for the bell, which says nothing. Locks are advisory file locks, which the system
// gives up when their owner dies: two services may share a store.
package store

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/diskfile"
)

// format is the version of the files, and formatPlaces that of a binding with
// several places, limits or a guard of its own, or registered tools: a build that
// knows nothing of them refuses it, and does not run everything in the first place,
// without limits, unguarded.
const (
	format       = 1
	formatPlaces = 2
)

// maxRecord bounds what is read of any record, in bytes. The largest is a
// binding with its profile.
const maxRecord = 1 << 20

// The errors that callers tell apart, matched with [errors.Is] and [errors.As].
var (
	// ErrNotFound is a session that the store does not have.
	ErrNotFound = errors.New("not in the store")
	// ErrID is an id that cannot be one.
	ErrID = errors.New("must be one path component of at most 64 letters, digits, _ . and -, beginning with a letter or digit")
)

// BrokenError is a file that is torn or not the store's. It is left alone.
type BrokenError struct {
	File string
	Err  error
}

func (e *BrokenError) Error() string { return fmt.Sprintf("%s cannot be used: %v", e.File, e.Err) }

func (e *BrokenError) Unwrap() error { return e.Err }

// Session is the saved binding of a session: all that resumes it.
type Session struct {
	Format int    `json:"format"`
	ID     string `json:"id"`
	// Workspace is the URI of the opened folder and Folder its path; both ""
	// for a session that belongs to no folder.
	Workspace string `json:"workspace,omitempty"`
	Folder    string `json:"folder,omitempty"`
	// Place is the environment of all that Overrides send nowhere else. Its members
	// stand among those of the session.
	Place
	// Places are the others, each with a profile of its own name, and Overrides
	// say what goes there, in the order of writing.
	Places    []Place    `json:"places,omitempty"`
	Overrides []Override `json:"overrides,omitempty"`
	// Limits hold in every environment of the session: those of the project when the
	// session was made, and of the session's own constraints. The profiles of its
	// places are within them; one that it gets later is to be.
	Limits []Limits `json:"limits,omitempty"`
	// ToolLimits and JobLimits are the session's constraints on tool calls alone and
	// on jobs alone.
	ToolLimits *Limits `json:"tool_limits,omitempty"`
	JobLimits  *Limits `json:"job_limits,omitempty"`
	// Plugins are the registered tools that the session has.
	Plugins []Plugin `json:"plugins,omitempty"`
	// Guard is what admits the session's calls, as it was when the session was made;
	// empty for none. It is kept as it is and read elsewhere.
	Guard json.RawMessage `json:"guard,omitempty"`

	// Job says that the session exists for one job, and is over with it.
	Job bool `json:"job,omitempty"`

	ParentID   string            `json:"parent_id,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	CreatedAt  time.Time         `json:"created_at"`
	LastUsedAt time.Time         `json:"last_used_at"`
	// Closed says that the session was closed.
	Closed bool `json:"closed,omitempty"`
	// Failure is why the environment did not come back when the session was last
	// used, or why it could not be ended; nil where neither was so. Resuming the
	// session takes it away, for another try.
	Failure *Failure `json:"failure,omitempty"`
}

// Failure is an error as it is kept: what a person needs to know of it.
type Failure struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

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

var sessionID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`) })

// CheckID says with [ErrID] that an id cannot be a session's.
func CheckID(id string) error {
	if !sessionID().MatchString(id) {
		return ErrID
	}
	return nil
}

// NewID makes a session's id.
func NewID() string { return "s-" + randomHex(10) }

// randomHex makes n random bytes in hex.
func randomHex(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

func (s *Store) session(id string, names ...string) string {
	return filepath.Join(append([]string{s.sessions(), id}, names...)...)
}

// Load reads a session: [ErrNotFound] when there is none, [BrokenError] when
// its binding is torn or another one's.
func (s *Store) Load(id string) (Session, error) {
	if err := CheckID(id); err != nil {
		return Session{}, err
	}
	file := s.session(id, "binding.json")
	var b Session
	err := readJSON(file, &b)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return Session{}, ErrNotFound
	case err != nil:
		return Session{}, err
	case b.Format != format && b.Format != formatPlaces:
		return Session{}, &BrokenError{file, fmt.Errorf("it is of format %d, and this build knows %d and %d", b.Format, format, formatPlaces)}
	case b.ID != id:
		return Session{}, &BrokenError{file, fmt.Errorf("it belongs to the session %q", b.ID)}
	}
	for _, p := range b.All() {
		if !profile.IsIdentity(p.Environment) {
			return Session{}, &BrokenError{file, fmt.Errorf("%q is not an environment", p.Environment)}
		}
	}
	return b, nil
}

// Save writes a session's binding. Its directory exists: [Store.LockSession]
// made it.
func (s *Store) Save(b Session) error {
	b.Format = format
	if b.more() {
		b.Format = formatPlaces
	}
	if err := writeJSON(s.session(b.ID, "binding.json"), b); err != nil {
		return err
	}
	s.bell.Ring()
	return nil
}

// more reports whether the binding says what builds of the first format would leave
// out.
func (b *Session) more() bool {
	return len(b.Places) > 0 || len(b.Packs) > 0 || len(b.Plugins) > 0 || len(b.Guard) > 0 || b.ToolLimits != nil || b.JobLimits != nil
}

// Listed is one entry of List.
type Listed struct {
	ID string
	Session
	Err error // why it cannot be read
}

// List reads all sessions, in no order.
func (s *Store) List() ([]Listed, error) {
	ids, err := s.IDs()
	if err != nil {
		return nil, err
	}
	var all []Listed
	for _, id := range ids {
		b, err := s.Load(id)
		if errors.Is(err, ErrNotFound) {
			continue // being made or removed just now
		}
		all = append(all, Listed{ID: id, Session: b, Err: err})
	}
	return all, nil
}

// IDs lists the sessions that have a directory, in no order. One that is just being made
// or removed has no binding.
func (s *Store) IDs() ([]string, error) {
	entries, err := os.ReadDir(s.sessions())
	if err != nil {
		return nil, err
	}
	var all []string
	for _, e := range entries {
		if CheckID(e.Name()) == nil && e.IsDir() {
			all = append(all, e.Name())
		}
	}
	return all, nil
}

// Forget removes a session's directory. Its lock is held by the caller.
func (s *Store) Forget(id string) error {
	// The binding goes first and atomically: what is left of a crash in
	// between is no session.
	if err := os.Remove(s.session(id, "binding.json")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := removeLocked(s.session(id)); err != nil {
		return err
	}
	s.bell.Ring()
	return diskfile.SyncDir(s.sessions())
}

// Token reads the token of the session's own place, or makes it: 64 hex digits.
func (s *Store) Token(id string) (string, error) { return s.token(s.session(id, "token")) }

// PlaceToken is Token for the place of the session with this identity.
func (s *Store) PlaceToken(id, identity string) (string, error) {
	return s.token(s.session(id, "token."+identity))
}

// ForgetPlaceToken removes the token of a place that the session has no more.
func (s *Store) ForgetPlaceToken(id, identity string) error {
	err := os.Remove(s.session(id, "token."+identity))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func (s *Store) token(file string) (string, error) {
	raw, err := readFile(file)
	if errors.Is(err, os.ErrNotExist) {
		token := randomHex(32)
		return token, diskfile.WriteFile(file, []byte(token), 0o600)
	}
	if err != nil {
		return "", err
	}
	if len(raw) != 64 {
		return "", &BrokenError{file, errors.New("it is not 64 characters long")}
	}
	return string(raw), nil
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
	_, err := os.Lstat(s.environment(identity, "environment.json"))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Undescribe notes that nothing was created after all. Its lock is held by the caller.
func (s *Store) Undescribe(identity string) error {
	if err := os.Remove(s.environment(identity, "environment.json")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return diskfile.SyncDir(s.environment(identity))
}

// Provisioned reports whether the environment was created.
func (s *Store) Provisioned(identity string) (bool, error) {
	_, err := os.Lstat(s.environment(identity, "provisioned"))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// MarkProvisioned notes that the environment was created, or that it is not
// any more.
func (s *Store) MarkProvisioned(identity string, is bool) error {
	file := s.environment(identity, "provisioned")
	if is {
		return diskfile.WriteFile(file, nil, 0o600)
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
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

// readJSON reads one record. What cannot be decoded is a [BrokenError].
func readJSON(file string, v any) error {
	raw, err := readFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return &BrokenError{file, err}
	}
	return nil
}

func writeJSON(file string, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if raw = append(raw, '\n'); len(raw) > maxRecord {
		return fmt.Errorf("%s would have %d bytes, and could not be read again: it may have %d", file, len(raw), maxRecord)
	}
	return diskfile.WriteFile(file, raw, 0o600)
}

// readFile reads a regular file of at most maxRecord bytes.
func readFile(file string) ([]byte, error) {
	foreign := &BrokenError{file, fmt.Errorf("it is not a file of at most %d bytes", maxRecord)}
	f, info, err := diskfile.Open(file)
	if errors.Is(err, diskfile.ErrNotRegular) {
		return nil, foreign
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > maxRecord {
		return nil, foreign
	}
	return io.ReadAll(io.LimitReader(f, maxRecord))
}
