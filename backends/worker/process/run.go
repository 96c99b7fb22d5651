package process

import (
	"context"
	"errors"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/rlimit"
)

// Run runs a command in the foreground and waits for its end, takes what it has
// written, and waits at most [DrainGrace] for the end of its output: somebody whom it
// left behind may hold its pipes, and is left alone. The command's stdin is at its end.
//
// A command that fails is a result. An error says that it did not run, or that
// ctx ended ([tool.Cancelled], [tool.Timeout]); then it and all its descendants
// are dead, and the result holds what it had written. A command that takes
// longer than its Timeout goes on as a background process, unless it is Alone.
func (m *Manager) Run(ctx context.Context, c Command) (Result, error) {
	failed := Result{ExitCode: -1}
	if ctx.Err() != nil {
		return failed, ended(ctx, "the command")
	}
	if c.MaxOutputBytes <= 0 {
		c.MaxOutputBytes = m.o.MaxOutputBytes
	}
	c.MaxOutputBytes = min(c.MaxOutputBytes, maxCapture)
	f, pidfd, err := m.startForeground(c)
	if err != nil {
		return failed, err
	}
	defer f.discard()
	f.followHere(pidfd)
	if isClosed(f.exited) && !c.Alone {
		f.awaitRest(DrainGrace)
		return f.result(c), nil
	}
	timeout, free := m.late(c.Timeout)
	defer free()
	over := f.exited
	if c.Alone {
		over = f.ending
	}
	select {
	case <-over:
	case <-ctx.Done():
		err := errors.Join(ended(ctx, "the command"), f.destroy())
		f.awaitRest(DrainGrace)
		return f.result(c), err
	case <-timeout:
		if c.Alone {
			err := f.destroy()
			f.awaitRest(DrainGrace)
			r := f.result(c)
			r.TimedOut = true
			return r, err
		}
		if f.adopt() {
			r := f.result(c)
			r.TimedOut, r.PromotedProcessID = true, f.id
			return r, nil
		}
		<-f.exited // it ended at this very moment
	}
	if c.Alone {
		err = f.destroy()
	}
	f.awaitRest(DrainGrace)
	return f.result(c), err
}

// foreground is a command that somebody waits for.
type foreground struct {
	*proc
	began          time.Time
	stdout, stderr *capture
}

// startForeground starts the command. The caller follows it, which is one of the
// Manager's goroutines.
func (m *Manager) startForeground(c Command) (_ *foreground, pidfd int, err error) {
	w, err := m.license(c.Mode, c.Actor)
	if err != nil {
		return nil, -1, err
	}
	w.more, w.place, w.confined = c.Writable, c.Place, c.Place != nil && c.CWD == ""
	if len(c.Stdin) > MaxWriteBytes {
		return nil, -1, tool.Errorf(tool.InvalidParams, "%d bytes of input are too many: the most is %d", len(c.Stdin), MaxWriteBytes).WithPath("stdin")
	}
	env, err := pairs(c.Env)
	if err != nil {
		return nil, -1, err
	}
	id := newID()
	s, err := m.prepare(id, request{line: c.Command, argv: c.Argv, dir: c.CWD, env: env, license: w})
	if err != nil {
		return nil, -1, err
	}
	if c.Limits != (rlimit.Limits{}) {
		if s.path, s.argv, err = c.Limits.Wrap(s.path, s.argv); err != nil {
			return nil, -1, err
		}
	}
	rec := m.newRecord(id, s, w.mode, c.Actor)
	rec.Status, rec.Command, rec.Argv, rec.Label = tool.ProcessRunning, c.Command, c.Argv, c.Label
	half := int(c.MaxOutputBytes+1) / 2
	f := &foreground{proc: m.newProc(rec), began: time.Now(), stdout: newCapture(half), stderr: newCapture(half)}
	f.captures, f.place = []*capture{f.stdout, f.stderr}, c.Place
	adoptable := c.Timeout > 0 && !c.Alone
	if adoptable {
		f.out = &output{base: f.base(), memory: memoryOutput}
	}
	s.input = len(c.Stdin) > 0
	s.streams = []*streamTo{{capture: f.stdout, merged: adoptable}, {capture: f.stderr, merged: adoptable}}
	m.starts.RLock()
	defer m.starts.RUnlock()
	if err := m.admit(f.proc); err != nil {
		return nil, -1, err
	}
	defer func() {
		if err != nil {
			m.dismiss(f.proc)
		}
	}()
	if s.launcher, f.release, err = m.launcher(w); err != nil {
		return nil, -1, err
	}
	f.limited = m.policy(w).Confines()
	f.alone = c.Alone && f.hold()
	if pidfd, err = f.spawn(s); err != nil {
		f.release()
		return nil, -1, err
	}
	if f.stdin != nil {
		m.work.Go(func() { f.feed(c.Stdin) })
	}
	m.work.Add(1)
	return f, pidfd, nil
}

// followHere is follow, by the calling goroutine as long as the command is young. One
// that is alone ends only when the caller has destroyed what there is of it.
func (f *foreground) followHere(pidfd int) {
	attended := f.attend(pidfd)
	if attended && !f.alone {
		f.concludeAttended()
		return
	}
	go func() {
		if attended {
			f.concludeAttended()
			return
		}
		defer f.m.work.Done()
		f.watch(pidfd)
	}()
}

func (f *foreground) concludeAttended() {
	defer f.m.work.Done()
	f.conclude(nil)
	if isClosed(f.drained) {
		f.sweep()
	}
}

// feed gives the command its input, as far as it reads.
func (f *foreground) feed(data []byte) {
	if w, err := f.stdin.file(); err == nil {
		_, _ = w.Write(data) // a command need not read it all
	}
	_ = f.stdin.close() // or its end closed it
}

// adopt makes a running command a background process. It reports false when
// the command has ended.
func (f *foreground) adopt() bool {
	p := f.proc
	p.change.Lock()
	defer p.change.Unlock()
	p.mu.Lock()
	if p.rec.Status.Terminal() {
		p.mu.Unlock()
		return false
	}
	p.kept = true
	p.mu.Unlock()
	if err := p.out.flush(); err != nil {
		p.m.o.Log.Warn("the output of an adopted command was not kept", "process", p.id, "error", err)
	}
	_ = p.updateHeld(tool.EventStarted, "", p.identify) // logged there
	p.m.enlist(p)
	return true
}

// result is how the command stands.
func (f *foreground) result(c Command) Result {
	rec := f.snapshot()
	r := Result{
		ExitCode: rec.ExitCode, Signal: rec.Signal, Duration: time.Since(f.began),
		StdoutBytes: f.stdout.size(), StderrBytes: f.stderr.size(),
		Mode: rec.SandboxMode, SandboxDenied: rec.SandboxDenied, OOMKilled: rec.OOMKilled,
	}
	out, err := share(int(c.MaxOutputBytes), r.StdoutBytes, r.StderrBytes)
	r.Stdout, r.StdoutTruncated = f.stdout.result(out)
	r.Stderr, r.StderrTruncated = f.stderr.result(err)
	return r
}

// discard frees the output; what else comes is dropped.
func (f *foreground) discard() {
	f.stdout.discard()
	f.stderr.discard()
}
