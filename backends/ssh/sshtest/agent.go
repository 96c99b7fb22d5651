package sshtest

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// An Agent is a running ssh-agent.
type Agent struct {
	// Socket is its path.
	Socket string
}

// StartAgent starts an agent that holds the keys, in their order, and ends with
// the test.
func StartAgent(t testing.TB, keys ...Key) *Agent {
	t.Helper()
	a := &Agent{Socket: filepath.Join(tempDir(t), "agent")}
	cmd := exec.Command("ssh-agent", "-D", "-a", a.Socket) //nolint:noctx // ended below
	out := &logBuffer{changed: make(chan struct{})}
	cmd.Stdout = out
	stop, err := launch(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	// It prints its socket once it listens.
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if err := out.wait(ctx, "SSH_AUTH_SOCK="); err != nil {
		t.Fatalf("ssh-agent does not listen: %v: %s", err, out)
	}
	for _, key := range keys {
		a.Add(t, key)
	}
	return a
}

// StartMute is an agent that answers the first replies requests as agent does, and
// then nothing. It returns its socket.
func StartMute(t testing.TB, agent *Agent, replies int) string {
	t.Helper()
	socket := filepath.Join(tempDir(t), "mute")
	l, err := net.Listen("unix", socket) //nolint:noctx // a local socket does not block
	if err != nil {
		t.Fatal(err)
	}
	serve(t, l, func(c net.Conn) {
		for range replies {
			if relay(c, agent.Socket) != nil {
				return
			}
		}
	})
	return socket
}

// relay has the agent at socket answer one request.
func relay(c net.Conn, socket string) error {
	request, err := message(c)
	if err != nil {
		return err
	}
	a, err := net.Dial("unix", socket) //nolint:noctx // a local socket does not block
	if err != nil {
		return err
	}
	defer a.Close()
	if _, err := a.Write(request); err != nil {
		return err
	}
	reply, err := message(a)
	if err != nil {
		return err
	}
	_, err = c.Write(reply)
	return err
}

// message reads one message of the agent's protocol, with its length before it.
func message(r io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	m := make([]byte, 4+binary.BigEndian.Uint32(length[:]))
	copy(m, length[:])
	_, err := io.ReadFull(r, m[4:])
	return m, err
}

// Add gives the agent one more key.
func (a *Agent) Add(t testing.TB, key Key) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "ssh-add", "-q", key.File)
	cmd.Env = []string{"SSH_AUTH_SOCK=" + a.Socket, "SSH_ASKPASS_REQUIRE=never"}
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatal(errors.Join(err, errors.New(string(out))))
	}
}
