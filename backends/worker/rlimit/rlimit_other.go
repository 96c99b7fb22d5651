//go:build !linux && !darwin

package rlimit

import (
	"errors"
	"os"

	"github.com/caisson-dev/caisson/backends/tool"
)

func (Limits) supported() error {
	return tool.Errorf(tool.Unsupported, "this system holds no limits of single processes")
}

func self() (string, error) { return os.Executable() }

func (Limits) become(string, []string) error { return errors.ErrUnsupported }
