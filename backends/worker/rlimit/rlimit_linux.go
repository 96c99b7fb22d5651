package rlimit

import "golang.org/x/sys/unix"

// memoryLimit counts private memory that can be written, since Linux 4.7.
const memoryLimit = unix.RLIMIT_DATA

func (Limits) supported() error { return nil }
