package process

import (
	"context"
	"errors"

	"github.com/caisson-dev/caisson/backends/tool"
)

// over reports whether the process has ended and its output is complete.
func (p *proc) over() bool { return isClosed(p.exited) && isClosed(p.drained) }

// limitKept forgets the oldest ended processes beyond [MaxKept] of them or
// [MaxKeptOutput] of their output.
func (m *Manager) limitKept() {
	var count int
	var size int64
	all := m.all()
	for i := len(all) - 1; i >= 0; i-- {
		p := all[i]
		if !p.over() {
			continue
		}
		total, base, _ := p.out.state()
		count, size = count+1, size+total-base
		if count > MaxKept || size > MaxKeptOutput {
			if _, err := m.forget(p); err != nil {
				m.o.Log.Warn("an ended process was not cleaned up", "process", p.id, "error", err)
			}
		}
	}
}

// forget removes a process that is over from the registry. It reports false
// when somebody else did.
func (m *Manager) forget(p *proc) (bool, error) {
	p.change.Lock()
	defer p.change.Unlock()
	m.mu.Lock()
	_, there := m.listed[p.id]
	delete(m.listed, p.id)
	p.mu.Lock()
	operation := p.rec.OperationID
	p.kept = false
	p.mu.Unlock()
	if operation != "" {
		delete(m.operations, operation)
	}
	m.mu.Unlock()
	if !there {
		return false, nil
	}
	err := errors.Join(m.registry.journal.drop(p.id), p.out.remove())
	m.emit(tool.EventCleanedUp, "", p.snapshot())
	return true, err
}

// Cleanup forgets every process that has ended and whose output is complete,
// and returns the records that went. The error says what of them is still on
// disk.
func (m *Manager) Cleanup(context.Context) ([]tool.Process, error) {
	var gone []tool.Process
	var errs []error
	for _, p := range m.all() {
		if !p.over() {
			continue
		}
		went, err := m.forget(p)
		if err != nil {
			errs = append(errs, tool.Errorf(tool.Internal, "clean up process %s: %w", p.id, err))
		}
		if went {
			gone = append(gone, p.snapshot())
		}
	}
	return gone, errors.Join(errs...)
}

// CompletionPending reports whether the process has ended and nobody has
// called CompletionDelivered yet.
func (m *Manager) CompletionPending(_ context.Context, id string) (bool, error) {
	p, err := m.find(id)
	if err != nil {
		return false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rec.Status.Terminal() && !p.rec.Delivered, nil
}

// CompletionDelivered notes that somebody was told of the end.
func (m *Manager) CompletionDelivered(_ context.Context, id string) (tool.Process, error) {
	return m.note(id, func(r *record) { r.Delivered = true })
}

// SetCompletionMode stores the mode in the record. Nothing here acts on it.
func (m *Manager) SetCompletionMode(_ context.Context, id, mode string) (tool.Process, error) {
	return m.note(id, func(r *record) { r.CompletionMode = mode })
}

// note changes the record without an event.
func (m *Manager) note(id string, f func(*record)) (tool.Process, error) {
	p, err := m.find(id)
	if err != nil {
		return tool.Process{}, err
	}
	if err := p.update("", "", f); err != nil {
		return p.snapshot(), m.registry.unwritten(err)
	}
	return p.snapshot(), nil
}
