package worker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/workspace"
)

// removeWorkspace removes a workspace with what is in it. The directory itself
// stays when it is a mount point.
func removeWorkspace(dir string) error {
	if filepath.Dir(dir) == dir {
		return fmt.Errorf("the workspace is %s: that is never removed", dir)
	}
	// A root keeps the removal inside, whatever is swapped in meanwhile.
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove the workspace: %w", err)
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return fmt.Errorf("remove the workspace: %w", err)
	}
	for _, e := range entries {
		if err := workspace.RemoveAll(root, e.Name()); err != nil {
			return fmt.Errorf("remove the workspace: %w", err)
		}
	}
	err = os.Remove(dir)
	if err != nil && !errors.Is(err, syscall.EBUSY) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("remove the workspace: %w", err)
	}
	return nil
}

// forgetSession removes what the state directory holds of a session, the lock of the
// worker that calls it too. Commands that were not confined may have put links there:
// none is followed.
func forgetSession(state, session string) error {
	dir := SessionDir(state, session)
	fail := func(err error) error {
		return tool.Errorf(tool.Internal, "forget the session: what is kept of it in %s cannot be removed: %w", dir, err).WithPath(dir).
			WithHint("look at what is left there; the processes of the session have ended")
	}
	root, err := os.OpenRoot(state)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fail(err)
	}
	defer root.Close()
	sessions, err := openDirectory(root, filepath.Base(filepath.Dir(dir)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fail(err)
	}
	defer sessions.Close()
	if err := workspace.RemoveAll(sessions, filepath.Base(dir)); err != nil {
		return fail(err)
	}
	return nil
}

// openDirectory opens a directory of root that is no link.
func openDirectory(root *os.Root, name string) (*os.Root, error) {
	there, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	opened, err := root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	is, err := opened.Stat(".")
	if err == nil && !os.SameFile(there, is) {
		err = fmt.Errorf("%s is a link", filepath.Join(root.Name(), name))
	}
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return opened, nil
}
