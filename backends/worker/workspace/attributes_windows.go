package workspace

import (
	"io/fs"
	"os"
)

// keepAttributes has nothing to keep: access lists come from the directory, and a file
// with the read-only attribute could not be opened for writing.
func keepAttributes(*os.File, *os.File, fs.FileInfo) error { return nil }

// inPlaceHelps is false: the old file is closed before the new one takes its
// place.
func inPlaceHelps(error) bool { return false }

func busy(error) bool { return false }

// closeBeforeRename closes the old file: an open one cannot be replaced.
func closeBeforeRename(old *os.File) {
	if old != nil {
		old.Close()
	}
}
