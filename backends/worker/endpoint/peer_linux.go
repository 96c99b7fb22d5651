package endpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxDepth bounds a walk up the process tree; a longer chain is refused.
const maxDepth = 256

// Peers decides who may connect to the sockets of this process.
//
// A command that reached its own worker's socket, or another session's, could
// ask for more than it was given. So a peer is refused when a worker is among
// its ancestors, unless that worker is an ancestor of ours too: a service that
// runs inside somebody's session may have sessions of its own. Workers are
// subreapers, so that a command cannot leave its worker by losing its parent.
// Landlock's no_new_privs, which no process can drop, betrays the orphans of
// workers that died.
type Peers struct {
	noNewPrivs bool
}

// NewPeers notes what this process is and gives it a name to be known by. It
// must be called before the process confines a thread.
func NewPeers(name string) (*Peers, error) {
	if err := os.WriteFile("/proc/self/comm", []byte(name), 0); err != nil {
		return nil, fmt.Errorf("name the process: %w", err)
	}
	nnp, err := noNewPrivs(os.Getpid())
	if err != nil {
		return nil, err
	}
	return &Peers{noNewPrivs: nnp}, nil
}

// Check says why the peer of c may not connect, or nil. A peer outside of our
// pid namespace, the host of a container, has no ancestors here and is let in.
func (p *Peers) Check(c *net.UnixConn) error {
	cred, err := credentials(c)
	if err != nil {
		return err
	}
	pidfd, pidfdErr := peerPIDFD(c)
	if pidfdErr == nil {
		defer func() { _ = unix.Close(pidfd) }() // nothing was written to it
	}
	if cred.Pid == 0 {
		return nil
	}
	if cred.Uid != 0 && int(cred.Uid) != os.Geteuid() {
		return judged{fmt.Errorf("process %d belongs to user %d", cred.Pid, cred.Uid), ErrForeign}
	}
	if err := p.checkProcess(int(cred.Pid)); err != nil {
		return err
	}
	switch {
	case pidfdErr == nil:
		// What was looked at was the peer only if the peer is still there: else
		// its number may be somebody else's already.
		return alive(pidfd, int(cred.Pid))
	case errors.Is(pidfdErr, unix.ENOPROTOOPT):
		return nil // before Linux 6.5
	default:
		return fmt.Errorf("whether process %d is still there: %w", cred.Pid, pidfdErr)
	}
}

// peerPIDFD is a descriptor of the process at the other end of c.
func peerPIDFD(c *net.UnixConn) (int, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return -1, err
	}
	pidfd := -1
	var optErr error
	err = raw.Control(func(fd uintptr) {
		pidfd, optErr = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	})
	return pidfd, errors.Join(err, optErr)
}

// ServerPID is the process that listens at path, as the kernel knows it.
func ServerPID(ctx context.Context, path string) (int, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return 0, err
	}
	cred, err := credentials(conn.(*net.UnixConn))
	if err := errors.Join(err, conn.Close()); err != nil {
		return 0, err
	}
	return int(cred.Pid), nil
}

// Wake makes the process that listens at the other end of c run again, if it was
// stopped: a command can do that to its worker, which then would neither answer
// nor end. One that runs notices nothing.
func Wake(c *net.UnixConn) error {
	cred, err := credentials(c)
	if err != nil {
		return err
	}
	if cred.Pid == 0 {
		return nil // outside of our pid namespace: whoever lives there can wake it
	}
	// One that is somebody else's, or gone, is not ours to wake.
	err = unix.Kill(int(cred.Pid), unix.SIGCONT)
	if err != nil && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("wake process %d: %w", cred.Pid, err)
	}
	return nil
}

// credentials are those of the process at the other end of c when it connected
// or began to listen.
func credentials(c *net.UnixConn) (*unix.Ucred, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, credErr); err != nil {
		return nil, fmt.Errorf("who the other end is: %w", err)
	}
	return cred, nil
}

// CheckServer says why the process that listens at the other end of c is not a
// worker of ours, or nil: a command that took the place of its worker's socket
// would be given the session's token.
func CheckServer(c *net.UnixConn) error {
	cred, err := credentials(c)
	if err != nil {
		return err
	}
	if int(cred.Uid) != os.Geteuid() {
		return fmt.Errorf("process %d belongs to user %d", cred.Pid, cred.Uid)
	}
	server, err := ancestry(int(cred.Pid))
	if err != nil {
		return err
	}
	own, err := ancestry(os.Getpid())
	if err != nil {
		return err
	}
	for _, a := range server[1:] {
		if a.name == WorkerName && !slices.Contains(own, a) {
			return fmt.Errorf("process %d was started by %s %d", cred.Pid, a.name, a.pid)
		}
	}
	if top := server[len(server)-1]; top.hidden && !slices.Contains(own, top) {
		if nnp, err := noNewPrivs(int(cred.Pid)); err != nil || nnp {
			return errors.Join(hiddenError(int(cred.Pid), top), err)
		}
	}
	return nil
}

func (p *Peers) checkProcess(pid int) error {
	peer, err := ancestry(pid)
	if err != nil {
		return err
	}
	own, err := ancestry(os.Getpid())
	if err != nil {
		return err
	}
	for _, a := range peer {
		switch {
		case a == own[0]:
			return command("process %d was started by this process", pid)
		case a.name == InitName, a.name == WorkerName && !slices.Contains(own, a):
			return command("process %d was started by %s %d", pid, a.name, a.pid)
		}
	}
	nnp, err := noNewPrivs(pid)
	if err != nil {
		return err
	}
	if nnp && !p.noNewPrivs {
		return command("process %d is confined", pid)
	}
	// Without no_new_privs nothing above it has that, hidden or not: it is below no
	// confined command, whose orphans lose nothing of it.
	if top := peer[len(peer)-1]; top.hidden && nnp && !slices.Contains(own, top) {
		return judged{hiddenError(pid, top), ErrCommand}
	}
	return nil
}

// command is an error that is an [ErrCommand] too.
func command(format string, args ...any) error {
	return judged{fmt.Errorf(format, args...), ErrCommand}
}

// hiddenError says that it is not known who has started a process.
func hiddenError(pid int, top process) error {
	return fmt.Errorf("process %d is below process %d of the same user, which /proc hides (its option hidepid), "+
		"and has no_new_privs, as confined commands have", pid, top.pid)
}

// process is one process of a chain; the start time tells it from a later one
// with the same number.
type process struct {
	pid, parent int
	start       uint64
	name        string
	// hidden is one of our user's that /proc does not show: only pid is known.
	hidden bool
}

// ancestry is the process and its ancestors, up to the first or up to one that
// lives outside of our pid namespace or that /proc does not show, which stands at
// the end when it is our user's. A tree that changed while it was walked is walked
// again.
func ancestry(pid int) ([]process, error) {
	var last []process
	var err error
	for range 4 {
		var chain []process
		if chain, err = walk(pid); err != nil {
			continue
		}
		if slices.Equal(chain, last) {
			return chain, nil
		}
		last = chain
	}
	if err == nil {
		err = errors.New("its ancestors keep changing")
	}
	return nil, fmt.Errorf("ancestors of process %d: %w", pid, err)
}

func walk(pid int) ([]process, error) {
	var chain []process
	for pid != 0 {
		if len(chain) == maxDepth {
			return nil, fmt.Errorf("more than %d", maxDepth)
		}
		p, err := readProcess(pid)
		if hides(err) {
			kill := unix.Kill(pid, 0)
			switch {
			case kill != nil && !errors.Is(kill, unix.EPERM): // it has ended
			case len(chain) == 0:
				return nil, judged{err, ErrForeign}
			case kill == nil:
				return append(chain, process{pid: pid, hidden: true}), nil
			default:
				return chain, nil
			}
		}
		if err != nil {
			return nil, err
		}
		chain = append(chain, p)
		pid = p.parent
	}
	return chain, nil
}

// Where /proc is mounted with hidepid, it shows a user nothing of the processes of
// others, the machine's first among them. A confined command can have none of those
// above it but what its worker has too: no_new_privs keeps it from becoming somebody
// else. Neither does it show those of the user that may not be looked into: the ssh
// server of a login, which was root's before, and whatever hides on purpose.

// hides reports whether err is what /proc says of a process that it hides. What stands
// there of one that has ended is the same with hidepid=2.
func hides(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
}

func readProcess(pid int) (process, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, err
	}
	// The name stands in parentheses and may hold anything, parentheses too.
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return process{}, fmt.Errorf("stat of process %d is malformed", pid)
	}
	fields := strings.Fields(string(stat[end+1:])) // from the third field on
	const parentField, startField = 1, 19
	if len(fields) <= startField {
		return process{}, fmt.Errorf("stat of process %d is malformed", pid)
	}
	parent, err1 := strconv.Atoi(fields[parentField])
	start, err2 := strconv.ParseUint(fields[startField], 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return process{}, fmt.Errorf("stat of process %d: %w", pid, err)
	}
	return process{pid: pid, parent: parent, start: start, name: string(stat[open+1 : end])}, nil
}

func noNewPrivs(pid int) (bool, error) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(string(status)) {
		if v, ok := strings.CutPrefix(line, "NoNewPrivs:"); ok {
			return strings.TrimSpace(v) == "1", nil
		}
	}
	return false, nil // before Linux 4.10
}

// alive reports an error when the process behind a pidfd has ended.
func alive(pidfd, pid int) error {
	fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, 0)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("process %d: %w", pid, err)
		case n > 0:
			return fmt.Errorf("process %d has ended", pid)
		default:
			return nil
		}
	}
}
