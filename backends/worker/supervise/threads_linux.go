package supervise

import "golang.org/x/sys/unix"

// plentiful is a limit of a user's processes that some threads more do not come near to.
const plentiful = 1024

// plenty reports whether this user may have many processes and threads.
func plenty() bool {
	var limit unix.Rlimit
	return unix.Getrlimit(unix.RLIMIT_NPROC, &limit) == nil && limit.Cur >= plentiful
}
