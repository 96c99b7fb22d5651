package rpc

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/windows"
)

// waitForExit returns nil when the process has ended, or is not there, and an
// error when ctx is done first or the process cannot be watched.
func waitForExit(ctx context.Context, pid int) error {
	process, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(pid))
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) {
		return nil // there is no such process
	}
	if err != nil {
		return fmt.Errorf("open process %d: %w", pid, err)
	}
	defer windows.CloseHandle(process)
	for ctx.Err() == nil {
		event, err := windows.WaitForSingleObject(process, uint32(watchInterval.Milliseconds()))
		if err != nil {
			return fmt.Errorf("wait for process %d: %w", pid, err)
		}
		if event == windows.WAIT_OBJECT_0 {
			return nil
		}
	}
	return ctx.Err()
}
