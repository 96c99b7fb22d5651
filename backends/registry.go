package backends

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// Registry holds the kinds that this build has, by name.
type Registry struct {
	kinds map[string]Backend
}

// NewRegistry makes a registry of the backends. Two of one kind is a mistake
// of the program and panics.
func NewRegistry(all ...Backend) *Registry {
	r := &Registry{kinds: make(map[string]Backend, len(all))}
	for _, b := range all {
		if r.kinds[b.Kind()] != nil {
			panic(fmt.Sprintf("backends: two backends of kind %q", b.Kind()))
		}
		r.kinds[b.Kind()] = b
	}
	return r
}

// Get returns the backend of the kind, or false.
func (r *Registry) Get(kind string) (Backend, bool) {
	b, ok := r.kinds[kind]
	return b, ok
}

// Kinds are the names of the backends, sorted.
func (r *Registry) Kinds() []string { return slices.Sorted(maps.Keys(r.kinds)) }

// Close ends the connections that backends keep, where they keep any. No
// environment of theirs may be in use any more.
func (r *Registry) Close() error {
	var all []error
	for _, kind := range r.Kinds() {
		if c, ok := r.kinds[kind].(io.Closer); ok {
			all = append(all, c.Close())
		}
	}
	return errors.Join(all...)
}
