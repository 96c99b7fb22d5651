package rlimit

import (
	"os"

	"golang.org/x/sys/unix"
)

// memoryLimit counts private memory that can be written, since Linux 4.7.
const memoryLimit = unix.RLIMIT_DATA

func (Limits) supported() error { return nil }

// self is the path of this program, whatever has become of its file: a service
// may have been updated since it started.
func self() (string, error) {
	const link = "/proc/self/exe" // of whoever follows it, which is the child
	if _, err := os.Lstat(link); err == nil {
		return link, nil
	}
	return os.Executable()
}
