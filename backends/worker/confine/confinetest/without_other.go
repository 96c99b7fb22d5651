//go:build !linux

package confinetest

import "errors"

// WithoutLandlock takes Landlock away, which only Linux has.
func WithoutLandlock() error { return errors.ErrUnsupported }
