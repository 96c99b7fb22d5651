//go:build !linux

package site

import "errors"

// executables are the directories of the programs that run, which is not to be
// known here.
func executables() (map[string]bool, error) { return nil, errors.ErrUnsupported }

// kernel is the release of the running kernel, which nobody needs to know here.
func kernel() string { return "" }
