package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// LockDirectory waits until no other process that uses the directory this way
// holds its lock. The directory is made when it is missing.
func LockDirectory(ctx context.Context, dir string) (*Lock, error) {
	for {
		l, err := lock(dir)
		var busy *BusyError
		if !errors.As(err, &busy) {
			return l, err
		}
		timer := time.NewTimer(lockPoll)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("waiting for %s, %w: %w", filepath.Base(dir), err, context.Cause(ctx))
		case <-timer.C:
		}
	}
}
