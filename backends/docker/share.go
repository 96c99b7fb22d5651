package docker

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
)

// maxShareDir leaves room for the name of a socket in the 107 bytes that a socket's
// path may have.
const maxShareDir = 80

// shareFor makes the directory of the host in which it listens for the worker, and
// returns "" where that cannot work: not with a daemon elsewhere. Whether it does work is
// found out by whoever connects; the stream through the engine always does.
//
// The container sees it read-only, unless something else that is mounted there holds it.
// Who connects there may be any user, so the directory is open to all, but not to be
// listed; the one above it is private, and on the host nobody else gets past that.
func (b *Backend) shareFor(binding backends.Binding, d daemonInfo, e endpoint) string {
	if !e.near() || binding.RuntimeDir == "" || strings.Contains(d.System, "Docker Desktop") {
		return ""
	}
	dir := sharePath(binding)
	if len(dir) > maxShareDir || mounted(binding.Profile, dir) {
		return ""
	}
	if err := makeShare(dir); err != nil {
		b.log.Warn("no shared socket: its directory cannot be made", "error", err)
		return ""
	}
	return dir
}

// mounted reports whether the profile has the container write to where dir is.
func mounted(p profile.Profile, dir string) bool {
	var sources []string
	if !p.MountReadOnly {
		sources = append(sources, p.HostWorkspace)
	}
	for _, m := range p.Mounts {
		if !m.ReadOnly {
			sources = append(sources, m.Source)
		}
	}
	return slices.ContainsFunc(sources, func(source string) bool {
		if source == "" {
			return false
		}
		below, err := filepath.Rel(resolved(source), resolved(dir))
		return err == nil && filepath.IsLocal(below)
	})
}

// resolved is a path with the links of what is there of it followed.
func resolved(path string) string {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		return to
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(resolved(parent), filepath.Base(path))
}

// sharePath is a directory of the environment's own.
func sharePath(binding backends.Binding) string {
	name := strings.TrimPrefix(binding.Environment, "caisson-")
	return filepath.Join(binding.RuntimeDir, "d-"+name[:min(len(name), 12)])
}

// makeShare makes the directory, or finds it, below a private one.
func makeShare(dir string) error {
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(parent)
	if err != nil {
		return err
	}
	if !info.IsDir() || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s is not private to its user (%s)", parent, info.Mode())
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !isDirectory(dir) {
		return err
	}
	return os.Chmod(dir, 0o711) // past the umask
}

// isDirectory reports whether a directory, and no link to one, is there.
func isDirectory(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().Type() == fs.ModeDir
}

// removeShare removes what makeShare made, and the sockets of services that were killed.
func (b *Backend) removeShare(dir string) {
	if dir == "" {
		return
	}
	if err := os.RemoveAll(dir); err != nil {
		b.log.Warn("the directory of a shared socket could not be removed", "directory", dir, "error", err)
	}
}
