package local

import (
	"errors"
	"fmt"
	"io/fs"
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
		err  error
		kind tool.Kind
	}{
		{fmt.Errorf("start a worker: %w", &os.PathError{Op: "fork/exec", Path: "/bin/x", Err: syscall.EAGAIN}), tool.Overloaded},
		{errors.New("start a worker: exit status 1: start /proc/self/exe: fork/exec /proc/self/exe: resource temporarily unavailable"), tool.Overloaded},
		{errors.New("the worker ended before it listened: runtime: failed to create new OS thread (have 2 already; errno=11)"), tool.Overloaded},
		{fmt.Errorf("open the log: %w", syscall.EMFILE), tool.Overloaded},
		{fmt.Errorf("start a worker: %w", fs.ErrPermission), tool.BackendUnavailable},
	} {
		e := unreached(test.err)
		if limit := test.kind == tool.Overloaded; e.Kind != test.kind || e.Retryable != limit || strings.Contains(e.Hint, "ulimit -u") != limit {
			t.Errorf("%v: %+v", test.err, e)
		}
	}
}
