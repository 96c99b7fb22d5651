//go:build !linux

package self

import "os"

// link is none.
const link = ""

func path() (string, error) { return os.Executable() }
