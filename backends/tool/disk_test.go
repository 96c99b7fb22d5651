package tool

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
)

func TestWithDisk(t *testing.T) {
	full := &fs.PathError{Op: "write", Path: "/state/x", Err: syscall.ENOSPC}
	for _, err := range []error{full, fmt.Errorf("a: %w", errors.Join(errors.New("b"), full)), syscall.EDQUOT, errors.New("the worker ended: no space left on device")} {
		e := Errorf(Internal, "start: %w", err).WithDisk("/state")
		if !strings.HasPrefix(e.Message, "no space is left on the disk of /state: start: ") || e.Path != "/state" || !strings.Contains(e.Hint, "df /state") || !errors.Is(e, err) {
			t.Errorf("%v becomes %+v", err, e)
		}
	}
	other := Errorf(Internal, "start: %w", syscall.EACCES).WithPath("/x").WithHint("look").WithDisk("/state")
	if other.Message != "start: permission denied" || other.Path != "/x" || other.Hint != "look" {
		t.Errorf("another error becomes %+v", other)
	}
	if IsDiskFull(nil) {
		t.Error("nothing is a full disk")
	}
}
