//go:build unix

package engine

import "golang.org/x/sys/unix"

func reserve(size uint64) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	return unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

func release(region []byte) {
	if len(region) > 0 {
		_ = unix.Munmap(region) // of a mapping that is ours, which cannot fail
	}
}
