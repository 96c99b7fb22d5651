package session

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"
	"sync"

	"github.com/caisson-dev/caisson/backends/tool"
)

// maxProcesses bounds what is remembered of processes that have ended: names
// for foreign ids, and which events were sent. What is dropped is learned again
// from the environment.
const maxProcesses = 4096

// processes is what a place knows about its processes.
type processes struct {
	mu sync.Mutex
	// foreign maps the service's ids to those of environments whose own are not
	// unique.
	foreign map[string]string
	// seen are processes of the place, by the environment's ids, where a session has
	// several places.
	seen map[string]bool
	// told is how far the events of a process, by the environment's id, have come.
	told map[string]progress
	// watchers are closed at the next event of a process.
	watchers map[string]chan struct{}
}

// progress is which of a process's last events were sent.
type progress int

const (
	toldEnd progress = iota + 1
	toldClosed
)

func (p *processes) init() {
	p.foreign = map[string]string{}
	p.seen = map[string]bool{}
	p.told = map[string]progress{}
	p.watchers = map[string]chan struct{}{}
}

// idLength is the number of base32 characters in a process id of ours.
const idLength = 20

var base32Lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// ours reports whether an id has the form that our workers make, which is
// unique everywhere.
func ours(id string) bool {
	random, ok := strings.CutPrefix(id, "p-")
	return ok && len(random) == idLength && strings.Trim(random, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// foreignPrefix begins the ids that we give to processes of environments whose
// own are not unique; it is never that of our own form.
const foreignPrefix = "x-"

// serviceID is the id by which the editor knows a process.
func (p *processes) serviceID(environment, id string) string {
	if ours(id) {
		return id
	}
	sum := sha256.Sum256([]byte(environment + "\x00" + id))
	name := foreignPrefix + base32Lower.EncodeToString(sum[:])[:idLength]
	p.mu.Lock()
	defer p.mu.Unlock()
	bound(p.foreign)
	p.foreign[name] = id
	return name
}

// environmentID is the id by which the environment knows a process; false when
// it has to be looked for.
func (p *processes) environmentID(id string) (string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if theirs, ok := p.foreign[id]; ok {
		return theirs, true
	}
	return id, ours(id)
}

// see notes that a process is here, and knows reports whether that was noted.
func (p *processes) see(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.seen[id] {
		bound(p.seen)
		p.seen[id] = true
	}
}

func (p *processes) knows(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen[id]
}

// bound drops one entry of a map that is full.
func bound[K comparable, V any](m map[K]V) {
	if len(m) < maxProcesses {
		return
	}
	for k := range m {
		delete(m, k)
		return
	}
}

// advance notes that the events of a process have come to the given point, and
// reports whether they had not been there.
func (p *processes) advance(id string, to progress) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told[id] >= to {
		return false
	}
	if _, there := p.told[id]; !there {
		bound(p.told)
	}
	p.told[id] = to
	return true
}

// forget drops what was told of a process that the environment has forgotten: nothing
// more comes of it. What is kept is then bounded by what the environment keeps, and an
// end that was told is not dropped while it could be told again.
func (p *processes) forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.told, id)
}

// next returns a channel that is closed at the process's next event.
func (p *processes) next(id string) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.watchers[id]
	if c == nil {
		c = make(chan struct{})
		p.watchers[id] = c
	}
	return c
}

func (p *processes) wake(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.watchers[id]; c != nil {
		close(c)
		delete(p.watchers, id)
	}
}

func (p *processes) wakeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, c := range p.watchers {
		close(c)
		delete(p.watchers, id)
	}
}

// processEvent tells the sink about an event in the editor's words: an end and
// the end of the output exactly once each, in this order.
func (p *place) processEvent(e tool.ProcessEvent) {
	r := e.Process
	emit := func(t ProcessEventType) {
		p.s.mu.Lock()
		defer p.s.mu.Unlock()
		p.s.m.sink.Process(ProcessEvent{Type: t, Cause: e.Cause, Process: p.view(r)})
	}
	if r.Status.Terminal() {
		if p.processes.advance(r.ID, toldEnd) {
			if lost(r) {
				emit(ProcessLostEvent)
			} else {
				emit(ProcessExitedEvent)
			}
		}
		if (r.OutputClosed || lost(r)) && p.processes.advance(r.ID, toldClosed) && !lost(r) {
			emit(ProcessClosedEvent)
		}
	} else {
		switch e.Type {
		case tool.EventStarted:
			emit(ProcessStartedEvent)
		case tool.EventUpdated:
			emit(ProcessUpdatedEvent)
		}
	}
	if e.Type == tool.EventCleanedUp {
		p.processes.forget(r.ID)
	}
	p.processes.wake(r.ID)
}

func lost(p tool.Process) bool { return p.TerminalCause == tool.CauseLost }

// view is a process in the editor's words.
func (p *place) view(r tool.Process) Process {
	if p.s.divided() {
		p.processes.see(r.ID)
	}
	v := Process{
		ID: p.processes.serviceID(p.identity(), r.ID), SessionID: p.s.id, OperationID: r.OperationID,
		Command: r.Command, Argv: r.Argv, CWD: r.CWD, Status: status(r), PID: r.PID,
		Signal: r.Signal, Reason: r.LastError, TTY: r.TTY, Label: r.Label,
		Owner:     Owner{Kind: r.Owner().Kind, ID: r.OwnerID},
		StartedAt: r.StartedAt, EndedAt: r.StoppedAt, TotalBytes: r.TotalBytes, OutputClosed: r.OutputClosed,
		Environment: p.ref(),
	}
	if v.Status == ProcessExited && r.Signal == "" && r.ExitCode >= 0 {
		v.ExitCode = &r.ExitCode
	}
	switch cause := tool.EventCause(r.TerminalCause); cause {
	case tool.CauseNaturalExit, tool.CauseRequestedStop:
		v.Cause = cause
	}
	return v
}

func status(p tool.Process) ProcessStatus {
	switch p.Status {
	case tool.ProcessStopped:
		return ProcessExited
	case tool.ProcessFailed:
		switch {
		case lost(p):
			return ProcessLost
		case p.ExitCode >= 0 || p.Signal != "":
			return ProcessExited
		}
		return ProcessFailed
	}
	return ProcessStatus(p.Status)
}
