package worker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

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
