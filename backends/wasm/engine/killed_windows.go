package engine

import "os"

// killed has no counterpart here: nobody ends processes where memory is short.
func killed(*os.ProcessState) bool { return false }
