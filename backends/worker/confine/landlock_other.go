//go:build !linux

package confine

import (
	"fmt"
	"runtime"
)

// ABI is the version of Landlock's interface that the kernel has. Only Linux
// has one: the error is [ErrNotLinux].
func ABI() (int, error) { return 0, fmt.Errorf("%w, and this is %s", ErrNotLinux, runtime.GOOS) }

func start(p Policy) (*Launcher, error) { return startThread(func() error { return nil }) }

// Prove shows that writes are really refused here, by trying: it makes two
// directories in dir, limits a thread to one and writes to both. Nil means that
// the inner write worked and the outer one did not.
func Prove(dir string) error { return (Policy{Mode: "read_only", Temp: dir}).check() }

func onMainThread() bool { return false }
