//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package wasm

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// gone waits until a process is gone, and fails when it stays.
func gone(t testing.TB, pid int) {
	t.Helper()
	queue, err := unix.Kqueue()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(queue)
	var end unix.Kevent_t
	unix.SetKevent(&end, pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	end.Fflags = unix.NOTE_EXIT
	limit := unix.NsecToTimespec(patience.Nanoseconds())
	for {
		n, err := unix.Kevent(queue, []unix.Kevent_t{end}, make([]unix.Kevent_t, 1), &limit)
		switch {
		case errors.Is(err, unix.ESRCH):
			return
		case errors.Is(err, unix.EINTR):
		case err != nil:
			t.Fatal(err)
		case n == 0:
			t.Fatalf("process %d is still there", pid)
		default:
			return
		}
	}
}
