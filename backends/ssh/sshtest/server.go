package sshtest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// startTimeout is how long a server may take to listen, on a loaded machine.
	startTimeout = 30 * time.Second
	// sshdPath is where Debian, and macOS, have the server. It insists on being
	// started by an absolute path.
	sshdPath = "/usr/sbin/sshd"
)

// Options are how a server differs from one that takes Authorized's keys and
// allows everything.
type Options struct {
	// Authorized are the keys that may log in.
	Authorized []Key
	// UserCA is trusted to certify users.
	UserCA *Key
	// HostKeys are the types of the host's keys; nil means ed25519 alone.
	HostKeys []string
	// HostCA certifies the host's keys, for HostNames, valid for HostValidity as
	// ssh-keygen -V takes it (empty: an hour).
	HostCA       *Key
	HostNames    []string
	HostValidity string
	// MaxSessions is how many sessions one connection may have; 0 means 100.
	MaxSessions int
	// MaxStartups is how many connections may authenticate at once; 0 means 100.
	MaxStartups int
	// NoSFTP leaves the SFTP subsystem out.
	NoSFTP bool
	// Banner is shown before authentication.
	Banner string
	// PAM, unless empty, is the stack that the server asks about who logs in, as a
	// file of /etc/pam.d: it alone sees that folder so. Only root can start one.
	PAM string
	// Lines are further lines of sshd_config, which win over those above.
	Lines []string
}

// A Server is a running sshd.
type Server struct {
	// Host and Port are where it listens; Addr is both.
	Host string
	Port int
	Addr string
	// User is the only account that can log in.
	User string
	// HostKeys are its keys, in the order of Options.HostKeys.
	HostKeys []Key

	cmd  *exec.Cmd
	stop func()
	log  *logBuffer
	once sync.Once
}

// Start starts a server that ends with the test.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	if os.Getuid() == 0 {
		// Only a server of root's separates its privileges in there.
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Host: "127.0.0.1", User: me.Username, log: &logBuffer{changed: make(chan struct{})}}
	dir := tempDir(t)
	kinds := o.HostKeys
	if kinds == nil {
		kinds = []string{"ed25519"}
	}
	for _, kind := range kinds {
		s.HostKeys = append(s.HostKeys, NewKey(t, kind, ""))
	}
	// A port that was free a moment ago may be taken by now.
	for attempt := 0; ; attempt++ {
		s.Port = freePort(t)
		s.Addr = net.JoinHostPort(s.Host, strconv.Itoa(s.Port))
		write(t, filepath.Join(dir, "sshd_config"), s.config(t, dir, o))
		err := s.start(sshd(t, dir, o))
		if err == nil {
			break
		}
		if attempt == 4 {
			t.Fatal(err)
		}
	}
	t.Cleanup(s.Stop)
	return s
}

// config is the server's sshd_config.
func (s *Server) config(t testing.TB, dir string, o Options) string {
	t.Helper()
	var authorized, b strings.Builder
	for _, key := range o.Authorized {
		fmt.Fprintln(&authorized, key.Public)
	}
	write(t, filepath.Join(dir, "authorized_keys"), authorized.String())
	for _, line := range o.Lines {
		// The first value of a keyword wins.
		fmt.Fprintln(&b, line)
	}
	maxSessions := o.MaxSessions
	if maxSessions == 0 {
		maxSessions = 100
	}
	maxStartups := o.MaxStartups
	if maxStartups == 0 {
		maxStartups = 100
	}
	usePAM := "no"
	if o.PAM != "" {
		usePAM = "yes"
	}
	fmt.Fprintf(&b, `ListenAddress %s
PidFile none
AuthorizedKeysFile %s
StrictModes no
UsePAM %s
UseDNS no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
PrintMotd no
AcceptEnv LANG LC_* SSHTEST_*
AllowStreamLocalForwarding no
MaxStartups %d
MaxSessions %d
LogLevel VERBOSE
`, s.Addr, filepath.Join(dir, "authorized_keys"), usePAM, maxStartups, maxSessions)
	for _, key := range s.HostKeys {
		fmt.Fprintf(&b, "HostKey %s\n", key.File)
		if o.HostCA != nil {
			validity := o.HostValidity
			if validity == "" {
				validity = "-1m:+1h"
			}
			fmt.Fprintf(&b, "HostCertificate %s\n", key.signHost(t, *o.HostCA, validity, o.HostNames...))
		}
	}
	if o.UserCA != nil {
		fmt.Fprintf(&b, "TrustedUserCAKeys %s.pub\n", o.UserCA.File)
	}
	if !o.NoSFTP {
		fmt.Fprintln(&b, "Subsystem sftp internal-sftp")
	}
	if o.Banner != "" {
		banner := filepath.Join(dir, "banner")
		write(t, banner, o.Banner)
		fmt.Fprintf(&b, "Banner %s\n", banner)
	}
	return b.String()
}

// sshd is the command of a server whose sshd_config lies in dir.
func sshd(t testing.TB, dir string, o Options) []string {
	t.Helper()
	argv := []string{sshdPath, "-D", "-e", "-f", filepath.Join(dir, "sshd_config")}
	if o.PAM == "" {
		return argv
	}
	stacks := filepath.Join(dir, "pam.d")
	if err := os.MkdirAll(stacks, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(stacks, "sshd"), o.PAM)
	// Each of these becomes the next, so that the server is the process that is started.
	return append([]string{"unshare", "--mount", "/bin/sh", "-c", `mount --bind "$0" /etc/pam.d && exec "$@"`, stacks}, argv...)
}

// start starts the server and waits until it listens.
func (s *Server) start(argv []string) error {
	// The server ends in Stop.
	s.cmd = exec.Command(argv[0], argv[1:]...) //nolint:noctx // ended by Stop
	s.cmd.Stderr = s.log
	// What sessions leave behind may hold on to the log.
	s.cmd.WaitDelay = time.Second
	stop, err := launch(s.cmd)
	if err != nil {
		return fmt.Errorf("starting %s: %w", sshdPath, err)
	}
	s.stop = stop
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := s.log.wait(ctx, "Server listening on"); err != nil {
		stop()
		return fmt.Errorf("sshd does not listen: %w: %s", err, s.Log())
	}
	return nil
}

// Log is what the server has logged.
func (s *Server) Log() string { return s.log.String() }

// WaitLog waits until the server has logged text.
func (s *Server) WaitLog(t testing.TB, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if err := s.log.wait(ctx, text); err != nil {
		t.Fatalf("%q is not in the server's log: %s", text, s.Log())
	}
}

// KnownHosts are the lines of known_hosts for all of the server's keys.
func (s *Server) KnownHosts() string {
	var b strings.Builder
	for _, key := range s.HostKeys {
		b.WriteString(s.KnownHost(key))
	}
	return b.String()
}

// KnownHost is the line of known_hosts for one key.
func (s *Server) KnownHost(key Key) string {
	return fmt.Sprintf("[%s]:%d %s\n", s.Host, s.Port, key.Public)
}

// Stop ends the server and all its connections at once. What sessions have
// started and detached lives on.
func (s *Server) Stop() {
	s.once.Do(func() {
		s.Thaw()
		connections := s.connections()
		_ = s.cmd.Process.Kill() // it may have ended already
		for _, pid := range connections {
			_ = kill(pid) // it may have ended already
		}
		s.stop()
	})
}

// Drop ends all connections; the server goes on. Their processes are stopped first: one
// that lets somebody in makes another, which would have the connection to itself.
func (s *Server) Drop() {
	var stopped []int
	for more := true; more; {
		more = false
		for _, pid := range s.connections() {
			if !slices.Contains(stopped, pid) {
				_ = freeze(pid) // it may have ended already
				stopped, more = append(stopped, pid), true
			}
		}
	}
	for _, pid := range stopped {
		_ = kill(pid)
	}
}

// Freeze stops the server and all its connections with SIGSTOP, as a machine
// that hangs would: nothing is closed and nothing answers.
func (s *Server) Freeze() {
	for _, pid := range append(s.connections(), s.cmd.Process.Pid) {
		_ = freeze(pid) // it may have ended already
	}
}

// Thaw undoes Freeze.
func (s *Server) Thaw() {
	for _, pid := range append(s.connections(), s.cmd.Process.Pid) {
		_ = thaw(pid) // it may have ended already
	}
}

// connections are the processes below the server whose program is sshd.
func (s *Server) connections() []int {
	children := make(map[int][]int)
	names := make(map[int]string)
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
		if open < 0 || end < 0 {
			continue
		}
		fields := strings.Fields(string(data[end+1:]))
		pid, err1 := strconv.Atoi(strings.TrimSpace(string(data[:open])))
		parent, err2 := strconv.Atoi(fields[1])
		if err1 != nil || err2 != nil {
			continue
		}
		children[parent] = append(children[parent], pid)
		names[pid] = string(data[open+1 : end])
	}
	var found []int
	next := children[s.cmd.Process.Pid]
	for len(next) > 0 {
		pid := next[0]
		next = append(next[1:], children[pid]...)
		if strings.HasPrefix(names[pid], "sshd") {
			found = append(found, pid)
		}
	}
	return found
}

// freePort is a loopback port on which nobody listens.
func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // loopback does not block
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// logBuffer keeps what is written to it, and tells who waits for it.
type logBuffer struct {
	mu      sync.Mutex
	data    bytes.Buffer
	changed chan struct{} // closed, and made anew, at each write
}

// Write keeps p.
func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
	return l.data.Write(p)
}

// String is everything so far.
func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.data.String()
}

// wait waits for text.
func (l *logBuffer) wait(ctx context.Context, text string) error {
	for {
		l.mu.Lock()
		found, fatal, changed := contains(&l.data, text), contains(&l.data, "fatal: "), l.changed
		l.mu.Unlock()
		switch {
		case found:
			return nil
		case fatal:
			return errors.New("it gave up")
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func contains(b *bytes.Buffer, text string) bool {
	lines := bufio.NewReader(bytes.NewReader(b.Bytes()))
	for {
		line, err := lines.ReadString('\n')
		if strings.Contains(line, text) {
			return true
		}
		if errors.Is(err, io.EOF) {
			return false
		}
	}
}
