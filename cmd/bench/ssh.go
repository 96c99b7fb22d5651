package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"time"
)

// The rows of sshRows.
const (
	sshOpenWork = "session open, ssh, worker in place"
	sshReadWork = "read_file of 2 KB, ssh"
	sshBashWork = "bash true, ssh"
)

// sshdProgram must be started by an absolute path.
const sshdProgram = "/usr/sbin/sshd"

// sshRows compares a session behind ssh with what the ssh command does on the
// same machine: this one, behind a server of its own on loopback.
func sshRows(ctx context.Context, b *bench) (err error) {
	dir, err := os.MkdirTemp("", "caisson-bench-ssh-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	config, stop, err := startSSHD(ctx, dir)
	if stop != nil {
		defer func() { err = errors.Join(err, stop()) }()
	}
	if err != nil {
		return err
	}
	s, err := b.start(ctx, fmt.Sprintf(`{"execution_environments": {"profiles": {
		"box": {"backend": "ssh", "host": "box", "ssh_config": %q, "workspace": %q}}}}`, config, filepath.Join(dir, "environments")))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	id, err := s.open("box")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.delete(id)) }()
	if err := s.tool(id, "write_file", map[string]any{"path": "small.txt", "content": text(smallFile)})(); err != nil {
		return err
	}
	small := filepath.Join(dir, "small.txt")
	if err := writeText(small, smallFile); err != nil {
		return err
	}
	for _, r := range []struct {
		work   string
		ours   func() error
		remote string
		row    func(comparison) row
	}{
		{sshOpenWork, sshOpen(s), "true", func(c comparison) row { return c.atMost("ssh host true", 4) }},
		{sshReadWork, s.tool(id, "read_file", map[string]any{"path": "small.txt"}), "cat " + small,
			func(c comparison) row { return c.faster("ssh host cat", 20) }},
		{sshBashWork, s.tool(id, "bash", map[string]any{"command": "true"}), "true",
			func(c comparison) row { return c.faster("ssh host true", 20) }},
	} {
		if !b.wants(r.work) {
			continue
		}
		c, err := versus(ctx, slowRounds, r.ours, command(ctx, "ssh", "-F", config, "box", r.remote))
		if err != nil {
			return err
		}
		b.add(r.work, r.row(c))
	}
	return nil
}

// sshOpen opens a session and, outside of what most of it costs, deletes it.
func sshOpen(s *service) func() error {
	return func() error {
		id, err := s.open("box")
		if err != nil {
			return err
		}
		return s.delete(id)
	}
}

// startSSHD starts a server on loopback, with everything of its own in dir, and
// returns the configuration of a client that calls it "box".
func startSSHD(ctx context.Context, dir string) (config string, stop func() error, err error) {
	me, err := user.Current()
	if err != nil {
		return "", nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	address := l.Addr().(*net.TCPAddr)
	if err := l.Close(); err != nil {
		return "", nil, err
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"host", "key"} {
		if out, err := exec.CommandContext(ctx, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", in(name)).CombinedOutput(); err != nil {
			return "", nil, fmt.Errorf("ssh-keygen: %w: %s", err, out)
		}
	}
	public, err := os.ReadFile(in("host.pub"))
	if err != nil {
		return "", nil, err
	}
	if me.Uid == "0" {
		// Only a server of root's separates its privileges in there.
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			return "", nil, err
		}
	}
	config = in("config")
	for name, content := range map[string]string{
		"sshd_config": fmt.Sprintf(`ListenAddress %s
PidFile none
HostKey %s
AuthorizedKeysFile %s
StrictModes no
UsePAM no
UseDNS no
PermitRootLogin yes
MaxStartups 100
SetEnv HOME=%s
Subsystem sftp internal-sftp
`, address, in("host"), in("key.pub"), dir),
		"known_hosts": fmt.Sprintf("[127.0.0.1]:%d %s", address.Port, public),
		"config": fmt.Sprintf(`Host box
  HostName 127.0.0.1
  Port %d
  User %s
  IdentityFile %s
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile %s
  GlobalKnownHostsFile none
  StrictHostKeyChecking yes
  BatchMode yes
`, address.Port, me.Username, in("key"), in("known_hosts")),
	} {
		if err := os.WriteFile(in(name), []byte(content), 0o600); err != nil {
			return "", nil, err
		}
	}
	server := exec.CommandContext(ctx, sshdProgram, "-D", "-q", "-f", in("sshd_config"))
	server.WaitDelay = time.Second
	if err := server.Start(); err != nil {
		return "", nil, err
	}
	stop = func() error {
		if err := server.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		_ = server.Wait() // it was killed
		return nil
	}
	return config, stop, listening(ctx, address.String())
}

// listening waits until somebody listens.
func listening(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("sshd does not listen: %w", err)
		}
	}
}
