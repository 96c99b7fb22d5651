package process

import "golang.org/x/sys/unix"

const getTermios = unix.TCGETS

// dropTyped drops what was typed and not read. It is of no use to whoever asks, and a shell
// would run it after the job that is interrupted. What cannot be dropped is read, as before
// an interrupt that nothing was typed before.
func dropTyped(master int) {
	flags := unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER, uintptr(flags))
	if errno != 0 {
		return
	}
	slave := int(fd)
	defer unix.Close(slave)
	_ = unix.IoctlSetInt(master, unix.TCFLSH, unix.TCOFLUSH) // on its way there
	_ = unix.IoctlSetInt(slave, unix.TCFLSH, unix.TCIFLUSH)  // and there
}
