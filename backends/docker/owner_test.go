package docker

import (
	"errors"
	"os/exec"
	"testing"

	"github.com/caisson-dev/caisson/backends/remote"
)

// deadOwner is a process of this machine that has ended.
func deadOwner(t *testing.T) owner {
	t.Helper()
	cmd := exec.Command("cat") // until it has been looked at
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	o := owner(remote.OwnerOf(cmd.Process.Pid))
	if err := errors.Join(stdin.Close(), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	return o
}

// earlierOwner is a process that has ended of a boot of this machine before this one, or of
// a copy of this machine.
func earlierOwner(t *testing.T) owner {
	t.Helper()
	o := deadOwner(t)
	o.Start = "another-boot:1"
	return o
}

// processStart is when a process of this machine started.
func processStart(pid int) (start string, known bool) {
	o := remote.OwnerOf(pid)
	return o.Start, o.Start != ""
}

func TestOwnerAsLabels(t *testing.T) {
	for _, o := range []owner{self(), deadOwner(t), {Host: "another", PID: 1}, {}} {
		if back := ownerOf(o.labels()); back != o {
			t.Errorf("the labels of %+v gave %+v", o, back)
		}
	}
}
