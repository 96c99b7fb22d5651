//go:build unix && !linux

package workspace

import "os"

// copyXattrs does nothing: what these systems keep in extended attributes, such as where a
// download came from, is not true of the new content.
func copyXattrs(*os.File, *os.File) error { return nil }
