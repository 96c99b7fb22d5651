package docker

import (
	"context"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
)

var _ backends.Prober = (*Backend)(nil)

// Probe asks the daemon that the environment chooses, as a profile does that
// names none, for what it is.
func (b *Backend) Probe(ctx context.Context) error {
	e, err := b.engineFor(profile.Profile{})
	if err != nil {
		return err
	}
	_, err = e.hello(ctx)
	return err
}
