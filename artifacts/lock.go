package artifacts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/caisson-dev/caisson/diskfile"
)

// The lock is held for milliseconds: a few small files are written and synced.
// A process that was stopped while it held it must not stop the others for good.
const (
	lockWait = 10 * time.Second
	lockPoll = 5 * time.Millisecond
)

// lock takes the store's lock, against other processes and other callers in
// this one. The error is that of ctx, or [ErrBusy].
func (s *Store) lock(ctx context.Context) (unlock func(), err error) {
	f, err := s.root.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the artifact store cannot be locked: %w", err)
	}
	wait, cancel := context.WithTimeoutCause(ctx, lockWait, ErrBusy)
	defer cancel()
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		taken, err := diskfile.TryLock(f)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("the artifact store cannot be locked: %w", err), f.Close())
		}
		if taken {
			// Nothing was written to it, and closing gives back what unlocking did not.
			return func() { _ = errors.Join(diskfile.Unlock(f), f.Close()) }, nil
		}
		select {
		case <-wait.Done():
			return nil, errors.Join(context.Cause(wait), f.Close())
		case <-tick.C:
		}
	}
}
