//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// spec is what to run.
type spec struct {
	argv   []string
	dir    string
	env    []string
	stderr io.Writer // nil: with the output
}

// build makes the command that prints to output, as the leader of a group.
func (c spec) build(output *os.File) *exec.Cmd {
	cmd := exec.Command(c.argv[0], c.argv[1:]...) //nolint:noctx // it outlives its request
	cmd.Dir, cmd.Env = c.dir, c.env
	cmd.Stdout, cmd.Stderr = output, output
	if c.stderr != nil {
		cmd.Stderr = c.stderr
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second // whoever still holds stderr is not waited for
	return cmd
}

// mustBeUnconfined refuses a command that would have to be confined.
func mustBeUnconfined(mode tool.Mode) error {
	if mode == tool.Unconfined {
		return nil
	}
	return tool.Errorf(tool.Unsupported, "this adapter cannot confine commands, as the mode %s asks for", mode).
		WithHint("let the profile's permission_mode and max_permission_mode be unconfined, or use another backend")
}

// directory is the directory cwd of the workspace.
func (f *files) directory(cwd string) (string, error) {
	name, err := f.name(cwd)
	if err != nil {
		return "", err
	}
	info, err := f.root.Stat(name) // which follows no link out of it
	if err != nil {
		return "", tool.Errorf(tool.InvalidParams, "cwd: %w", err).WithPath("cwd")
	}
	if !info.IsDir() {
		return "", tool.Errorf(tool.InvalidParams, "cwd: %s is not a directory", cwd).WithPath("cwd")
	}
	return filepath.Join(f.dir, name), nil
}

// start is process/start.
func (f *files) start(_ context.Context, r tool.StartRequest) (tool.Process, error) {
	if err := mustBeUnconfined(r.PermissionMode); err != nil {
		return tool.Process{}, err
	}
	if r.TTY != nil {
		return tool.Process{}, tool.Errorf(tool.Unsupported, "this adapter has no terminals").WithPath("tty")
	}
	if (r.Command == "") == (len(r.Argv) == 0) {
		return tool.Process{}, tool.Errorf(tool.InvalidParams, "a process is either a command or an argv")
	}
	dir, err := f.directory(r.CWD)
	if err != nil {
		return tool.Process{}, err
	}
	c := spec{argv: r.Argv, dir: dir, env: f.env}
	shown := r.Command
	if r.Command != "" {
		c.argv = []string{"/bin/sh", "-c", r.Command}
	} else {
		shown = r.Argv[0]
	}
	for name, value := range r.Environment {
		c.env = append(c.env[:len(c.env):len(c.env)], name+"="+value)
	}
	owner := f.owned(r.Actor)
	owner.OperationID, owner.Command, owner.CWD = r.OperationID, shown, dir
	if r.Lifecycle != "" {
		owner.Lifecycle = r.Lifecycle
	}
	p, err := f.registry.admit(c, owner, false)
	if p == nil {
		return tool.Process{}, err
	}
	return f.registry.snapshot(p), err
}

// owned is a record with its owner.
func (f *files) owned(actor string) tool.Process {
	session := f.registry.session.Binding().Session
	p := tool.Process{OwnerKind: tool.OwnerSubagent, OwnerID: actor, RootThreadID: session, Lifecycle: tool.LifecycleSession, SandboxMode: tool.Unconfined}
	if actor == session {
		p.OwnerKind = tool.OwnerMainAgent
	}
	return p
}

// bash runs a command line. It is a process like every other one, which is forgotten
// when it ends in time: that way one that does not goes on as it is.
func (f *files) bash(ctx context.Context, actor, line, cwd string, timeout time.Duration, background bool) (tool.Result, error) {
	dir, err := f.directory(cwd)
	if err != nil {
		return tool.Result{}, err
	}
	owner := f.owned(actor)
	owner.Command, owner.CWD = line, dir
	c := spec{argv: []string{"/bin/sh", "-c", line}, dir: dir, env: f.env}
	var stderr limited
	if !background {
		c.stderr = &stderr
	}
	begun := time.Now()
	p, err := f.registry.admit(c, owner, !background)
	if p == nil {
		return tool.Result{}, err
	}
	if p.stdin != nil && !background {
		err = errors.Join(err, p.closeStdin())
	}
	if err != nil {
		return tool.Result{}, err
	}
	out := map[string]any{"command": line, "exit_code": -1, "stdout": "", "stderr": "", "stdout_truncated": false, "stderr_truncated": false, "timed_out": false}
	if background {
		out["promoted_process_id"] = p.record.ID
		return result(out)
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		if err := f.registry.adopt(p); err != nil {
			return tool.Result{}, err
		}
		out["timed_out"], out["promoted_process_id"] = true, p.record.ID
	case <-ctx.Done():
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*stopGrace)
		defer cancel()
		_, err := f.registry.stop(stopping, p.record.ID)
		return tool.Result{}, errors.Join(ctx.Err(), err, f.registry.drop(p))
	}
	stdout, cut, err := f.registry.head(p.record.ID, maxOutput)
	if err != nil {
		return tool.Result{}, err
	}
	out["stdout"], out["stdout_truncated"] = stdout, cut
	out["stderr"], out["stderr_truncated"] = stderr.take()
	out["duration_ms"] = time.Since(begun).Milliseconds()
	if out["timed_out"] == false {
		out["exit_code"] = f.registry.snapshot(p).ExitCode
		err = f.registry.drop(p)
	}
	if err != nil {
		return tool.Result{}, err
	}
	return result(out)
}
