//go:build !windows

package rpc

import (
	"context"
	"time"
)

// waitForExit returns nil when the process has ended, or is not there, and an
// error when ctx is done first.
func waitForExit(ctx context.Context, pid int) error {
	begun := processStart(pid)
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for alive(pid) && processStart(pid) == begun {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
