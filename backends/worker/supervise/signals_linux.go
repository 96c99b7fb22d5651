package supervise

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// unblocked is start for what is not to inherit the signals that this program was told
// to block: a command would never get its alarm, or be ended by a broken pipe.
func unblocked(start startFunc) startFunc {
	return func(name string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
		// A child blocks what the thread blocks that forks it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var none, before unix.Sigset_t
		if err := unix.PthreadSigmask(unix.SIG_SETMASK, &none, &before); err != nil {
			return nil, fmt.Errorf("unblock signals: %w", err)
		}
		p, err := start(name, argv, attr)
		// It can only fail for a wrong argument, and took the same a moment ago.
		_ = unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)
		return p, err
	}
}
