package diskfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// private is the mode of a file that is its owner's alone.
const private fs.FileMode = 0o600

// ErrNotSynced is in the error of a file that was written, and that a crash of the machine
// may take back, since its directory could not be synced.
var ErrNotSynced = errors.New("its directory could not be synced")

// WriteFile replaces the file atomically by one with this content and these permissions.
// When it returns nil the new content survives a crash of the machine; when it fails what
// is there is whole, and is the old content unless that is [ErrNotSynced].
func WriteFile(file string, data []byte, perm fs.FileMode) error {
	temp, err := temporary(file, data, perm)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, file); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return synced(SyncDir(filepath.Dir(file)))
}

// CreateFile is [WriteFile], with mode 0600, for a file that must not be there:
// [fs.ErrExist].
func CreateFile(file string, data []byte) error {
	temp, err := temporary(file, data, private)
	if err != nil {
		return err
	}
	// A link, unlike a rename, never replaces.
	if err := errors.Join(os.Link(temp, file), os.Remove(temp)); err != nil {
		return err
	}
	return synced(SyncDir(filepath.Dir(file)))
}

// synced is what is told of a file whose directory was synced.
func synced(err error) error {
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotSynced, err)
	}
	return nil
}

// temporary writes a synced file beside the one that it is to become.
func temporary(file string, data []byte, perm fs.FileMode) (string, error) {
	f, err := os.OpenFile(file+".tmp-"+rand.Text(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, private)
	if err != nil {
		return "", err
	}
	if perm != private {
		err = f.Chmod(perm)
	}
	if err == nil {
		_, err = f.Write(data)
	}
	if err == nil && len(data) > 0 { // of an empty file only the name can be lost
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}
