package sshtest

import (
	"context"
	"errors"
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
