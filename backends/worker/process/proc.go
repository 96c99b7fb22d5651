package process

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// proc is one command from its start on, in the foreground or the background,
// or one that ended under an earlier worker.
type proc struct {
	m       *Manager
	id      string
	began   time.Time
	out     *output  // merged; nil for a foreground command that cannot be adopted
	stdin   *input   // nil: none, or the end of the file from the start
	term    *os.File // the master of its terminal, or nil
	limited bool     // by its mode
	alone   bool     // held from its start to its destroy, which comes for certain
	place   *Place   // of its own, or nil
	// captures hold a foreground command's stdout and stderr.
	captures []*capture
	streams  []*streamTo // where its outputs go
	pipes    []int       // our ends of them; -1 is closed
	outputs  []*os.File  // the same as files, once collect has made them, for abandon
	release  func()      // gives back what only the running process needs
	oom      oomWatch

	change sync.Mutex // held through one change: record, disk, event

	mu     sync.Mutex
	rec    record
	kept   bool // is in the registry
	reaped bool // the pid may be somebody else's
	holds  int  // who needs the pid to stay this process's
	struck bool // SIGKILL was sent to it from here

	unheld sync.Cond // of mu: nobody does

	stopping *stopping     // under mu
	ending   chan struct{} // closed when it has ended, and is about to be reaped
	exited   chan struct{} // closed when the end is in the record
	drained  chan struct{} // closed when the last output byte is in
	complete sync.Once     // of drain
}

// newProc makes a process that is about to start.
func (m *Manager) newProc(rec record) *proc {
	p := &proc{
		m: m, id: rec.ID, began: rec.StartedAt, rec: rec, release: func() {},
		ending: make(chan struct{}), exited: make(chan struct{}), drained: make(chan struct{}),
	}
	p.unheld.L = &p.mu
	return p
}

// ended makes a process of a record that says so.
func (m *Manager) ended(rec record) (*proc, error) {
	p := m.newProc(rec)
	p.kept, p.reaped = true, true
	p.ending, p.exited, p.drained = closedChannel(), closedChannel(), closedChannel()
	var err error
	p.out, err = openOutput(p.base())
	return p, err
}

// hold keeps p from being reaped until letGo: as long as it is not, its number is
// nobody else's, and who is in the group or the session of that number came from p. It
// reports false when p is reaped already.
func (p *proc) hold() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		p.holds++
	}
	return !p.reaped
}

func (p *proc) letGo() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.holds--; p.holds == 0 {
		p.unheld.Signal()
	}
}

// base is where the names of p's files begin.
func (p *proc) base() string { return filepath.Join(p.m.registry.dir, p.id) }

// snapshot is the record as it is now.
func (p *proc) snapshot() tool.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.snapshotLocked().Process
}

func (p *proc) snapshotLocked() record {
	rec := p.rec
	if p.out != nil {
		rec.TotalBytes, rec.LogBaseOffset, _ = p.out.state()
		if at, err := p.out.failure(); err != nil && rec.LastError == "" {
			rec.LastError = fmt.Sprintf("output after byte %d could not be kept: %v", at, err)
		}
	}
	return rec
}

// update makes one change: in the record, on disk, and as an event. While the
// process is not in the registry only the record changes. A record that cannot
// be written is logged and returned; what everybody sees is the change.
func (p *proc) update(t tool.ProcessEventType, cause tool.EventCause, f func(*record)) error {
	p.change.Lock()
	defer p.change.Unlock()
	return p.updateHeld(t, cause, f)
}

// updateHeld is update for who holds p.change. An empty type makes no event.
func (p *proc) updateHeld(t tool.ProcessEventType, cause tool.EventCause, f func(*record)) error {
	p.mu.Lock()
	f(&p.rec)
	p.rec.UpdatedAt = time.Now().UTC()
	rec, kept := p.snapshotLocked(), p.kept
	p.mu.Unlock()
	if !kept {
		return nil
	}
	err := p.m.registry.journal.put(rec)
	if err != nil {
		p.m.o.Log.Warn("a process record was not written", "process", p.id, "error", err)
	}
	if t != "" {
		p.m.emit(t, cause, rec.Process)
	}
	return err
}

// follow takes the output of a process that was just started, waits for its end and
// records it. It owns the pid.
func (p *proc) follow(pidfd int) {
	if p.attend(pidfd) {
		p.conclude(nil)
		return
	}
	p.watch(pidfd)
}

// watch is follow for a process that goes on, whose output takes goroutines.
func (p *proc) watch(pidfd int) {
	p.collect()
	p.conclude(awaitEnd(p.pid(), pidfd))
}

// conclude records the end of a process that can be reaped. waitErr is why that is
// not known.
func (p *proc) conclude(waitErr error) {
	pid := p.pid()
	close(p.ending)
	p.mu.Lock()
	for p.holds > 0 {
		p.unheld.Wait()
	}
	code, signal, err := reap(pid)
	p.reaped = true
	p.mu.Unlock()
	p.m.born.forget(pid)
	if p.stdin != nil && !p.stdin.tty {
		_ = p.stdin.close() // it may be closed already
	}
	stopped := time.Now().UTC()
	if err == nil {
		err = waitErr
	}
	if !isClosed(p.drained) {
		p.settle(code)
	}
	denied := code != 0 && p.denied()
	oom := p.outOfMemory(code, signal)
	p.release()
	p.m.dismiss(p)

	p.change.Lock()
	defer p.change.Unlock()
	cause := tool.CauseNaturalExit
	p.mu.Lock()
	if p.stopping != nil {
		cause = tool.CauseRequestedStop
	}
	p.mu.Unlock()
	// What is not written is logged there; nobody waits for this error.
	_ = p.updateHeld(tool.EventStopped, cause, func(r *record) {
		r.Status = tool.ProcessStopped
		r.StoppedAt = stopped
		r.ExitCode, r.Signal = code, signal
		r.TerminalCause = string(cause)
		r.SandboxDenied = denied
		if r.OOMKilled = oom; oom != "" {
			r.LastError = oom.Explain()
		}
		r.OutputClosed = isClosed(p.drained)
		if err != nil {
			r.LastError = "its exit status is not known: " + err.Error()
		}
	})
	close(p.exited)
}

// settle waits a moment for the end of the output of a process that has ended.
func (p *proc) settle(code int) {
	if p.takeRest() {
		return
	}
	if code != 0 && p.limited {
		p.awaitRest(deniedGrace)
		return
	}
	expired, free := after(settleGrace)
	defer free()
	select {
	case <-p.drained:
	case <-expired:
	}
}

// drain is called when the last output byte is in, by whoever notices.
func (p *proc) drain() {
	p.complete.Do(func() {
		if p.out != nil {
			if err := p.out.close(); err != nil {
				p.m.o.Log.Warn("output was not closed", "process", p.id, "error", err)
			}
		}
		close(p.drained)
		p.m.mu.Lock()
		delete(p.m.open, p)
		p.m.mu.Unlock()
	})
}

// tellDrained sees to it that everybody learns of the end of the output.
func (p *proc) tellDrained() {
	if p.awaitEnd() {
		return
	}
	p.change.Lock()
	defer p.change.Unlock()
	p.mu.Lock()
	told := p.rec.OutputClosed
	p.mu.Unlock()
	if !told {
		_ = p.updateHeld(tool.EventUpdated, "", func(r *record) { r.OutputClosed = true })
	}
}

// awaitEnd waits a moment for the end of a background process whose output has
// ended: mostly both come together, and the end tells of both. A foreground
// command's end it awaits in any case, and reports true after removing what
// the command left on disk.
func (p *proc) awaitEnd() (removed bool) {
	p.mu.Lock()
	kept := p.kept
	p.mu.Unlock()
	if kept {
		expired, free := after(deniedGrace)
		defer free()
		select {
		case <-p.exited:
		case <-expired:
		}
		return false
	}
	<-p.exited
	return p.sweep()
}

// sweep removes what a foreground command that has ended left on disk. It reports false,
// and removes nothing, when the command was adopted meanwhile.
func (p *proc) sweep() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept {
		return false
	}
	if p.out == nil {
		return true
	}
	if err := p.out.remove(); err != nil {
		p.m.o.Log.Warn("a command's output was not removed", "process", p.id, "error", err)
	}
	return true
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
