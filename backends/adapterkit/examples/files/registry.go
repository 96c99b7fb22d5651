//go:build unix

package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/caisson-dev/caisson/backends/adapterkit"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// registry holds the processes of the session, and their records on disk: one file
// ID.json each, and what the process printed in ID.output.
type registry struct {
	dir     string
	session *adapterkit.Session

	mu        sync.Mutex
	processes map[string]*process
	waiting   sync.WaitGroup // goroutines that wait for a process
}

// process is one process. Its record is guarded by the registry's mu.
type process struct {
	record tool.Process
	// identity tells it from a later process of the same pid.
	identity string
	stdin    *os.File
	// foreground is a command that a call waits for: no process yet for anybody else.
	foreground bool
	asked      bool          // somebody asked it to stop
	ended      chan struct{} // closed when it has ended
}

// saved is a record on disk.
type saved struct {
	tool.Process
	Identity   string `json:"identity,omitempty"`
	Foreground bool   `json:"foreground,omitempty"`
}

// stopGrace is the protocol's: SIGTERM, 2 s, SIGKILL, 2 s, an error.
const stopGrace = 2 * time.Second

// openRegistry recovers the records of an earlier adapter process. What of its
// processes still runs is ended: nobody can wait for it, and its session is over.
func openRegistry(dir string, s *adapterkit.Session, in wire.Initialize) (*registry, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	r := &registry{dir: dir, session: s, processes: map[string]*process{}}
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var was saved
		if err := json.Unmarshal(raw, &was); err != nil || was.RootThreadID != in.Session {
			return nil, fmt.Errorf("%s is no record of this session; it was left alone", name)
		}
		p := &process{record: was.Process, identity: was.Identity, ended: make(chan struct{})}
		close(p.ended)
		r.processes[p.record.ID] = p
		if p.record.Status.Terminal() {
			continue
		}
		if p.identity != "" && identity(p.record.PID) == p.identity {
			_ = syscall.Kill(-p.record.PGID, syscall.SIGKILL)
		}
		p.record.Status, p.record.TerminalCause = tool.ProcessFailed, tool.CauseLost
		p.record.StoppedAt = time.Now()
		if was.Foreground {
			err = r.forget(p.record.ID) // its call has failed
		} else {
			err = r.save(p)
		}
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// identity is what a pid stands for now: the boot and the time of its start. It is
// empty where that cannot be told, and then nothing is ever signalled by it.
func identity(pid int) string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	const startTime = 19 // counted from the state, which follows the name
	if len(fields) <= startTime {
		return ""
	}
	return strings.TrimSpace(string(boot)) + "/" + fields[startTime]
}

// save writes the record so that a reader sees the old one or the new one. r.mu is
// held, or nobody else has r yet.
func (r *registry) save(p *process) error {
	p.record.UpdatedAt = time.Now()
	raw, err := json.Marshal(saved{p.record, p.identity, p.foreground})
	if err != nil {
		return err
	}
	name := filepath.Join(r.dir, p.record.ID+".json")
	if err := os.WriteFile(name+".new", raw, 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

func (r *registry) outputFile(id string) string { return filepath.Join(r.dir, id+".output") }

// admit makes a process of a command: it is recorded before it is started.
func (r *registry) admit(c spec, owner tool.Process, foreground bool) (*process, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.session.Lifetime().Err() != nil {
		return nil, tool.Errorf(tool.BackendUnavailable, "the session is ending")
	}
	p := &process{record: owner, foreground: foreground, ended: make(chan struct{})}
	p.record.ID = "p-" + strings.ToLower(rand.Text())
	p.record.Status, p.record.ExitCode = tool.ProcessStarting, -1
	p.record.StartedAt = time.Now()
	output, err := os.OpenFile(r.outputFile(p.record.ID), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer output.Close() // the process has its own
	if err := r.save(p); err != nil {
		return nil, err
	}
	r.processes[p.record.ID] = p
	cmd := c.build(output)
	input, stdin, err := os.Pipe()
	if err == nil {
		cmd.Stdin, p.stdin = input, stdin
		err = errors.Join(cmd.Start(), input.Close())
	}
	if err != nil {
		if p.stdin != nil {
			err = errors.Join(err, p.closeStdin())
		}
		p.record.Status, p.record.LastError, p.record.StoppedAt = tool.ProcessFailed, err.Error(), time.Now()
		close(p.ended)
		return p, r.save(p)
	}
	p.record.Status, p.record.PID, p.record.PGID = tool.ProcessRunning, cmd.Process.Pid, cmd.Process.Pid
	p.identity = identity(p.record.PID)
	err = r.save(p)
	r.emit(p, tool.EventStarted, "")
	r.waiting.Go(func() { r.wait(p, cmd.Wait) })
	return p, err
}

// wait waits for the end of a process and tells of it.
func (r *registry) wait(p *process, wait func() error) {
	defer close(p.ended)
	err := wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	var exit interface{ ExitCode() int }
	p.record.Status, p.record.ExitCode, p.record.StoppedAt = tool.ProcessStopped, 0, time.Now()
	if errors.As(err, &exit) {
		p.record.ExitCode = exit.ExitCode() // −1 by a signal
	} else if err != nil {
		p.record.Status, p.record.LastError = tool.ProcessFailed, err.Error()
	}
	cause := tool.CauseNaturalExit
	if p.asked {
		cause = tool.CauseRequestedStop
	}
	p.record.TerminalCause = string(cause)
	if err := r.save(p); err != nil {
		p.record.LastError = err.Error()
	}
	if err := p.closeStdin(); err != nil { // nobody reads it
		p.record.LastError = err.Error()
	}
	r.emit(p, tool.EventStopped, cause)
}

// closeStdin ends the input. Both the end of the process and a call that gives it none
// do so: whichever comes second finds it closed.
func (p *process) closeStdin() error {
	if err := p.stdin.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// emit tells of a process, unless it is none yet. r.mu is held.
func (r *registry) emit(p *process, event tool.ProcessEventType, cause tool.EventCause) {
	if !p.foreground {
		r.session.EmitProcess(tool.ProcessEvent{Type: event, Cause: cause, Process: p.record})
	}
}

// adopt makes a command that a call has waited for a process like every other one.
func (r *registry) adopt(p *process) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.foreground = false
	r.emit(p, tool.EventStarted, "")
	return r.save(p)
}

func (r *registry) find(id string) (*process, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.processes[id]; p != nil {
		return p, nil
	}
	return nil, tool.Errorf(tool.ProcessNotFound, "there is no process %q in this session", id)
}

func (r *registry) snapshot(p *process) tool.Process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return p.record
}

func (r *registry) get(id string) (tool.Process, error) {
	p, err := r.find(id)
	if err != nil {
		return tool.Process{}, err
	}
	return r.snapshot(p), nil
}

func (r *registry) list() []tool.Process {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []tool.Process
	for _, p := range r.processes {
		if !p.foreground {
			all = append(all, p.record)
		}
	}
	slices.SortFunc(all, func(a, b tool.Process) int { return a.StartedAt.Compare(b.StartedAt) })
	return all
}

// write writes to the input of a process, until it has taken all or ctx ends.
func (r *registry) write(ctx context.Context, id string, input []byte) (tool.Process, error) {
	p, err := r.find(id)
	if err == nil && (p.stdin == nil || r.snapshot(p).Status.Terminal()) {
		err = tool.Errorf(tool.InvalidParams, "the process %s has ended", id)
	}
	if err == nil {
		stop := context.AfterFunc(ctx, func() { _ = p.stdin.SetWriteDeadline(time.Now()) })
		_, err = p.stdin.Write(input)
		if !stop() {
			_ = p.stdin.SetWriteDeadline(time.Time{})
		}
		if errors.Is(err, os.ErrClosed) || errors.Is(err, syscall.EPIPE) {
			err = tool.Errorf(tool.InvalidParams, "the process %s takes no input any more: %w", id, err)
		}
	}
	if err != nil {
		return tool.Process{}, err
	}
	return r.snapshot(p), nil
}

// stop ends a process with its group.
func (r *registry) stop(ctx context.Context, id string) (tool.Process, error) {
	p, err := r.find(id)
	if err != nil {
		return tool.Process{}, err
	}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		r.mu.Lock()
		// As long as it has not ended its pid is nobody else's.
		if !p.record.Status.Terminal() {
			p.asked = true
			_ = syscall.Kill(-p.record.PGID, signal)
		}
		r.mu.Unlock()
		grace := time.NewTimer(stopGrace)
		select {
		case <-p.ended:
			r.endGroup(ctx, p, signal, grace)
			return r.snapshot(p), nil
		case <-grace.C:
		case <-ctx.Done():
			grace.Stop()
			return tool.Process{}, ctx.Err()
		}
	}
	return tool.Process{}, fmt.Errorf("the process %s does not end", id)
}

// endGroup gives those that a process left in its group the same time to end. As
// long as one is left the group's number is nobody else's.
func (r *registry) endGroup(ctx context.Context, p *process, sent syscall.Signal, grace *time.Timer) {
	defer grace.Stop()
	tick := time.NewTicker(stopGrace / 100)
	defer tick.Stop()
	for sent == syscall.SIGTERM && groupRuns(p.record.PGID) {
		select {
		case <-tick.C:
			continue
		case <-grace.C:
		case <-ctx.Done():
		}
		_ = syscall.Kill(-p.record.PGID, syscall.SIGKILL)
		return
	}
}

// cleanup forgets the processes that have ended.
func (r *registry) cleanup() ([]tool.Process, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var cleaned []tool.Process
	for id, p := range r.processes {
		if !p.record.Status.Terminal() || p.foreground {
			continue
		}
		if err := r.forget(id); err != nil {
			return cleaned, err
		}
		cleaned = append(cleaned, p.record)
		r.emit(p, tool.EventCleanedUp, "")
	}
	return cleaned, nil
}

// drop forgets one process.
func (r *registry) drop(p *process) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.forget(p.record.ID)
}

// forget removes a record and its output. r.mu is held.
func (r *registry) forget(id string) error {
	delete(r.processes, id)
	return errors.Join(os.Remove(filepath.Join(r.dir, id+".json")), os.Remove(r.outputFile(id)))
}

// close stops every process and waits until all of them are reaped.
func (r *registry) close(ctx context.Context) error {
	r.mu.Lock()
	ids := slices.Collect(maps.Keys(r.processes))
	r.mu.Unlock()
	errs := make([]error, len(ids))
	var stopping sync.WaitGroup
	for i, id := range ids {
		stopping.Go(func() { _, errs[i] = r.stop(ctx, id) })
	}
	stopping.Wait()
	err := errors.Join(errs...)
	if err == nil {
		r.waiting.Wait()
	}
	return err
}
