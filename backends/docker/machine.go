package docker

import "github.com/caisson-dev/caisson/backends/profile"

// Machine implements [backends.Locator]: folders are those of the daemon's machine.
func (b *Backend) Machine(p profile.Profile) (string, error) {
	e, err := b.chooser.choose(p)
	if err != nil {
		return "", err
	}
	switch e.scheme() {
	case "unix", "npipe":
		return "", nil
	}
	return e.Host, nil
}
