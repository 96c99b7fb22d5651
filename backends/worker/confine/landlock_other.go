//go:build !linux

package confine

import (
	"runtime"

	"github.com/caisson-dev/caisson/backends/tool"
)

// ABI is the version of Landlock's interface that the kernel has. Only Linux
// has one.
func ABI() (int, error) {
	return 0, tool.Errorf(tool.Unsupported, "%s has no Landlock", runtime.GOOS)
}

func start(p Policy) (*Launcher, error) { return startThread(func() error { return nil }) }

// Prove shows that writes are really refused here, by trying: it makes two
// directories in dir, limits a thread to one and writes to both. Nil means that
// the inner write worked and the outer one did not.
func Prove(dir string) error { return (Policy{Mode: "read_only", Temp: dir}).check() }

func onMainThread() bool { return false }
