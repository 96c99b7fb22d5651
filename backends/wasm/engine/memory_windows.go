package engine

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

func reserve(size uint64) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	address, err := windows.VirtualAlloc(0, uintptr(size), windows.MEM_RESERVE|windows.MEM_COMMIT, windows.PAGE_READWRITE)
	if err != nil {
		return nil, err
	}
	// The address is no Go pointer, which vet cannot know.
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&address)), size), nil
}

func release(region []byte) {
	if len(region) > 0 {
		_ = windows.VirtualFree(uintptr(unsafe.Pointer(&region[0])), 0, windows.MEM_RELEASE)
	}
}
