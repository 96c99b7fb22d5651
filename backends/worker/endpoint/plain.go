package endpoint

import (
	"errors"
	"io/fs"
	"os"

	"github.com/caisson-dev/caisson/diskfile"
)

// OpenPlain is [os.OpenFile], with mode 0600, for a file of the state of a worker.
// What only stands in the place of one is refused: a pipe would keep whoever opens or
// reads it waiting for ever.
func OpenPlain(path string, flag int) (*os.File, error) {
	f, _, err := diskfile.OpenRegular(func(nonblock int) (*os.File, error) { return os.OpenFile(path, flag|nonblock, 0o600) })
	if errors.Is(err, diskfile.ErrNotRegular) {
		err = &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return f, err
}
