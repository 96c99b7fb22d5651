package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/caisson-dev/caisson/diskfile"
)

// BusyError is a lock that another owner has.
type BusyError struct {
	PID int // 0 when the owner has not written it, or could not
}

func (e *BusyError) Error() string {
	if e.PID == 0 {
		return "held by another process"
	}
	return fmt.Sprintf("held by the process %d", e.PID)
}

// Lock is a lock that is held.
type Lock struct {
	f     *os.File
	after func() // called when it was given up; nil for nothing
}

// Release gives the lock up.
func (l *Lock) Release() error {
	// Whoever looks only reads who has it, and tries the lock of nobody. What cannot be
	// taken back, as on a broken disk, is found out by whoever looks.
	_ = l.f.Truncate(0)
	err := errors.Join(diskfile.Unlock(l.f), l.f.Close())
	if l.after != nil {
		l.after()
	}
	return err
}

// LockSession takes ownership of a session, making its directory when it is
// new. A session that another service owns is a [BusyError]. One without a binding
// is just being made, removed or swept by somebody, who is waited for, and so is what
// a service that was killed has left, and whoever is just signing or giving it up.
func (s *Store) LockSession(ctx context.Context, id string) (*Lock, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	unsigned := 0
	for patience := time.Now().Add(lockPatience); ; {
		l, err := lock(s.session(id))
		var busy *BusyError
		if err == nil {
			l.after = s.bell.Ring
			s.bell.Ring()
		}
		if !errors.As(err, &busy) || time.Now().After(patience) {
			return l, err
		}
		if busy.PID == 0 {
			unsigned++
		}
		_, unbound := os.Lstat(s.session(id, "binding.json"))
		passing := errors.Is(unbound, os.ErrNotExist) || gone(busy.PID) || busy.PID == 0 && unsigned <= unsignedTries
		if !passing {
			return nil, err
		}
		if err := again(ctx, err); err != nil {
			return nil, fmt.Errorf("waiting for session %s, %w", id, err)
		}
	}
}

// Owner says which process has the session's lock: 0 for none, and while its owner is
// not known yet. What a service that was killed has left of its lock is taken away, where
// that can be written.
func (s *Store) Owner(id string) (pid int, err error) {
	if err := CheckID(id); err != nil {
		return 0, err
	}
	file := s.session(id, "lock")
	if info, err := os.Stat(file); err == nil && info.Size() == 0 {
		return 0, nil // as most are: it need not be opened
	}
	// Only for reading: the directory may be one that this service cannot write to.
	f, _, err := diskfile.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if pid = owner(f); pid == 0 {
		return 0, nil // which was given up: to try it might be in somebody's way
	}
	free, err := diskfile.TryShared(f)
	if err != nil || !free {
		return pid, err
	}
	// Where it cannot be taken away, whoever looks next finds out again. The lock that is
	// held keeps everybody from signing meanwhile.
	if current(f, file) {
		_ = os.Truncate(file, 0)
	}
	return 0, diskfile.Unlock(f)
}

// gone reports whether there is no such process. What is left of its lock is held by a
// child that was just being started when it was killed, until that is another program.
func gone(pid int) bool {
	p, err := os.FindProcess(pid)
	return pid > 0 && err == nil && errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// lockPatience is how long a session may be held without a binding, which takes
// a few files written or removed on a busy disk.
const lockPatience = 2 * time.Second

// unsignedTries is how often a lock whose owner has not signed it is tried again: whoever
// takes it signs it next, and whoever gives it up has just taken the sign away.
const unsignedTries = 3

// lockPoll is how often a lock is tried that somebody else holds. Files have
// no better way to wait that also heeds a context.
const lockPoll = 20 * time.Millisecond

// LockEnvironment waits until nobody else makes or removes the environment.
func (s *Store) LockEnvironment(ctx context.Context, identity string) (*Lock, error) {
	return lockWaiting(ctx, s.environment(identity), "environment "+identity)
}

// LockDirectory waits until no other process that uses the directory this way
// holds its lock. The directory is made when it is missing.
func LockDirectory(ctx context.Context, dir string) (*Lock, error) {
	return lockWaiting(ctx, dir, filepath.Base(dir))
}

func lockWaiting(ctx context.Context, dir, what string) (*Lock, error) {
	for {
		l, err := lock(dir)
		var busy *BusyError
		if !errors.As(err, &busy) {
			return l, err
		}
		if err := again(ctx, err); err != nil {
			return nil, fmt.Errorf("waiting for %s, %w", what, err)
		}
	}
}

// again waits until a lock that somebody else holds is worth another try. When ctx
// is done before, it says so and who holds it.
func again(ctx context.Context, busy error) error {
	timer := time.NewTimer(lockPoll)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", busy, context.Cause(ctx))
	case <-timer.C:
		return nil
	}
}

// lockTries bounds how often the owner of a lock may remove it under us.
const lockTries = 100

// lock takes dir/lock and writes our pid into it.
func lock(dir string) (*Lock, error) {
	file := filepath.Join(dir, "lock")
	for range lockTries {
		if err := PrivateDir(dir); errors.Is(err, os.ErrExist) {
			continue // removed while it was being made
		} else if err != nil {
			return nil, err
		}
		f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
		if errors.Is(err, os.ErrNotExist) {
			continue // removed between the two
		}
		if err != nil {
			return nil, err
		}
		ok, err := diskfile.TryLock(f)
		switch {
		case err != nil:
			return nil, errors.Join(fmt.Errorf("%s: %w", file, err), f.Close())
		case !ok:
			pid := owner(f)
			return nil, errors.Join(&BusyError{pid}, f.Close())
		case !current(f, file):
			// We hold the lock of a file that its last owner removed.
			if err := f.Close(); err != nil {
				return nil, err
			}
			continue
		}
		sign(f)
		return &Lock{f: f}, nil
	}
	return nil, fmt.Errorf("%s is removed and made again all the time", file)
}

// sign writes our pid into a lock that we hold. On a full disk the lock stays
// without it, and holds all the same: what is to be removed to make room is
// locked first.
func sign(f *os.File) {
	if err := f.Truncate(0); err != nil {
		return
	}
	_, _ = f.WriteAt(strconv.AppendInt(nil, int64(os.Getpid()), 10), 0)
}

// owner reads the pid in a lock.
func owner(f *os.File) int {
	buf := make([]byte, 32)
	n, _ := f.ReadAt(buf, 0) // a short read is the normal case
	pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	if err != nil {
		return 0
	}
	return pid
}

// current reports whether the open file is still the one at the path.
func current(f *os.File, file string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(file)
	return err == nil && os.SameFile(open, there)
}

// removedPrefix begins the names of directories that are being removed: no
// session and no environment is called so.
const removedPrefix = ".removed-"

// removeLocked removes a directory whose lock the caller holds. It leaves its
// place in one step, so that whoever waits for the lock makes a new directory
// and never works in one that is half gone. Where a directory with open files
// cannot be moved the empty lock stays, which is no session and no environment.
func removeLocked(dir string) error {
	if diskfile.MovesOpen {
		gone := filepath.Join(filepath.Dir(dir), removedPrefix+rand.Text())
		err := os.Rename(dir, gone)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return removeMoved(gone)
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.Name() != "lock" {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// removeMoved removes a directory that was moved away. Whoever was on the way to its
// lock meanwhile may make that file anew in it, once each, and then goes to the
// directory that is at the place now.
func removeMoved(gone string) (err error) {
	for range lockTries {
		if err = os.RemoveAll(gone); !errors.Is(err, os.ErrExist) { // which is: not empty
			return err
		}
	}
	return err
}

// sweepUnbound removes the directories of sessions that have no binding and that
// nobody makes or removes now: a service was killed before it had saved one, or
// after it had removed it.
func (s *Store) sweepUnbound() error {
	entries, err := os.ReadDir(s.sessions())
	for _, e := range entries {
		if CheckID(e.Name()) != nil || !e.IsDir() {
			continue
		}
		if _, bound := os.Lstat(s.session(e.Name(), "binding.json")); !errors.Is(bound, os.ErrNotExist) {
			continue
		}
		l, lockErr := lock(s.session(e.Name()))
		var busy *BusyError
		if errors.As(lockErr, &busy) {
			continue
		}
		if lockErr != nil {
			err = errors.Join(err, lockErr)
			continue
		}
		if _, bound := os.Lstat(s.session(e.Name(), "binding.json")); errors.Is(bound, os.ErrNotExist) {
			err = errors.Join(err, removeLocked(s.session(e.Name())))
		}
		err = errors.Join(err, l.Release())
	}
	return err
}

// sweep removes what a crash left of removals.
func sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), removedPrefix) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}
