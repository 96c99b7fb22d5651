package supervise

import "syscall"

// ownSession starts a process that gets none of our console's events.
func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
