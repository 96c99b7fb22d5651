package docker

import "io/fs"

// ownedByCaller knows nothing of owners here.
func ownedByCaller(fs.FileInfo) bool { return true }
