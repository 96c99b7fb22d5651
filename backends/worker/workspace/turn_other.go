//go:build !unix

package workspace

import "os"

// turn is not taken here: a directory cannot be locked.
func turn(*os.Root) (done func()) { return func() {} }
