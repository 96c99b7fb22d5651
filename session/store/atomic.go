package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/caisson-dev/caisson/diskfile"
)

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

// writeFile replaces the file atomically. When it returns nil the new content
// survives a crash of the machine; when it fails the old one is still there.
func writeFile(file string, data []byte) error {
	temp, err := temporary(file, data)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, file); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return diskfile.SyncDir(filepath.Dir(file))
}

// createFile is writeFile for a file that must not be there: [os.ErrExist].
func createFile(file string, data []byte) error {
	temp, err := temporary(file, data)
	if err != nil {
		return err
	}
	// A link, unlike a rename, never replaces.
	if err := errors.Join(os.Link(temp, file), os.Remove(temp)); err != nil {
		return err
	}
	return diskfile.SyncDir(filepath.Dir(file))
}

// temporary writes a synced file beside the one that it is to become.
func temporary(file string, data []byte) (string, error) {
	f, err := os.OpenFile(file+".tmp-"+randomHex(6), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err == nil && len(data) > 0 { // of an empty file only the name can be lost
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}
