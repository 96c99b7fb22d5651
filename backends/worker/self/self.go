// Package self finds the program that runs, for whoever starts it again as a worker
// or another part of itself: that part must be of the same build, also when the
// program's file was replaced or removed since, as an update does.
package self

import "os"

// Path is a path that starts the program that runs. On Linux it does so whatever has
// become of the program's file, but only when this process itself starts it: in another
// process the same path leads to another program.
func Path() (string, error) { return path() }

// Name is what a program that is started from path calls itself in its arguments, so
// that lists of processes show where it was when it started.
func Name(path string) string {
	if path != link {
		return path
	}
	if name, err := os.Executable(); err == nil {
		return name
	}
	return path
}
