package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/program"
)

// nursery starts the adapters of broken.py by forks of one Python: to start Python for
// each of the thousands that are needed would take minutes.
type nursery struct {
	mu  sync.Mutex
	ask *os.File
}

// newNursery starts one, which ends with the test.
func newNursery(t *testing.T) *nursery {
	t.Helper()
	ours, theirs, err := packets()
	if err != nil {
		t.Fatal(err)
	}
	argv := append(interpreter(t), "../../../testdata/adapters/broken/nursery.py")
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stderr = theirs, os.Stderr
	if err := errors.Join(cmd.Start(), theirs.Close()); err != nil {
		t.Fatal(err, ours.Close())
	}
	t.Cleanup(func() {
		if err := errors.Join(ours.Close(), cmd.Wait()); err != nil {
			t.Error(err)
		}
	})
	return &nursery{ask: ours}
}

// packets are the ends of a connection that keeps the borders of what is sent.
func packets() (one, other *os.File, err error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	_ = syscall.SetNonblock(fds[0], true) // so that a read of it can be ended; else it is only slower
	return os.NewFile(uintptr(fds[0]), "packets"), os.NewFile(uintptr(fds[1]), "packets"), nil
}

// start is [program.Start] of the broken adapter whose breach is the last of the
// arguments.
func (n *nursery) start(o program.Options) (started, error) {
	c := &child{exited: make(chan struct{}), letGo: o.LetGo}
	var theirs [4]*os.File
	err := c.open(&theirs)
	if err == nil {
		err = n.send(o, theirs)
	}
	for _, f := range theirs {
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	c.copied.Go(func() { _, _ = io.Copy(o.Stderr, c.stderr) })
	go c.wait()
	return c, nil
}

func (n *nursery) send(o program.Options, theirs [4]*os.File) error {
	environment := make(map[string]string) // beside its own, which is ours
	for _, v := range o.Env[len(os.Environ()):] {
		name, value, _ := strings.Cut(v, "=")
		environment[name] = value
	}
	asked, err := json.Marshal(args{"breach": o.Argv[len(o.Argv)-1], "environment": environment})
	if err != nil {
		return err
	}
	var fds []int
	for _, f := range theirs {
		fds = append(fds, int(f.Fd()))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	raw, err := n.ask.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	err = raw.Write(func(fd uintptr) bool {
		sent = syscall.Sendmsg(int(fd), asked, syscall.UnixRights(fds...), nil, 0)
		return !errors.Is(sent, syscall.EAGAIN)
	})
	return errors.Join(err, sent)
}

// child is an adapter of the nursery, as a [program.Program] would be.
type child struct {
	in, out, stderr *os.File
	told            *os.File // says the wait status; to end it kills
	exited          chan struct{}
	state           error
	copied          sync.WaitGroup
	once            sync.Once
	closed          error
	letGo           time.Duration
	held            []string
}

// open makes the ends of its streams, ours and theirs.
func (c *child) open(theirs *[4]*os.File) (err error) {
	if theirs[0], c.in, err = os.Pipe(); err != nil {
		return err
	}
	if c.out, theirs[1], err = os.Pipe(); err != nil {
		return err
	}
	if c.stderr, theirs[2], err = os.Pipe(); err != nil {
		return err
	}
	c.told, theirs[3], err = packets()
	return err
}

func (c *child) close() error {
	return errors.Join(c.in.Close(), c.out.Close(), c.stderr.Close(), c.told.Close())
}

func (c *child) wait() {
	defer close(c.exited)
	said := make([]byte, 16)
	n, err := c.told.Read(said)
	number, _ := strconv.Atoi(string(said[:n]))
	status := syscall.WaitStatus(number)
	switch {
	case n == 0:
		c.state = &program.ExitError{State: fmt.Sprintf("the nursery is gone: %v", err)}
	case status.Signaled():
		c.state = &program.ExitError{State: "signal: " + status.Signal().String()}
	case status.ExitStatus() != 0:
		c.state = &program.ExitError{State: fmt.Sprintf("exit status %d", status.ExitStatus())}
	}
}

func (c *child) Read(b []byte) (int, error) {
	n, err := c.out.Read(b)
	if errors.Is(err, os.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.EOF
	}
	return n, err
}

func (c *child) Held() []string { return c.held }

func (c *child) Write(b []byte) (int, error) { return c.in.Write(b) }

func (c *child) Gone() <-chan struct{} { return c.exited }

func (c *child) ExitedWithin(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-c.exited:
		return true
	case <-timer.C:
		return false
	}
}

func (c *child) Err() error {
	select {
	case <-c.exited:
		return c.state
	default:
		return nil
	}
}

// CloseWithin ends its input, and kills it when it has not exited in time. Who reads
// its output goes on with that until its end.
func (c *child) CloseWithin(grace time.Duration) error {
	c.once.Do(func() {
		_ = c.in.Close()
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-c.exited:
			c.closed = c.state
			if c.letGo > 0 {
				_ = c.out.SetReadDeadline(time.Now().Add(c.letGo)) // without one it is closed below
				if _, err := io.Copy(io.Discard, c.out); err != nil {
					c.held = []string{"standard output"}
				}
			}
		case <-timer.C:
			_, _ = c.told.Write([]byte("kill"))
			<-c.exited
			c.closed = program.ErrKilled
		}
		_ = c.out.Close()
		_ = c.stderr.Close()
		_ = c.told.Close()
		c.copied.Wait()
	})
	return c.closed
}
