package remote

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// deadOwner is a process of this machine that has ended.
func deadOwner(t *testing.T) Owner {
	t.Helper()
	cmd := exec.Command("cat") // until it has been looked at
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	o := OwnerOf(cmd.Process.Pid)
	if err := errors.Join(stdin.Close(), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestOwnerDead(t *testing.T) {
	me := Self()
	dead := deadOwner(t)
	elsewhere := dead
	elsewhere.Host = "another-machine"
	recycled := Owner{Host: me.Host, PID: me.PID, Start: "another boot:1"}
	parent := Owner{Host: me.Host, PID: os.Getppid()}
	tests := []struct {
		name string
		Owner
		want bool
	}{
		{"this process", me, false},
		{"a process that ended", dead, true},
		{"a process of another machine", elsewhere, false},
		{"a pid that is somebody else's now", recycled, runtime.GOOS == "linux"},
		{"a process whose start is not known", parent, false},
		{"nobody", Owner{}, false},
		{"no pid", Owner{Host: me.Host}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := test.Dead(); got != test.want {
				t.Errorf("%+v: dead is %t", test.Owner, got)
			}
		})
	}
}

func TestOwnerOfThisBoot(t *testing.T) {
	me, known := Self(), runtime.GOOS == "linux"
	elsewhere, copied, unknown := me, me, me
	elsewhere.Host = "another-machine"
	copied.Start = "another-boot:" + me.Start[strings.IndexByte(me.Start, ':')+1:]
	unknown.Start = ""
	for _, test := range []struct {
		name string
		Owner
		want bool
	}{
		{"this process", me, known},
		{"a process that ended", deadOwner(t), known},
		{"a process of another machine", elsewhere, false},
		{"a process of a copy", copied, false},
		{"a process whose start is not known", unknown, false},
		{"nobody", Owner{}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.ThisBoot(); got != test.want {
				t.Errorf("%+v: of this boot is %t", test.Owner, got)
			}
		})
	}
}

func TestOwnerOfZombie(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells a zombie from a process")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command("true")
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	// The pipe ends a moment before the process does.
	if _, err := r.Read(make([]byte, 1)); err == nil {
		t.Fatal("true wrote something")
	}
	o := Owner{Host: hostID(), PID: cmd.Process.Pid}
	for !o.Dead() {
		runtime.Gosched()
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}
