package eventlog

import "os"

// openFlags are none: links need rights there that users do not have.
const openFlags = 0

// movesOpenFiles is false: Windows keeps a file in its place while it is open.
const movesOpenFiles = false

// mover is true: a file that another service has open stays where it is.
func mover(*os.File) bool { return true }
