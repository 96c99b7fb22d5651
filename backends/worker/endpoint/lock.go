package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/diskfile"
)

// lockPoll is how often a held lock is tried again. File locks cannot be
// waited for with a deadline.
const lockPoll = 10 * time.Millisecond

// maxRemoved is how often a lock's file may be removed while one waits for it.
const maxRemoved = 16

// ErrLocked is what taking a lock fails with while somebody else holds it.
var ErrLocked = errors.New("held by another process")

// Lock is an advisory lock on a file, held until Unlock or the death of its
// process. It is never inherited by a child.
type Lock struct{ file *os.File }

// Acquire takes the lock on the file at path, which it makes, with its
// directory, when missing. It waits for another holder until ctx ends; the
// error then is [ErrLocked] and names the holder's process. A holder may remove
// the file: who waited for it takes the lock on the one that comes after.
func Acquire(ctx context.Context, path string) (*Lock, error) {
	for try := 1; ; try++ {
		l, err := makeAndTake(ctx, path)
		if err == nil {
			sign(l.file)
			return l, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || try == maxRemoved {
			return nil, err
		}
	}
}

func makeAndTake(ctx context.Context, path string) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	return take(ctx, f, path)
}

// take waits for the lock on f, which was opened at path. When another file or
// none is there by then the error is [fs.ErrNotExist].
func take(ctx context.Context, f *os.File, path string) (*Lock, error) {
	fail := func(err error) (*Lock, error) {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	if err := await(ctx, f); err != nil {
		return fail(err)
	}
	held, err := f.Stat()
	if err != nil {
		return fail(err)
	}
	there, err := os.Lstat(path)
	if err != nil {
		return fail(err)
	}
	if !os.SameFile(held, there) {
		return fail(fs.ErrNotExist)
	}
	return &Lock{file: f}, nil
}

// sign writes whose the lock is. That matters to people only; the kernel keeps
// the lock itself. On a full disk it holds without, so that a worker there can
// be reached and ended all the same.
func sign(f *os.File) {
	if err := f.Truncate(0); err != nil {
		return
	}
	_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
}

// tryLock is [diskfile.TryLock] with [ErrLocked] for a lock that somebody holds.
func tryLock(f *os.File) error {
	free, err := diskfile.TryLock(f)
	if err == nil && !free {
		return ErrLocked
	}
	return err
}

func await(ctx context.Context, f *os.File) error {
	err := tryLock(f)
	if !errors.Is(err, ErrLocked) {
		return err
	}
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for errors.Is(err, ErrLocked) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w%s: %w", err, holder(f), ctx.Err())
		case <-tick.C:
			err = tryLock(f)
		}
	}
	return err
}

func holder(f *os.File) string {
	var b [24]byte
	n, _ := f.ReadAt(b[:], 0) // an unreadable pid is left out of the message
	if pid := strings.TrimSpace(string(b[:n])); pid != "" {
		return " (pid " + pid + ")"
	}
	return ""
}

// Held reports whether somebody holds the lock on the file at path. A missing
// file is not held.
func Held(path string) (bool, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("lock: %w", err)
	}
	err = tryLock(f)
	switch {
	case errors.Is(err, ErrLocked):
		return true, f.Close()
	case err == nil:
		err = diskfile.Unlock(f)
	}
	return false, errors.Join(err, f.Close())
}

// Unlock gives the lock up. Who removes the file does so before.
func (l *Lock) Unlock() error { return errors.Join(diskfile.Unlock(l.file), l.file.Close()) }

// AcquireExisting is Acquire for a lock file that lies in the directory that it
// is about: nothing is made, and a file that was removed, or replaced, while it
// was waited for is [fs.ErrNotExist]. Who holds the lock may remove the file.
func AcquireExisting(ctx context.Context, path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	return take(ctx, f, path)
}
