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
	"github.com/caisson-dev/caisson/backends/tool"
)

// maxShareDir leaves room for the name of the worker's socket in the 107 bytes
// that a socket's path may have.
const maxShareDir = 80

// shareFor makes the directory of the host in which the worker may offer its
// socket, and returns "" where that cannot work: not with a daemon elsewhere or
// one that gives ids another meaning. Whether it does work is found out by
// whoever connects; the stream through the engine always does.
//
// Inside it is another user's than outside, or root without the right to pass
// over permissions, so everybody may write to the directory itself; the
// directory above it is private, and on the host nobody else gets past that.
func (b *Backend) shareFor(binding backends.Binding, d daemonInfo, e endpoint) string {
	if !e.near() || d.Remapped || binding.RuntimeDir == "" || strings.Contains(d.System, "Docker Desktop") {
		return ""
	}
	if writesAnywhere(binding.Profile) {
		return ""
	}
	dir := sharePath(binding)
	if len(dir) > maxShareDir {
		return ""
	}
	if err := makeShare(dir); err != nil {
		b.log.Warn("no shared socket: its directory cannot be made", "error", err)
		return ""
	}
	return dir
}

// writesAnywhere reports whether commands may be allowed to write to the shared
// directory. It is the host's: there they could fill its disk, or leave programs
// that belong to root. The worker writes there, and it is ours.
func writesAnywhere(p profile.Profile) bool {
	return p.MaxPermissionMode == tool.Unconfined || slices.ContainsFunc(p.WritablePaths, func(path string) bool {
		path = strings.TrimSuffix(path, "/") + "/"
		return strings.HasPrefix(shareDir+"/", path) || strings.HasPrefix(path, shareDir+"/")
	})
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
	return os.Chmod(dir, 0o777) // past the umask
}

// isDirectory reports whether a directory, and no link to one, is there.
func isDirectory(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().Type() == fs.ModeDir
}

// removeShare removes what makeShare made. What was put there from inside by
// another user, in directories of theirs, cannot be removed and stays.
func (b *Backend) removeShare(dir string) {
	if dir == "" {
		return
	}
	if err := os.RemoveAll(dir); err != nil {
		b.log.Warn("the directory of a shared socket could not be removed", "directory", dir, "error", err)
	}
}
