package remote

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Who cannot be seen, since /proc hides the processes of others, is not dead for that.
func TestAsRootOwnerHidden(t *testing.T) {
	living, dead := OwnerOf(os.Getppid()), deadOwner(t)
	unseen := make(chan error, 1)
	var livingDead, deadDead bool
	go func() {
		runtime.LockOSThread() // which ends with the goroutine, since nothing is undone
		err := hideOthers()
		livingDead, deadDead = living.Dead(), dead.Dead()
		unseen <- err
	}()
	if err := <-unseen; err != nil {
		t.Fatal(err)
	}
	if livingDead || !deadDead {
		t.Errorf("a living process is dead: %t, a dead one: %t", livingDead, deadDead)
	}
}

// hideOthers makes the calling thread one of another user, who sees his own processes only.
func hideOthers() error {
	const nobody = 65534
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, "hidepid=2"); err != nil {
		return err
	}
	// Not by unix's own functions, which change all threads.
	for _, change := range [][4]uintptr{
		{unix.SYS_SETGROUPS}, {unix.SYS_SETRESGID, nobody, nobody, nobody}, {unix.SYS_SETRESUID, nobody, nobody, nobody},
	} {
		if _, _, errno := unix.RawSyscall(change[0], change[1], change[2], change[3]); errno != 0 {
			return errno
		}
	}
	return nil
}
