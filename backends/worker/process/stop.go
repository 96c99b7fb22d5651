package process

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/caisson-dev/caisson/backends/tool"
)

// stopping is one stop that is under way.
type stopping struct {
	done chan struct{}
	err  error // to be read after done
}

// Stop sends SIGTERM to the process's group and session, after [TermGrace]
// SIGKILL, and fails when after [KillGrace] something is still there. It goes
// on when ctx ends. Stopping what has ended is no error.
func (m *Manager) Stop(ctx context.Context, id string) (tool.Process, error) {
	p, err := m.find(id)
	if err != nil {
		return tool.Process{}, err
	}
	s := p.beginStop()
	if s == nil {
		return p.snapshot(), nil
	}
	select {
	case <-s.done:
		return p.snapshot(), s.err
	case <-ctx.Done():
		return p.snapshot(), ended(ctx, "stopping "+id)
	}
}

// beginStop is the stop of p that is under way, begun if need be; nil when p
// has ended.
func (p *proc) beginStop() *stopping {
	p.change.Lock()
	defer p.change.Unlock()
	p.mu.Lock()
	s, over := p.stopping, p.rec.Status.Terminal()
	begin := s == nil && !over
	if begin {
		s = &stopping{done: make(chan struct{})}
		p.stopping = s
	}
	p.mu.Unlock()
	if !begin {
		return s
	}
	_ = p.updateHeld(tool.EventUpdated, tool.CauseRequestedStop, func(r *record) { r.Status = tool.ProcessStopping })
	p.m.work.Go(func() {
		defer close(s.done)
		s.err = p.end(quarry{jobs: []*proc{p}, match: p.inGroup()}, p.m.gently())
	})
	return s
}

// destroy kills the process and everything that descends from it. What has
// cleared its environment and left group and session is known by its working
// directory, where the command has a place.
func (p *proc) destroy() error {
	in := p.inGroup()
	return p.end(quarry{jobs: []*proc{p}, family: true, match: func(i procInfo) bool {
		return in(i) || marked(i.pid, p.m.instance+"/"+p.id) || p.place != nil && worksIn(i.pid, p.place.Dir)
	}}, hard())
}

// end hunts what there is of p, which is not reaped before that is over: then its
// number says who belongs to it, whatever these have done to their environment.
func (p *proc) end(q quarry, blows []blow) error {
	held := p.alone || p.hold()
	left, err := q.hunt(context.Background(), blows, p.ending)
	if held {
		p.letGo()
	}
	return p.finish(left, err)
}

// finish is what a hunt for p has come to. When nothing is left, p's own end is
// on its way.
func (p *proc) finish(left []procInfo, err error) error {
	if err != nil {
		return tool.Errorf(tool.Internal, "stop process %s: %w", p.id, err)
	}
	if len(left) > 0 {
		return tool.Errorf(tool.Internal, "process %s cannot be stopped: %s still there after SIGKILL", p.id, pids(left)).
			WithHint("it waits inside the kernel, or runs as another user; look at it in the environment")
	}
	<-p.exited
	return nil
}

// inGroup matches the members of p's group and session. Once p is reaped its
// number may be a stranger's, and where marks are known only they count.
func (p *proc) inGroup() func(procInfo) bool {
	pid := p.pid()
	return func(i procInfo) bool {
		if pid == 0 || i.pid != pid && i.group != pid && i.session != pid {
			return false
		}
		p.mu.Lock()
		reaped := p.reaped
		p.mu.Unlock()
		if !reaped {
			return true
		}
		return i.pid != pid && (!marksKnown || marked(i.pid, p.m.instance+"/"+p.id))
	}
}

func (p *proc) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rec.PID
}

// signal signals p's group as long as the number is p's.
func (p *proc) signal(s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.struck = p.struck || s == syscall.SIGKILL && !isClosed(p.ending)
	if p.reaped {
		return tool.Errorf(tool.InvalidParams, "process %s has ended", p.id)
	}
	return signalJob(p.term, p.rec.PID, s)
}

// Signal sends a signal by name ("SIGINT") to the process group; what a terminal has keys
// for goes to the group in its foreground. The name of a key ("^C") does what the terminal
// does for it, which is nothing and an error of kind unsupported where that is no signal.
func (m *Manager) Signal(_ context.Context, id, signal string) (tool.Process, error) {
	p, err := m.find(id)
	if err != nil {
		return tool.Process{}, err
	}
	if key, ok := keyOf(signal); ok {
		return p.told(p.press(signal, key), signal)
	}
	s, ok := signalNumber(signal)
	if !ok {
		return p.snapshot(), tool.Errorf(tool.InvalidParams, "there is no signal %q", signal).WithPath("signal").
			WithHint("use a name such as SIGINT, SIGTERM, SIGHUP or SIGKILL")
	}
	return p.told(p.interrupt(s), signal)
}

// told is the answer to whoever asked for the signal.
func (p *proc) told(err error, signal string) (tool.Process, error) {
	var known *tool.Error
	if err != nil && !errors.As(err, &known) {
		err = tool.Errorf(tool.Internal, "send %s to process %s: %w", signal, p.id, err)
	}
	return p.snapshot(), err
}

// Resize sets the size of the process's terminal.
func (m *Manager) Resize(_ context.Context, id string, size tool.TTY) (tool.Process, error) {
	p, err := m.find(id)
	if err != nil {
		return tool.Process{}, err
	}
	if size.Cols == 0 || size.Rows == 0 {
		return p.snapshot(), tool.Errorf(tool.InvalidParams, "a terminal of %d columns and %d rows is none", size.Cols, size.Rows).WithPath("cols")
	}
	if p.term == nil || isClosed(p.exited) {
		return p.snapshot(), tool.Errorf(tool.InvalidParams, "process %s has no terminal", id)
	}
	if err := resizeTerminal(p.term, size); err != nil {
		return p.snapshot(), tool.Errorf(tool.Internal, "resize the terminal of process %s: %w", id, err)
	}
	// The terminal has its size, whatever the disk says.
	_ = p.update(tool.EventUpdated, "", func(r *record) { r.TTY = &size })
	return p.snapshot(), nil
}

// pids names processes for an error.
func pids(all []procInfo) string {
	if len(all) == 0 {
		return "none"
	}
	words := make([]string, 0, len(all))
	for _, p := range all {
		words = append(words, fmt.Sprintf("pid %d", p.pid))
	}
	return strings.Join(words, ", ")
}
