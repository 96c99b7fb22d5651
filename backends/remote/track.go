package remote

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// A tracker knows what subscribers have been told about each process, and so
// what they have missed after a loss of the connection. It is also what keeps
// their order: a process starts once, ends once, and its output closes once,
// however live events and a list of records overtake each other.
type tracker struct {
	hub *backends.Hub

	mu    sync.Mutex
	known map[string]*tracked
	added int // since those that have ended were forgotten
}

// tracked is one process.
type tracked struct {
	record tool.Process // as last told, its words cut
	ended  bool
	closed bool // the last output byte is in
}

func newTracker(h *backends.Hub) *tracker { return &tracker{hub: h, known: make(map[string]*tracked)} }

// live takes an event that came over a connection. It reports whether the
// process has ended while its output may still grow.
func (t *tracker) live(e tool.ProcessEvent) (settling bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := e.Process.ID
	if len(id) > maxTrackedWord {
		return false // nobody could ask for it
	}
	switch e.Type {
	case tool.EventCleanedUp:
		delete(t.known, id)
		t.publish(e)
		return false
	case tool.EventRecheckDue:
		t.publish(e)
		return false
	}
	p := t.known[id]
	switch {
	case p == nil:
		p = t.add(id)
	case e.Type == tool.EventStarted, p.closed, p.ended && !e.Process.OutputClosed:
		return false // told already
	}
	t.tell(p, e)
	return p.ended && !p.closed
}

// sync takes the records that a new connection has, and publishes what changed
// since the last one. quiet publishes nothing: the first records are news to
// nobody. It returns the ids of those that have ended and may still grow.
func (t *tracker) sync(records []tool.Process, quiet bool) (settling []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	listed := make(map[string]bool, len(records))
	for _, r := range records {
		if len(r.ID) > maxTrackedWord {
			continue
		}
		listed[r.ID] = true
		p := t.known[r.ID]
		if p == nil {
			p = t.add(r.ID)
			if quiet {
				p.set(r)
			} else {
				t.tell(p, tool.ProcessEvent{Type: tool.EventStarted, Process: started(r)})
			}
		}
		if !p.ended && r.Status.Terminal() {
			t.tell(p, ended(r))
		}
		if p.ended && !p.closed && r.OutputClosed {
			t.tell(p, tool.ProcessEvent{Type: tool.EventUpdated, Process: r})
		}
		if p.ended && !p.closed {
			settling = append(settling, r.ID)
		}
	}
	for _, id := range slices.Collect(maps.Keys(t.known)) {
		if !listed[id] {
			t.lose(id)
		}
	}
	return settling
}

// loseAll tells that every process is gone: the environment is.
func (t *tracker) loseAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range slices.Collect(maps.Keys(t.known)) {
		t.lose(id)
	}
}

// loseRunning tells that every process that runs is gone: the environment was stopped.
// They are known all the same, since it still has their records.
func (t *tracker) loseRunning() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.known {
		t.end(p)
	}
}

// lose tells that a process is gone, unless it had ended. t.mu is held.
func (t *tracker) lose(id string) {
	t.end(t.known[id])
	delete(t.known, id)
}

// end tells that a process has ended and nobody saw how, unless it had ended. t.mu is held.
func (t *tracker) end(p *tracked) {
	if p.ended {
		return
	}
	r := p.record
	r.Status, r.TerminalCause, r.OutputClosed = tool.ProcessFailed, tool.CauseLost, true
	r.ExitCode = -1
	r.StoppedAt = time.Now()
	r.UpdatedAt = r.StoppedAt
	t.tell(p, tool.ProcessEvent{Type: tool.EventFailed, Process: r})
}

// close tells that the output of a process has stopped growing, at total bytes.
func (t *tracker) close(id string, total int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.known[id]
	if p == nil || !p.ended || p.closed {
		return
	}
	r := p.record
	r.OutputClosed, r.TotalBytes = true, max(total, r.TotalBytes)
	t.tell(p, tool.ProcessEvent{Type: tool.EventUpdated, Process: r})
}

// running reports whether a process is known that has not ended.
func (t *tracker) running() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.known {
		if !p.ended {
			return true
		}
	}
	return false
}

// complete fills into a record what only the host knows.
func (t *tracker) complete(r *tool.Process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.known[r.ID]; p != nil && p.closed {
		r.OutputClosed = true
	}
}

// completeRead is complete of what was read. The end may have been told of since the
// far end looked: what it has read is then not all that there is.
func (t *tracker) completeRead(r *wire.ProcessRead) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.known[r.Process.ID]; p != nil && p.closed && r.TotalBytes >= p.record.TotalBytes {
		r.Process.OutputClosed = true
	}
}

// add begins to track a process, as far as there is room: a far end that has
// more at once than there can be is not helped. t.mu is held.
func (t *tracker) add(id string) *tracked {
	if t.added++; len(t.known) >= maxTracked && t.added >= sweepEvery {
		t.added = 0
		maps.DeleteFunc(t.known, func(_ string, p *tracked) bool { return p.closed })
	}
	p := new(tracked)
	if len(t.known) < maxProcesses {
		t.known[id] = p
	}
	return p
}

// tell publishes an event and notes what it told. t.mu is held.
func (t *tracker) tell(p *tracked, e tool.ProcessEvent) {
	p.set(e.Process)
	t.publish(e)
}

func (t *tracker) publish(e tool.ProcessEvent) { t.hub.Publish(backends.Event{Process: &e}) }

func (p *tracked) set(r tool.Process) {
	p.record = brief(r)
	p.ended = r.Status.Terminal()
	p.closed = p.ended && r.OutputClosed
}

// brief is r as it is kept: a far end may have ten thousand processes, and write
// 16 MiB about each.
func brief(r tool.Process) tool.Process {
	cut(&r.Command, maxTrackedCommand)
	cut(&r.CWD, maxTrackedCommand)
	cut(&r.LastError, maxTrackedCommand)
	left := maxTrackedCommand
	for i, a := range r.Argv {
		if left -= len(a) + maxTrackedWord/8; left < 0 {
			r.Argv = append(slices.Clone(r.Argv[:i]), "…")
			break
		}
	}
	for _, word := range []*string{&r.OperationID, &r.OwnerID, &r.RootThreadID, &r.TerminalCause, &r.CompletionMode, &r.Signal, &r.Label} {
		cut(word, maxTrackedWord)
	}
	cut(&r.OwnerKind, maxTrackedWord)
	cut(&r.Lifecycle, maxTrackedWord)
	cut(&r.Status, maxTrackedWord)
	cut(&r.SandboxMode, maxTrackedWord)
	cut(&r.ActorKind, maxTrackedWord)
	cut(&r.OOMKilled, maxTrackedWord)
	return r
}

// cut shortens a text that is longer than most bytes. What it was cut from is let
// go of.
func cut[S ~string](text *S, most int) {
	if len(*text) > most {
		*text = S(tool.Clip(string(*text), most))
	}
}

// started is the record of r as it was when it began.
func started(r tool.Process) tool.Process {
	if r.Status.Terminal() {
		r.Status, r.StoppedAt, r.ExitCode = tool.ProcessRunning, time.Time{}, -1
		r.OutputClosed, r.Signal, r.TerminalCause, r.LastError, r.OOMKilled = false, "", "", "", ""
	}
	return r
}

// ended is the event of a process that has ended.
func ended(r tool.Process) tool.ProcessEvent {
	e := tool.ProcessEvent{Type: tool.EventStopped, Process: r}
	if r.Status == tool.ProcessFailed {
		e.Type = tool.EventFailed
	}
	e.Cause = tool.EventCause(r.TerminalCause)
	switch e.Cause {
	case tool.CauseNaturalExit, tool.CauseRequestedStop:
	default:
		e.Cause = ""
	}
	return e
}
