package store

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/caisson-dev/caisson/diskfile"
)

// permissionsMatter says that mode bits keep others out. On Windows access lists do, which
// are inherited from the user's own directories.
const permissionsMatter = runtime.GOOS != "windows"

// PrivateDir makes a directory of mode 0700 with its parents. One that is
// there and open to others is closed to them.
func PrivateDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return os.MkdirAll(dir, 0o700)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case !diskfile.OwnedByUs(info):
		return fmt.Errorf("%s belongs to another user", dir)
	case info.Mode().Perm()&0o077 != 0 && permissionsMatter:
		return os.Chmod(dir, 0o700)
	}
	return nil
}
