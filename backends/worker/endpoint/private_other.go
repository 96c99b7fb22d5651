//go:build !unix

package endpoint

import "io/fs"

// checkPrivate trusts the access list that the user's directories inherit.
func checkPrivate(string, fs.FileInfo) error { return nil }
