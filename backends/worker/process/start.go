package process

import (
	"context"
	"errors"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/workspace"
)

// defaultTTY is the size of a terminal when none is given.
var defaultTTY = tool.TTY{Cols: 80, Rows: 24}

// operation is one start that may be asked for again.
type operation struct {
	id      string
	digest  string
	started chan struct{} // closed when the start is over
	err     error         // how it failed; to be read after started
}

// Start starts a background process and returns its record, which was on disk
// before the process existed. The same OperationID with the same request gives
// the same process as long as its record is kept; with another request it
// fails with [tool.InvalidParams]. A start that fails leaves no record. The
// process outlives ctx.
func (m *Manager) Start(ctx context.Context, r tool.StartRequest) (tool.Process, error) {
	if ctx.Err() != nil {
		return tool.Process{}, ended(ctx, "the start")
	}
	if r.OperationID == "" {
		return m.start(newID(), "", r)
	}
	m.mu.Lock()
	op := m.operations[r.OperationID]
	if op != nil {
		m.mu.Unlock()
		return m.again(ctx, op, r)
	}
	op = &operation{id: newID(), started: make(chan struct{})}
	var err error
	if op.digest, err = digest(op.id, r); err != nil {
		m.mu.Unlock()
		return tool.Process{}, err
	}
	m.operations[r.OperationID] = op
	m.mu.Unlock()
	defer close(op.started)
	p, err := m.start(op.id, op.digest, r)
	if op.err = err; err != nil {
		m.mu.Lock()
		delete(m.operations, r.OperationID)
		m.mu.Unlock()
	}
	return p, err
}

// again answers a start that was asked for before.
func (m *Manager) again(ctx context.Context, op *operation, r tool.StartRequest) (tool.Process, error) {
	same, err := digest(op.id, r)
	if err != nil {
		return tool.Process{}, err
	}
	if same != op.digest {
		return tool.Process{}, tool.Errorf(tool.InvalidParams, "the operation %q started another process", r.OperationID).
			WithPath("operation_id").WithHint("use a new operation id for a new process")
	}
	select {
	case <-op.started:
	case <-ctx.Done():
		return tool.Process{}, ended(ctx, "waiting for the start")
	}
	if op.err != nil {
		return tool.Process{}, op.err
	}
	return m.Get(ctx, op.id)
}

// start starts the background process of the id.
func (m *Manager) start(id, digest string, r tool.StartRequest) (_ tool.Process, err error) {
	actor := tool.Actor{ID: r.Actor, Kind: r.ActorKind}
	w, err := m.license(r.PermissionMode, actor)
	if err != nil {
		return tool.Process{}, err
	}
	if r.TTY != nil {
		size := *r.TTY
		if size.Cols == 0 || size.Rows == 0 {
			size = defaultTTY
		}
		r.TTY = &size
	}
	if !r.Lifecycle.Valid() {
		return tool.Process{}, tool.Errorf(tool.InvalidParams, "there is no lifecycle %q", r.Lifecycle).WithPath("lifecycle").
			WithHint("the lifecycles are session, which is the default, and managed")
	}
	env, err := pairs(r.Environment)
	if err != nil {
		return tool.Process{}, err
	}
	s, err := m.prepare(id, request{line: r.Command, argv: r.Argv, dir: r.CWD, env: env, license: w, tty: r.TTY})
	if err != nil {
		return tool.Process{}, err
	}
	rec := m.newRecord(id, s, w.mode, actor)
	rec.Request, rec.OperationID = digest, r.OperationID
	rec.Command, rec.Argv, rec.TTY, rec.Label = r.Command, r.Argv, r.TTY, r.Label
	if r.Lifecycle != "" {
		rec.Lifecycle = r.Lifecycle
	}
	p := m.newProc(rec)
	p.kept = true
	p.out = &output{base: p.base()}
	s.input, s.streams = true, []*streamTo{{merged: true}}
	m.starts.RLock()
	defer m.starts.RUnlock()
	if err := m.admit(p); err != nil {
		return tool.Process{}, err
	}
	defer func() {
		if err != nil {
			m.dismiss(p)
			p.release()
		}
	}()
	launcher, release, err := m.launcher(w)
	if err != nil {
		return tool.Process{}, err
	}
	s.launcher, p.release = launcher, release
	p.limited = m.policy(w).Confines()
	if err = m.registry.journal.put(rec); errors.Is(err, errLongRecord) {
		return tool.Process{}, tool.Errorf(tool.InvalidParams, "the command with its label is too long to be kept: %w", err).
			WithPath("command").WithHint("write the arguments into a file")
	} else if err != nil {
		return tool.Process{}, m.registry.unwritten(err)
	}
	pidfd, err := p.spawn(s)
	if err != nil {
		return tool.Process{}, errors.Join(err, m.registry.journal.drop(id))
	}
	// A change that cannot be written leaves the record starting, which is true enough for
	// whoever finds it.
	_ = p.update(tool.EventStarted, "", func(r *record) {
		p.identify(r)
		r.Status = tool.ProcessRunning
	})
	started := p.snapshot()
	m.enlist(p)
	m.work.Go(func() { p.follow(pidfd) })
	return started, nil
}

// newRecord is the record of a process that is about to start.
func (m *Manager) newRecord(id string, s spec, mode tool.Mode, actor tool.Actor) record {
	now := time.Now().UTC()
	rec := record{Process: tool.Process{
		ID: id, RootThreadID: m.o.Session, OwnerID: actor.ID, OwnerKind: tool.OwnerSubagent,
		Lifecycle: tool.LifecycleSession, Status: tool.ProcessStarting, CWD: workspace.Format(s.dir),
		StartedAt: now, UpdatedAt: now, ExitCode: -1, SandboxMode: mode,
	}}
	switch {
	case actor.Kind == tool.ActorSideChat:
		rec.ActorKind = tool.ActorSideChat
	case actor.ID == "" || actor.ID == m.o.Session:
		rec.OwnerID, rec.OwnerKind = m.o.Session, tool.OwnerMainAgent
	}
	return rec
}

// enlist makes p one of the background processes, and sees to their limits at
// every 16th: to look at all of them costs more than a start.
func (m *Manager) enlist(p *proc) {
	m.mu.Lock()
	m.listed[p.id] = p
	m.enlisted++
	look := m.enlisted%16 == 0
	m.mu.Unlock()
	if look {
		m.limitKept()
	}
}
