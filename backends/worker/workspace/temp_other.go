//go:build !linux

package workspace

import (
	"errors"
	"io/fs"
	"os"
)

// openUnnamed says that files without a name are Linux's.
func openUnnamed(*os.Root, fs.FileMode) (*temp, error) { return nil, errors.ErrUnsupported }

func linkUnnamed(*temp, string) error { return errors.ErrUnsupported }

func lock(*os.File) error { return errors.ErrUnsupported }

// sweep leaves alone what might still be written.
func sweep(*os.Root) {}
