package session

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// defaultProcessRead is what ReadProcess returns at most when it is not told.
const defaultProcessRead = 32 << 10

// withSession runs f as one request of the session.
func (m *Manager) withSession(ctx context.Context, id string, f func(ctx context.Context, s *live) error) error {
	s, err := m.use(id)
	if err != nil {
		return err
	}
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	return known(f(ctx, s))
}

// withPlace runs f, which uses the environment as u says, as one request where a tool
// of the group goes.
func (m *Manager) withPlace(ctx context.Context, id string, g tool.Group, name string, u use, f func(ctx context.Context, p *place, env backends.Environment) error) error {
	return m.withSession(ctx, id, func(ctx context.Context, s *live) error {
		p, err := s.placeFor(g, name)
		if err != nil {
			return err
		}
		err = p.use(ctx, u, func(env backends.Environment, _ time.Duration) error { return f(ctx, p, env) })
		return s.explained(p.saved.Profile, known(err))
	})
}

// withProcess runs f, which uses the environment as u says, on one process of the
// session, wherever it runs.
func (m *Manager) withProcess(ctx context.Context, id, process string, u use, f func(ctx context.Context, at *place, p backends.Processes, theirs string) error) error {
	return m.withSession(ctx, id, func(ctx context.Context, s *live) error {
		home, err := s.placeFor(tool.GroupProcess, processStart)
		if err != nil {
			return err
		}
		holder, theirs := home, ""
		if s.divided() {
			holder, theirs, err = s.holderOf(ctx, home, process, func(ctx context.Context, p *place, env backends.Environment) (string, error) {
				return p.findProcess(ctx, env, process)
			})
			if err == nil && theirs == "" {
				err = s.noProcess(process)
			}
			if err != nil {
				return err
			}
		}
		if theirs == "" {
			err = holder.use(ctx, onlyReads(), func(env backends.Environment, _ time.Duration) (err error) {
				theirs, err = holder.findProcess(ctx, env, process)
				return err
			})
		}
		if err == nil {
			err = holder.use(ctx, u, func(env backends.Environment, _ time.Duration) error { return f(ctx, holder, env.Processes(), theirs) })
		}
		return at(holder.saved.Profile, known(err))
	})
}

// findProcess translates the editor's id of a process.
func (p *place) findProcess(ctx context.Context, env backends.Environment, id string) (string, error) {
	if theirs, ok := p.processes.environmentID(id); ok {
		return theirs, nil
	}
	list, err := env.Processes().List(ctx)
	if err != nil {
		return "", err
	}
	for _, r := range list {
		if p.processes.serviceID(p.identity(), r.ID) == id {
			return r.ID, nil
		}
	}
	return "", p.s.noProcess(id)
}

func (s *live) noProcess(id string) error {
	return tool.Errorf(tool.ProcessNotFound, "the session %q has no process %q", s.id, id).
		WithHint("process/list names the processes that there are.")
}

// one runs f on a process and returns it as f left it.
func (m *Manager) one(ctx context.Context, id, process string, u use, f func(ctx context.Context, p backends.Processes, theirs string) (tool.Process, error)) (v Process, err error) {
	err = m.withProcess(ctx, id, process, u, func(ctx context.Context, at *place, p backends.Processes, theirs string) error {
		record, err := f(ctx, p, theirs)
		if err == nil {
			v = at.view(record)
		}
		return err
	})
	return v, err
}

// ListProcesses lists the session's processes, oldest first.
func (m *Manager) ListProcesses(ctx context.Context, id string) ([]Process, error) {
	var all []Process
	err := m.withSession(ctx, id, func(ctx context.Context, s *live) (err error) {
		if all, err = s.listProcesses(ctx); err != nil {
			return err
		}
		slices.SortStableFunc(all, func(a, b Process) int { return a.StartedAt.Compare(b.StartedAt) })
		return nil
	})
	return all, err
}

// GetProcess returns one process.
func (m *Manager) GetProcess(ctx context.Context, id, process string) (Process, error) {
	return m.one(ctx, id, process, onlyReads(), func(ctx context.Context, p backends.Processes, theirs string) (tool.Process, error) {
		return p.Get(ctx, theirs)
	})
}

// ReadProcess reads output.
func (m *Manager) ReadProcess(ctx context.Context, id, process string, r ReadProcess) (out ProcessOutput, err error) {
	o, err := r.options()
	if err != nil {
		return out, err
	}
	until := time.Now().Add(o.Wait)
	err = m.withProcess(ctx, id, process, onlyReads(), func(ctx context.Context, at *place, p backends.Processes, theirs string) error {
		read, err := p.Read(ctx, theirs, o)
		o.Wait = max(time.Until(until), 0) // of another try
		if err != nil {
			return err
		}
		out = ProcessOutput{
			Data: read.Output, StartOffset: read.StartOffset, EndOffset: read.EndOffset, TotalBytes: read.TotalBytes,
			Truncated: read.Truncated, TimedOut: read.TimedOut, Process: at.view(read.Process),
			EOF: read.Process.OutputClosed && read.EndOffset >= read.TotalBytes,
		}
		return nil
	})
	return out, err
}

func (r ReadProcess) options() (tool.ReadOptions, error) {
	switch {
	case r.Offset != nil && *r.Offset < 0:
		return tool.ReadOptions{}, invalid("offset", "the offset must not be negative")
	case r.TailBytes < 0:
		return tool.ReadOptions{}, invalid("tailBytes", "tailBytes must not be negative")
	case r.Offset != nil && r.TailBytes > 0:
		return tool.ReadOptions{}, invalid("tailBytes", "tailBytes clashes with offset: write one of them")
	case r.MaxBytes < 0:
		return tool.ReadOptions{}, invalid("maxBytes", "maxBytes must not be negative")
	case r.Wait < 0:
		return tool.ReadOptions{}, invalid("waitMs", "waitMs must not be negative")
	}
	size := r.MaxBytes
	if size == 0 {
		size = defaultProcessRead
	}
	if r.Offset == nil && r.TailBytes > 0 {
		size = r.TailBytes
		if r.MaxBytes > 0 {
			size = min(size, r.MaxBytes)
		}
	}
	return tool.ReadOptions{OffsetBytes: r.Offset, MaxBytes: int(min(size, MaxProcessRead)), Wait: min(r.Wait, MaxWait), Buffer: r.Buffer}, nil
}

// WriteProcess writes to the process's standard input or terminal.
func (m *Manager) WriteProcess(ctx context.Context, id, process string, data []byte) (Process, error) {
	return m.one(ctx, id, process, use{}, func(ctx context.Context, p backends.Processes, theirs string) (tool.Process, error) {
		return p.Write(ctx, theirs, data)
	})
}

// CloseStdin closes the process's standard input.
func (m *Manager) CloseStdin(ctx context.Context, id, process string) (Process, error) {
	return m.one(ctx, id, process, use{}, func(ctx context.Context, p backends.Processes, theirs string) (tool.Process, error) {
		return p.CloseStdin(ctx, theirs)
	})
}

// ResizeProcess sets the size of the process's terminal.
func (m *Manager) ResizeProcess(ctx context.Context, id, process string, size tool.TTY) (Process, error) {
	if size.Cols == 0 || size.Rows == 0 {
		return Process{}, invalid("cols", "a terminal has at least one column and one row")
	}
	return m.one(ctx, id, process, use{}, func(ctx context.Context, p backends.Processes, theirs string) (tool.Process, error) {
		return p.Resize(ctx, theirs, size)
	})
}

// SignalProcess sends a signal by name, such as "SIGINT" or "int", to the
// process group, or does what its terminal does for a key, such as "^C".
func (m *Manager) SignalProcess(ctx context.Context, id, process, signal string) (Process, error) {
	name := strings.ToUpper(signal)
	if !strings.HasPrefix(name, "SIG") && !strings.HasPrefix(name, "^") {
		name = "SIG" + name
	}
	return m.one(ctx, id, process, use{}, func(ctx context.Context, p backends.Processes, theirs string) (tool.Process, error) {
		return p.Signal(ctx, theirs, name)
	})
}

// StopProcess ends the process group: SIGTERM, after 2 s SIGKILL.
func (m *Manager) StopProcess(ctx context.Context, id, process string) (Process, error) {
	return m.one(ctx, id, process, use{}, func(ctx context.Context, p backends.Processes, theirs string) (tool.Process, error) {
		return p.Stop(ctx, theirs)
	})
}

// WaitProcess waits until the process ended, at most timeout (0: [MaxWait]).
// TimedOut says that it still runs.
func (m *Manager) WaitProcess(ctx context.Context, id, process string, timeout time.Duration) (v Process, timedOut bool, err error) {
	if timeout <= 0 || timeout > MaxWait {
		timeout = MaxWait
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	err = m.withProcess(ctx, id, process, onlyReads(), func(ctx context.Context, at *place, p backends.Processes, theirs string) error {
		for {
			// Taken before the look, so that no event falls between the two.
			changed := at.processes.next(theirs)
			record, err := p.Get(ctx, theirs)
			if err != nil {
				return err
			}
			v = at.view(record)
			if v.Status.Terminal() {
				return nil
			}
			select {
			case <-changed:
			case <-timer.C:
				timedOut = true
				return nil
			case <-ctx.Done():
				return ended(ctx, "waiting for the process %q", process)
			}
		}
	})
	return v, timedOut, err
}
