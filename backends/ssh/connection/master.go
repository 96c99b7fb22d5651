package connection

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/program"
	"github.com/caisson-dev/caisson/backends/tool"
)

// strict are the options that no configuration may soften, for the destination
// and for every host that is jumped over; and what nobody here has a use for.
func strict() []string {
	batch := "yes"
	if askpass() {
		batch = "no"
	}
	return options(
		"StrictHostKeyChecking=yes", "UpdateHostKeys=no", "VerifyHostKeyDNS=no", "NoHostAuthenticationForLocalhost=no",
		"BatchMode="+batch, "NumberOfPasswordPrompts=1",
		"ControlMaster=no", "ControlPath=none", "ControlPersist=no",
		"ForwardAgent=no", "ForwardX11=no", "ClearAllForwardings=yes", "Tunnel=no",
		"PermitLocalCommand=no", "RemoteCommand=none", "RequestTTY=no", "LogLevel=DEBUG1",
		fmt.Sprintf("ServerAliveInterval=%d", (aliveEvery+aliveTimeout)/3/time.Second), "ServerAliveCountMax=2",
	)
}

func options(settings ...string) []string {
	var args []string
	for _, s := range settings {
		args = append(args, "-o", s)
	}
	return args
}

// sshArguments are ssh's arguments for h, without the host. Its configuration is
// read as ever; what comes first wins.
func (h *hop) sshArguments(r resolver) []string {
	args := append(r.arguments(h.Asked), strict()...)
	args = append(args, options(fmt.Sprintf("ConnectTimeout=%d", max(1, int(h.Settings.timeout()/time.Second))))...)
	if f := h.Asked.KnownHostsFile; f != "" {
		args = append(args, options(`UserKnownHostsFile="`+escapeTokens(f)+`"`, "GlobalKnownHostsFile=none")...)
	}
	// Versions before 8.7 know neither the directive nor the option.
	if len(h.Settings["forkafterauthentication"]) > 0 {
		args = append(args, options("ForkAfterAuthentication=no")...)
	}
	return args
}

// masterArguments are ssh's arguments for a master of r on a socket. A jump is
// not left to ProxyJump, whose ssh does not inherit the options: it is a
// ProxyCommand that has them.
func (r *Route) masterArguments(socket string) []string {
	asks := resolver{program: r.program}
	var proxy string
	for i, h := range r.hops[:len(r.hops)-1] {
		next := r.hops[i+1]
		words := append([]string{r.program}, h.sshArguments(asks)...)
		if proxy != "" {
			words = append(words, options("ProxyCommand="+proxy)...)
		}
		words = append(words, "-W", address(next.Host, next.Port), "--", h.Name)
		// A ProxyCommand is read for tokens, and then by a shell.
		proxy = escapeTokens(Quote(words...))
	}
	last := r.last()
	// What comes first wins: the options say no to masters.
	args := append([]string{"-M", "-N", "-T", "-S", socket}, last.sshArguments(asks)...)
	if proxy != "" {
		args = append(args, options("ProxyCommand="+proxy)...)
	}
	return append(args, "--", last.Name)
}

// master makes a connection over r through OpenSSH: a process of its own that
// connects and authenticates, and whose socket is joined.
func (p *Pool) master(ctx context.Context, r *Route, progress backends.Progress, why string) (*link, error) {
	if r.program == "" {
		return nil, tool.Errorf(tool.BackendUnavailable, "%s needs OpenSSH (%s), and there is no ssh program", r, why).
			WithHint("install OpenSSH's client, so that ssh is in PATH")
	}
	if !canMaster {
		return nil, tool.Errorf(tool.Unsupported, "%s needs OpenSSH (%s), whose connections cannot be shared on this system", r, why).
			WithHint("use a host that is reached by HostName, ProxyJump and keys alone")
	}
	limit := masterGrace
	for _, h := range r.hops {
		limit += h.Settings.timeout()
	}
	progress.Report(fmt.Sprintf("connecting to %s with OpenSSH (%s)", r, why))
	var l *link
	err := p.insist(ctx, r.String(), limit, progress, func() (err error) {
		l, err = p.oneMaster(ctx, r, limit)
		return err
	})
	return l, err
}

// oneMaster starts a master, which has limit of time, and joins it.
func (p *Pool) oneMaster(ctx context.Context, r *Route, limit time.Duration) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	m, err := startMaster(r)
	if err != nil {
		return nil, tool.Errorf(tool.BackendUnavailable, "OpenSSH cannot be started for %s: %w", r, err)
	}
	conn, err := m.connect(ctx)
	if err == nil {
		var l *link
		if l, err = p.joinMaster(r, m, conn); err == nil {
			return l, nil
		}
	}
	m.stop()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, unreachable(r.last(), fmt.Errorf("OpenSSH did not connect within %s%s%s", limit, stuckIn(m.stderr.String()), m.lastWords())).
			WithHint("see whether ssh %s connects", Quote(r.last().Name))
	case ctx.Err() != nil:
		return nil, &tool.Error{Kind: tool.EndKind(ctx), Message: "connecting to " + r.String() + " was cancelled", Err: context.Cause(ctx)}
	}
	return nil, r.masterError(m.stderr.String(), err)
}

// joinMaster makes a link of a connection to a master.
func (p *Pool) joinMaster(r *Route, m *master, conn net.Conn) (*link, error) {
	heard := newHeardConn(conn)
	c, chans, reqs, err := ssh.NewControlClientConn(&bufferedConn{Conn: heard, r: bufio.NewReaderSize(heard, streamBuffer)})
	if err != nil {
		conn.Close()
		return nil, err
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		c.Close()
		return nil, err
	}
	l := p.newLink(r, ssh.NewClient(c, chans, reqs), nil, func() error {
		err := conn.Close()
		m.stop()
		return err
	})
	l.work.Go(func() { l.watchMaster(m, heard) })
	return l, nil
}

// watchMaster ends a link whose master does nothing any more. That the machine
// lives is for the master to see: it does not pass such questions on.
func (l *link) watchMaster(m *master, heard *heardConn) {
	tick := time.NewTicker(aliveEvery)
	defer tick.Stop()
	for {
		select {
		case <-l.done:
			return
		case <-tick.C:
		}
		if heard.silent() >= aliveEvery && !m.greets() && heard.silent() >= aliveTimeout {
			l.end(fmt.Errorf("OpenSSH, which holds the connection to %s, does not answer", l.route.last()))
			return
		}
	}
}

// greets reports whether the master greets whoever joins it.
func (m *master) greets() bool {
	ctx, cancel := context.WithTimeout(context.Background(), aliveTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", m.socket)
	if err != nil {
		return false
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(aliveTimeout)); err != nil {
		return false
	}
	_, err = conn.Read(make([]byte, 1))
	return err == nil
}

// bufferedConn spares the two system calls that a packet costs otherwise.
type bufferedConn struct {
	net.Conn
	r *bufio.Reader
}

// Read reads what is there.
func (c *bufferedConn) Read(p []byte) (int, error) { return c.r.Read(p) }

// master is a running OpenSSH that shares its connection.
type master struct {
	cmd    *exec.Cmd
	dir    string
	socket string
	stderr *program.Tail
	ended  chan struct{} // closed when it has ended
	err    error
}

// startMaster starts the process.
func startMaster(r *Route) (*master, error) {
	dir, err := socketDir()
	if err != nil {
		return nil, err
	}
	m := &master{dir: dir, socket: filepath.Join(dir, "s"), stderr: &program.Tail{Max: maxMasterLog}, ended: make(chan struct{})}
	// It lives as long as the connection.
	m.cmd = exec.Command(r.program, r.masterArguments(m.socket)...) //nolint:noctx // ended by stop
	m.cmd.Stderr = m.stderr
	m.cmd.WaitDelay = time.Second
	m.cmd.Env = append(os.Environ(), "SSH_ASKPASS_REQUIRE=force")
	if !askpass() {
		m.cmd.Env = append(os.Environ(), "SSH_ASKPASS_REQUIRE=never")
	}
	if len(r.hops) > 1 {
		// What the jumps are made of is quoted for a POSIX shell.
		m.cmd.Env = append(m.cmd.Env, "SHELL=/bin/sh")
	}
	prepare(m.cmd)
	dieWithParent(m.cmd)
	started := make(chan error)
	go func() {
		defer close(m.ended)
		// The kernel ends the process with the thread that started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := m.cmd.Start()
		started <- err
		if err == nil {
			m.err = m.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return m, nil
}

// socketDir is a private directory with a path that is short enough.
func socketDir() (string, error) {
	dir, err := os.MkdirTemp("", "csn")
	if err == nil && len(dir) > maxSocketPath-len("/s") {
		if err = os.Remove(dir); err == nil {
			dir, err = os.MkdirTemp("/tmp", "csn")
		}
	}
	return dir, err
}

// connect waits for the master's socket, which is there once it has
// authenticated. The connection has ctx's deadline.
func (m *master) connect(ctx context.Context) (net.Conn, error) {
	look := time.NewTicker(settleEvery)
	defer look.Stop()
	for {
		select {
		case <-m.ended:
			return nil, m.err
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-look.C:
		}
		var d net.Dialer
		conn, err := d.DialContext(ctx, "unix", m.socket)
		if err != nil {
			continue // not yet
		}
		if deadline, ok := ctx.Deadline(); ok {
			err = conn.SetDeadline(deadline)
		}
		if err != nil {
			conn.Close()
			return nil, err
		}
		return conn, nil
	}
}

// stop ends the master and waits for its end.
func (m *master) stop() {
	terminate(m.cmd.Process)
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-m.ended:
	case <-grace.C:
		killGroup(m.cmd.Process)
		<-m.ended
	}
	_ = os.RemoveAll(m.dir) // at worst an empty directory stays
}

// lastWords is what the master said, after a colon.
func (m *master) lastWords() string {
	if text := strings.Join(strings.Fields(plainLines(m.stderr.String())), " "); text != "" {
		return ": " + text
	}
	return ""
}
