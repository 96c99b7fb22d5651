package eventlog

import "os"

// movesOpenFiles is false: Windows keeps a file in its place while it is open.
const movesOpenFiles = false

// mover is true: a file that another service has open stays where it is.
func mover(*os.File) bool { return true }
