package endpoint

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// errNotPlain is something else in the place of a file.
var errNotPlain = errors.New("it is not a regular file")

// OpenPlain is [os.OpenFile], with mode 0600, for a file of the state of a worker.
// What only stands in the place of one is refused: a pipe would keep whoever opens or
// reads it waiting for ever.
func OpenPlain(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag|syscall.O_NONBLOCK, 0o600)
	if errors.Is(err, syscall.ENXIO) { // a socket, or a pipe that nobody reads
		return nil, &fs.PathError{Op: "open", Path: path, Err: errNotPlain}
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errNotPlain}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
