//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// accidents lets them happen at their times.
func (w *world) accidents(ctx, over context.Context) error {
	for _, x := range w.plan.accidents {
		wait := time.NewTimer(time.Until(w.journal.began.Add(x.at)))
		select {
		case <-wait.C:
		case <-over.Done():
			wait.Stop()
			return nil
		}
		if err := w.happen(ctx, x); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("%s: %w", x.kind, err)
		}
	}
	return nil
}

func (w *world) happen(ctx context.Context, x accident) error {
	note := func(format string, args ...any) {
		w.journal.note("accident", "%s: %s", x.kind, fmt.Sprintf(format, args...))
		w.tally.count(x.kind.String())
	}
	a := w.agents[x.session]
	s := w.in(x.slot)
	if s == nil {
		s = w.in(1 - x.slot)
	}
	switch x.kind {
	case workerKilled:
		note("of %s", a.name())
		return w.killWorker(ctx, a)
	case connectionCut:
		if a.profile == local {
			return nil // there is nothing between
		}
		note("of %s", a.name())
		// The quotes keep the command itself from being meant.
		return w.inContainer(ctx, a, `case "$(tr '\0' ' ' < $p/cmdline)" in *" attac""h "*) kill -9 ${p#/proc/};; esac`)
	case serviceKilled:
		note("%d", s.slot)
		return w.replace(ctx, s, s.cmd.Process.Kill)
	case serviceEnded:
		note("%d", s.slot)
		return w.replace(ctx, s, func() error { return s.cmd.Process.Signal(syscall.SIGTERM) })
	case clientGone:
		note("of service %d", s.slot)
		return w.replace(ctx, s, s.hangUp)
	case editorGone:
		note("of service %d", s.slot)
		return w.replace(ctx, s, s.editor.Process.Kill)
	case secondBegins:
		if w.in(1) != nil {
			return nil
		}
		note("")
		_, err := w.start(ctx, 1)
		return err
	case secondEnds:
		if s = w.in(1); s == nil {
			return nil
		}
		note("")
		return s.end(ctx, s.Close)
	default:
		return fmt.Errorf("nobody knows how to let %d happen", x.kind)
	}
}

// replace ends a service, and starts another one while it ends: a client that
// comes back does not wait.
func (w *world) replace(ctx context.Context, s *service, how func() error) error {
	if err := s.end(ctx, how); err != nil {
		return err
	}
	_, err := w.start(ctx, s.slot)
	return err
}

// killWorker kills the worker of an agent's session, on this machine that alone,
// in a container whatever there is.
func (w *world) killWorker(ctx context.Context, a *agent) error {
	if a.profile != local {
		return w.inContainer(ctx, a, `[ "$(cat $p/comm)" = caisson-worker ] && kill -9 ${p#/proc/}`)
	}
	id := a.id.Load()
	if id == nil {
		return nil
	}
	pids, err := w.workers(*id)
	if err != nil {
		return err
	}
	a.disturb()
	defer a.disturb()
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
	}
	return nil
}

// inContainer runs a shell command for each process p of an agent's container,
// whose every session is disturbed by it.
func (w *world) inContainer(ctx context.Context, a *agent, command string) error {
	name := a.container.Load()
	if name == nil {
		return nil
	}
	disturb := func() {
		for _, other := range w.agents {
			if at := other.container.Load(); at != nil && *at == *name {
				other.disturb()
			}
		}
	}
	disturb()
	defer disturb()
	line := "for p in /proc/[0-9]*; do { " + command + "; } 2>/dev/null; done; true"
	for try := 1; ; try++ {
		_, err := docker(ctx, "exec", *name, "bash", "-c", line)
		if now := a.container.Load(); err == nil || now == nil || *now != *name || saysGone(err) {
			return nil // the session may have been closed meanwhile
		}
		// Its container may just be ending with it, which an engine says in many ways.
		if try == execTries {
			return err
		}
		select {
		case <-time.After(execInterval):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// How often, and how far apart, a command is tried in a container that may be
// ending: one that lives takes it the next time.
const (
	execTries    = 10
	execInterval = time.Second
)

// saysGone reports whether the engine refused a command since there is nothing to
// run it in.
func saysGone(err error) bool {
	return strings.Contains(err.Error(), "is not running") || strings.Contains(err.Error(), "No such container")
}

// monitorInterval is how often the services are measured.
const monitorInterval = time.Second

// What a service may take, with all sessions open: a service that leaks gets
// there soon.
const (
	maxMemory      = 400 << 20
	maxDescriptors = 700
)

// monitor measures the services.
func (w *world) monitor(over context.Context) error {
	tick := time.NewTicker(monitorInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-over.Done():
			return nil
		}
		for slot := range slots {
			s := w.in(slot)
			if s == nil {
				continue
			}
			memory, descriptors, err := measure(s.cmd.Process.Pid)
			if err != nil {
				continue // it has just ended
			}
			w.tally.peak("MiB at most of a service", memory>>20)
			w.tally.peak("descriptors at most of a service", int64(descriptors))
			if memory > maxMemory || descriptors > maxDescriptors {
				return fmt.Errorf("service %d takes %d MiB and %d descriptors", slot, memory>>20, descriptors)
			}
		}
	}
}

// measure is the resident memory of a process, in bytes, and how many
// descriptors it has.
func measure(pid int) (memory int64, descriptors int, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	_, rest, _ := strings.Cut(string(status), "\nVmRSS:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0, 0, fmt.Errorf("process %d has no memory any more", pid)
	}
	if memory, err = strconv.ParseInt(fields[0], 10, 64); err != nil {
		return 0, 0, err
	}
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return memory << 10, len(list), err
}
