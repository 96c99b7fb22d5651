package session

import (
	"errors"

	"github.com/caisson-dev/caisson/backends/profile"
)

// PlaceError is an error with the environment that it is about. It reads as its
// cause does.
type PlaceError struct {
	Profile string
	Backend string
	Err     error
}

func (e *PlaceError) Error() string { return e.Err.Error() }

func (e *PlaceError) Unwrap() error { return e.Err }

// at says which profile an error is about, unless it says so already.
func at(p profile.Profile, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*PlaceError](err); ok {
		return err
	}
	return &PlaceError{Profile: p.Name, Backend: p.Backend, Err: err}
}
