package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/caisson-dev/caisson/backends/program"
)

// plainPath is a socket path that no remote shell reads anything into.
var plainPath = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^/[A-Za-z0-9/._-]*$`) })

// sshArgs are ssh's arguments for one connection to the daemon behind an
// ssh:// endpoint. ssh is started without a shell, and it never asks anything:
// nobody is there to answer.
func sshArgs(host string) ([]string, error) {
	u, err := url.Parse(host)
	if err != nil {
		return nil, err
	}
	name := u.Hostname()
	switch {
	case name == "":
		return nil, errors.New("it names no host")
	case strings.HasPrefix(name, "-"):
		return nil, fmt.Errorf("the host name %q begins with a dash", name)
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("an ssh address has no query and no fragment")
	}
	args := []string{
		"-T", "-o", "BatchMode=yes",
		"-o", fmt.Sprintf("ConnectTimeout=%d", int(sshTimeout/time.Second)),
	}
	if u.User != nil {
		if _, has := u.User.Password(); has {
			return nil, errors.New("a password in an ssh address is not used; set up a key")
		}
		args = append(args, "-l", u.User.Username())
	}
	if port := u.Port(); port != "" {
		args = append(args, "-p", port)
	}
	args = append(args, "--", name, "docker")
	if path := strings.TrimSuffix(u.Path, "/"); path != "" {
		if !plainPath().MatchString(path) {
			return nil, fmt.Errorf("the socket path %q has characters that a remote shell would read", path)
		}
		args = append(args, "--host", "unix://"+path)
	}
	return append(args, "system", "dial-stdio"), nil
}

// commandConn is a connection over the standard streams of a command, which
// lives as long as the connection.
type commandConn struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	stderr *program.Tail
	name   string
	// ended is closed once the command was waited for; err is set before.
	ended chan struct{}
	err   error

	closeOnce sync.Once
}

// dialCommand starts the command. The context bounds nothing afterwards.
func dialCommand(ctx context.Context, name string, args ...string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// The command outlives the request that was the first to need it.
	cmd := exec.Command(name, args...) //nolint:noctx // ended by Close
	inRead, inWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		inRead.Close()
		inWrite.Close()
		return nil, err
	}
	c := &commandConn{
		cmd: cmd, stdin: inWrite, stdout: outRead, name: name,
		stderr: &program.Tail{Max: maxStderrBytes}, ended: make(chan struct{}),
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inRead, outWrite, c.stderr
	// A grandchild that holds on to stderr must not hold up the end.
	cmd.WaitDelay = time.Second
	err = cmd.Start()
	inRead.Close()
	outWrite.Close()
	if err != nil {
		inWrite.Close()
		outRead.Close()
		return nil, fmt.Errorf("%s cannot be started: %w", name, err)
	}
	go func() {
		defer close(c.ended)
		c.err = cmd.Wait()
	}()
	return c, nil
}

// Read reads what the command writes. An end that the command did not come to
// in good order says what it said about it.
func (c *commandConn) Read(p []byte) (int, error) {
	n, err := c.stdout.Read(p)
	if n > 0 || !errors.Is(err, io.EOF) {
		return n, err
	}
	return 0, c.why(io.EOF)
}

// Write writes to the command. A command that has ended says why.
func (c *commandConn) Write(p []byte) (int, error) {
	n, err := c.stdin.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		err = c.why(err)
	}
	return n, err
}

// why is what a command that has closed its side said about its end, else err.
func (c *commandConn) why(err error) error {
	closing := time.NewTimer(c.cmd.WaitDelay)
	defer closing.Stop()
	select {
	case <-c.ended:
		if c.err != nil {
			return fmt.Errorf("%s: %w: %s", c.name, c.err, c.stderr.Line())
		}
	case <-closing.C:
	}
	return err
}

// CloseWrite ends the command's input.
func (c *commandConn) CloseWrite() error { return c.stdin.Close() }

// Close ends the command and waits for it.
func (c *commandConn) Close() error {
	c.closeOnce.Do(func() {
		c.stdin.Close()
		_ = c.cmd.Process.Kill() // it may have ended already
		<-c.ended
		c.stdout.Close()
	})
	return nil
}

// LocalAddr names the command.
func (c *commandConn) LocalAddr() net.Addr { return commandAddr(c.name) }

// RemoteAddr names the command.
func (c *commandConn) RemoteAddr() net.Addr { return commandAddr(c.name) }

// SetDeadline bounds reads and writes.
func (c *commandConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline bounds reads.
func (c *commandConn) SetReadDeadline(t time.Time) error { return c.stdout.SetReadDeadline(t) }

// SetWriteDeadline bounds writes.
func (c *commandConn) SetWriteDeadline(t time.Time) error { return c.stdin.SetWriteDeadline(t) }

// commandAddr is the address of a commandConn.
type commandAddr string

func (commandAddr) Network() string  { return "command" }
func (a commandAddr) String() string { return string(a) }
