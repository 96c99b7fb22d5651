package session

import (
	"errors"
	"strings"

	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
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

// explained is an error of the place of this profile. One about a path that is the
// workspace's in another place of the session says how it is written everywhere: the
// places see one directory, under paths of their own.
func (s *live) explained(p profile.Profile, err error) error {
	e, ok := errors.AsType[*tool.Error](err)
	if !ok || e.Kind != tool.PathOutsideRoot || !s.divided() {
		return at(p, err)
	}
	for _, other := range s.lasting() {
		s.mu.Lock()
		root := other.saved.Root
		s.mu.Unlock()
		relative, inside := below(root, e.Path)
		if !inside || other.saved.Profile.Name == p.Name {
			continue
		}
		told := *e
		told.Hint = ""
		err = told.WithHint("%s is what the environment of the profile %q calls the workspace. Write the path relative to it, as %s: that is right everywhere.",
			root, other.saved.Profile.Name, relative)
		break
	}
	return at(p, err)
}

// below is a path relative to a root that it is in.
func below(root, path string) (relative string, ok bool) {
	if root == "" || root == "/" { // of a guest; every path would be in it
		return "", false
	}
	rest, ok := strings.CutPrefix(path, strings.TrimRight(root, "/"))
	if rest == "" {
		return ".", ok
	}
	return strings.TrimLeft(rest, "/"), ok && rest[0] == '/'
}
