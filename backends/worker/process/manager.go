package process

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// Manager keeps the processes of one session. Its methods may be called
// concurrently; it has the methods of backends.Processes.
type Manager struct {
	o        Options
	registry *registry
	instance string // names this Manager in the marks of its commands
	shells   []string

	work    sync.WaitGroup // every goroutine
	starts  sync.RWMutex   // read-held from a command's admission until it runs
	closing chan struct{}  // closed when Close begins
	closed  chan struct{}  // closed when it is over
	failed  error          // what Close found; to be read after closed

	events sync.Mutex // held while OnEvent is told

	modes modes
	born  *births

	buffers sync.Pool // of *[copySize]byte

	// These are as they are but in tests: how the time of a foreground command is
	// measured, TermGrace, and how many processes the kernel has ended for want of memory.
	late      func(time.Duration) (<-chan time.Time, func())
	termGrace time.Duration
	oomKills  func() (count uint64, known bool)

	mu         sync.Mutex
	listed     map[string]*proc // background processes by id
	enlisted   int              // how many ever were
	operations map[string]*operation
	live       map[*proc]struct{} // what was admitted and has not ended
	open       map[*proc]struct{} // whose output has not ended
	admitted   uint64             // how many ever were
}

// NewManager opens the registry. Records of a worker that died are settled
// first, as [Settle] does. It fails with [tool.SessionBusy] while another
// Manager, in whatever program, holds the session. Descriptors that the program
// itself inherited, beside 0, 1 and 2, are closed in its children from here on.
func NewManager(o Options) (*Manager, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	now, cancel := context.WithCancel(context.Background())
	cancel() // one try: who holds the lock holds it for long
	r, err := openRegistry(now, o.StateDir, o.Session)
	if err != nil {
		return nil, err
	}
	m, err := newManager(o, r)
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	return m, nil
}

func newManager(o Options, r *registry) (*Manager, error) {
	if err := SealDescriptors(); err != nil {
		return nil, tool.Errorf(tool.Internal, "keep descriptors from commands: %w", err)
	}
	records, _, err := r.settle()
	if err != nil {
		return nil, err
	}
	m := &Manager{
		o: o, registry: r,
		instance:   strings.ToLower(rand.Text()),
		shells:     []string{"/bin/bash", "/bin/sh"},
		born:       newBirths(),
		closing:    make(chan struct{}),
		closed:     make(chan struct{}),
		buffers:    sync.Pool{New: func() any { return new([copySize]byte) }},
		late:       after,
		termGrace:  TermGrace,
		oomKills:   newOOMKills(),
		listed:     make(map[string]*proc),
		operations: make(map[string]*operation),
		live:       make(map[*proc]struct{}),
		open:       make(map[*proc]struct{}),
	}
	if o.Shell != "" {
		m.shells = []string{o.Shell}
	}
	for _, rec := range records {
		p, err := m.ended(rec)
		if err != nil {
			return nil, tool.Errorf(tool.Internal, "look at the output of %s: %w", rec.ID, err)
		}
		m.listed[rec.ID] = p
		if rec.OperationID != "" {
			m.operations[rec.OperationID] = &operation{id: rec.ID, digest: rec.Request, started: closedChannel()}
		}
	}
	if err := os.WriteFile(filepath.Join(r.dir, instanceFile), []byte(m.instance), 0o600); err != nil {
		return nil, r.unwritten(err)
	}
	if o.AdoptOrphans {
		if err := beReaper(); err != nil {
			return nil, tool.Errorf(tool.Internal, "become the parent of orphans: %w", err)
		}
		m.work.Go(m.reapOrphans)
	}
	return m, nil
}

func closedChannel() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// newID makes a process id, unique everywhere: 100 random bits.
func newID() string { return "p-" + strings.ToLower(rand.Text()[:20]) }

// List returns all records, oldest first.
func (m *Manager) List(context.Context) ([]tool.Process, error) {
	var all []tool.Process
	for _, p := range m.all() {
		all = append(all, p.snapshot())
	}
	return all, nil
}

// all are the background processes, oldest first.
func (m *Manager) all() []*proc {
	m.mu.Lock()
	all := make([]*proc, 0, len(m.listed))
	for _, p := range m.listed {
		all = append(all, p)
	}
	m.mu.Unlock()
	slices.SortFunc(all, func(a, b *proc) int {
		if c := a.began.Compare(b.began); c != 0 {
			return c
		}
		return strings.Compare(a.id, b.id)
	})
	return all
}

// find is the background process of the id.
func (m *Manager) find(id string) (*proc, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.listed[id]; p != nil {
		return p, nil
	}
	return nil, tool.Errorf(tool.ProcessNotFound, "this session has no process %q", id).
		WithHint("list the session's processes for the ids it has")
}

// Get returns one record. An id of another session is unknown here: Get and
// every other method fail with [tool.ProcessNotFound].
func (m *Manager) Get(_ context.Context, id string) (tool.Process, error) {
	p, err := m.find(id)
	if err != nil {
		return tool.Process{}, err
	}
	return p.snapshot(), nil
}

// Wait waits until the process has ended and returns its record.
func (m *Manager) Wait(ctx context.Context, id string) (tool.Process, error) {
	p, err := m.find(id)
	if err != nil {
		return tool.Process{}, err
	}
	select {
	case <-p.exited:
		return p.snapshot(), nil
	case <-ctx.Done():
		return p.snapshot(), ended(ctx, "waiting for the end of "+id)
	}
}

// admit counts p as live, if there is room and the Manager is open. The caller
// holds m.starts.
func (m *Manager) admit(p *proc) error {
	p.oom.begin(m)
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.closing:
		return tool.Errorf(tool.EnvironmentLost, "the environment is shutting down: nothing new is started")
	default:
	}
	if len(m.live) >= MaxLive {
		e := tool.Errorf(tool.Overloaded, "%d commands run in this session, which is the most", MaxLive).
			WithHint("stop some of the session's processes, or wait for their end")
		e.Retryable = true
		return e
	}
	m.live[p] = struct{}{}
	m.admitted++
	p.oom.order, p.oom.company = m.admitted, len(m.live) > 1 || len(m.open) > 0
	return nil
}

func (m *Manager) dismiss(p *proc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.live, p)
}

// emit tells of a change. The caller holds p.change, so that a process's
// events come in the order of its changes.
func (m *Manager) emit(t tool.ProcessEventType, cause tool.EventCause, p tool.Process) {
	m.events.Lock()
	defer m.events.Unlock()
	m.o.OnEvent(tool.ProcessEvent{Type: t, Cause: cause, Process: p})
}

// ended is the error of a call whose context ended while it was doing what.
func ended(ctx context.Context, what string) error {
	kind, how := tool.EndKind(ctx), "was cancelled"
	if kind == tool.Timeout {
		how = "took too long"
	}
	return tool.Errorf(kind, "%s %s: %w", what, how, context.Cause(ctx))
}

// after is a timer's channel, never ready for 0, and what frees it.
func after(d time.Duration) (<-chan time.Time, func()) {
	if d <= 0 {
		return nil, func() {}
	}
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}
