package backends

import (
	"errors"
	"strings"
	"testing"
)

// kept is a backend that keeps connections; plain is one that does not.
type (
	plain struct {
		Backend
		kind string
	}
	kept struct {
		plain
		closed *[]string
	}
)

func (p plain) Kind() string { return p.kind }

func (k kept) Close() error {
	*k.closed = append(*k.closed, k.kind)
	return errors.New(k.kind + " failed")
}

func TestRegistryClose(t *testing.T) {
	var closed []string
	r := NewRegistry(kept{plain{kind: "c"}, &closed}, plain{kind: "b"}, kept{plain{kind: "a"}, &closed})
	err := r.Close()
	if got := strings.Join(closed, " "); got != "a c" {
		t.Errorf("closed %q", got)
	}
	if err == nil || err.Error() != "a failed\nc failed" {
		t.Errorf("got %v", err)
	}
}
