package engine

import "io/fs"

// FileID names a file so that two processes can agree on it; empty where that
// cannot be.
func FileID(fs.FileInfo) string { return "" }
