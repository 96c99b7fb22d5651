package backends

import "errors"

// nothingMade is an error before which nothing was begun.
type nothingMade struct{ error }

func (e nothingMade) Unwrap() error { return e.error }

// NothingMade marks an error of [Backend.Open] that came before anything was done to make
// the environment, such as that of a daemon that does not answer: there is certainly nothing
// of it, which need not be asked where it would be. A nil err stays nil.
func NothingMade(err error) error {
	if err == nil {
		return nil
	}
	return nothingMade{err}
}

// MadeNothing reports whether an error of [Backend.Open] is marked by [NothingMade]. Of any
// other one the creation may have begun, and what it left may have outlived its undoing.
func MadeNothing(err error) bool {
	_, ok := errors.AsType[nothingMade](err)
	return ok
}
