//go:build !unix

package site

import "errors"

// terminate tells a process to end in order, which no system without signals
// can.
func terminate(int) error { return errors.ErrUnsupported }
