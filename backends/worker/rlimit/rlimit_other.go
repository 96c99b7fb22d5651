//go:build !linux && !darwin

package rlimit

import (
	"errors"

	"github.com/caisson-dev/caisson/backends/tool"
)

func (Limits) supported() error {
	return tool.Errorf(tool.Unsupported, "this system holds no limits of single processes")
}

func (Limits) become(string, []string) error { return errors.ErrUnsupported }
