package diskfile

import "io/fs"

// OwnedByUs reports whether the user that we run as owns the file. It is true: ours lie in
// the user's profile.
func OwnedByUs(fs.FileInfo) bool { return true }
