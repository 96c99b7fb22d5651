package engine

import "io/fs"

// private takes a directory's own rights for granted: below the user's profile
// only the user has any.
func private(info fs.FileInfo) error { return checkDirectory(info) }
