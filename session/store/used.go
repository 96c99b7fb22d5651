package store

import (
	"errors"
	"os"
	"time"
)

// Used is what a session has used of its budgets and rates. It has a file of its own, since
// it changes with calls and the binding does not.
type Used struct {
	Calls       int64         `json:"calls"`
	Runtime     time.Duration `json:"runtime"`
	OutputBytes int64         `json:"output_bytes"`
	// Rates is what is left of the rates, in the order of the guard's policies.
	Rates []Rate `json:"rates,omitempty"`
}

// Rate is how many calls could be made at once at a time; that is zero for no rate.
type Rate struct {
	Calls float64   `json:"calls"`
	At    time.Time `json:"at"`
}

// Used reads what the session has used; nothing where nothing was saved. A torn
// file is a [BrokenError]: to take it for nothing would be a new budget.
func (s *Store) Used(session string) (Used, error) {
	var u Used
	err := readJSON(s.session(session, "used.json"), &u)
	if errors.Is(err, os.ErrNotExist) {
		return Used{}, nil
	}
	return u, err
}

// SaveUsed writes what the session has used. The session's lock is held by the
// caller.
func (s *Store) SaveUsed(session string, u Used) error {
	return writeJSON(s.session(session, "used.json"), u)
}
