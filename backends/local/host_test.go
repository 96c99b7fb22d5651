package local

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
)

// A limit of the user's is told as one, whoever met it: the service, what lets go of the
// worker, or the worker.
func TestUnreached(t *testing.T) {
	for _, test := range []struct {
		err   error
		kind  tool.Kind
		again bool
	}{
		{fmt.Errorf("start a worker: %w", &os.PathError{Op: "fork/exec", Path: "/bin/x", Err: syscall.EAGAIN}), tool.Overloaded, true},
		{fmt.Errorf("connect to the worker: %w", &net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", syscall.EAGAIN)}), tool.BackendUnavailable, true},
		{errors.New("start a worker: exit status 1: dial unix /x: connect: resource temporarily unavailable"), tool.BackendUnavailable, true},
		{fmt.Errorf("connect to the worker: %w", os.NewSyscallError("socket", syscall.EMFILE)), tool.Overloaded, true},
		{errors.New("start a worker: exit status 1: start /proc/self/exe: fork/exec /proc/self/exe: resource temporarily unavailable"), tool.Overloaded, true},
		{errors.New("the worker ended before it listened: runtime: failed to create new OS thread (have 2 already; errno=11)"), tool.Overloaded, true},
		{fmt.Errorf("open the log: %w", syscall.EMFILE), tool.Overloaded, true},
		{fmt.Errorf("start a worker: %w", fs.ErrPermission), tool.BackendUnavailable, false},
	} {
		e := unreached(test.err)
		if limit := test.kind == tool.Overloaded; e.Kind != test.kind || e.Retryable != test.again || strings.Contains(e.Hint, "ulimit -u") != limit {
			t.Errorf("%v: %+v", test.err, e)
		}
	}
}
