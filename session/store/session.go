package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/diskfile"
)

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
	if err := removeFile(s.session(id, "binding.json")); err != nil {
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
	return removeFile(s.session(id, "token."+identity))
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
