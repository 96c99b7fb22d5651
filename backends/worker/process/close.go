package process

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// Close stops and reaps every command that the Manager still holds, in the
// foreground or adopted, with all their descendants that can be found, and lets
// go of the session. It takes at most [TermGrace] + [KillGrace] and a little;
// the end of ctx skips to SIGKILL. The error names what could not be stopped;
// then the session stays locked as long as this program lives. A second Close
// waits for the first.
func (m *Manager) Close(ctx context.Context) error {
	m.starts.Lock() // what was admitted before runs now, and nothing else will
	first := !isClosed(m.closing)
	if first {
		close(m.closing)
	}
	m.starts.Unlock()
	if !first {
		<-m.closed
		return m.failed
	}
	m.failed = m.shut(ctx)
	close(m.closed)
	if m.failed == nil {
		m.work.Wait() // the orphans' reaper ends only now
	}
	return m.failed
}

func (m *Manager) shut(ctx context.Context) error {
	m.mu.Lock()
	live := slices.Collect(maps.Keys(m.live))
	m.mu.Unlock()
	held := make(map[*proc]bool, len(live))
	for _, p := range live {
		p.markStopping()
		held[p] = p.hold()
	}
	q := m.everything(live)
	q.freed = func(p *proc) { // its end is told, whoever else takes longer
		if held[p] {
			delete(held, p)
			p.letGo()
		}
	}
	left, err := q.hunt(ctx, m.gently(), nil)
	for _, p := range q.jobs {
		q.freed(p)
	}
	if err != nil {
		return tool.Errorf(tool.Internal, "stop the session's processes: %w", err)
	}
	if len(left) > 0 {
		return tool.Errorf(tool.Internal, "the session's processes cannot be stopped: %s still there after SIGKILL", pids(left)).
			WithHint("workspace and state are kept; look at these processes in the environment")
	}
	for _, p := range live {
		<-p.exited // nothing is left alive, so these are on their way
	}
	m.drainAll()
	if m.o.AdoptOrphans {
		m.born.reapOthers()
	}
	m.modes.closeAll()
	err = removeIfThere(filepath.Join(m.registry.dir, instanceFile))
	return errors.Join(err, m.registry.close())
}

// drainAll waits for the end of all output. Mostly nobody is left to hold it
// open; who could not be found loses his pipe.
func (m *Manager) drainAll() {
	m.mu.Lock()
	open := slices.Collect(maps.Keys(m.open))
	m.mu.Unlock()
	end := time.Now().Add(DrainGrace)
	for _, p := range open {
		if !p.awaitRest(max(time.Until(end), time.Nanosecond)) {
			p.abandon()
			<-p.drained
		}
	}
}

// markStopping notes that the end of p is wanted.
func (p *proc) markStopping() {
	p.change.Lock()
	defer p.change.Unlock()
	p.mu.Lock()
	begin := p.stopping == nil && !p.rec.Status.Terminal()
	if begin {
		p.stopping = &stopping{done: closedChannel()}
	}
	p.mu.Unlock()
	if begin {
		_ = p.updateHeld(tool.EventUpdated, tool.CauseRequestedStop, func(r *record) { r.Status = tool.ProcessStopping })
	}
}

// everything is all that runs because of this Manager: the groups of live
// commands, what carries the mark, and, when orphans come to this program, all
// its descendants.
func (m *Manager) everything(live []*proc) *quarry {
	self := os.Getpid()
	groups := make([]func(procInfo) bool, 0, len(live))
	for _, p := range live {
		groups = append(groups, p.inGroup())
	}
	return &quarry{jobs: slices.Clone(live), family: true, match: func(i procInfo) bool {
		if i.pid == self {
			return false
		}
		if m.o.AdoptOrphans && i.parent == self {
			return true
		}
		for _, in := range groups {
			if in(i) {
				return true
			}
		}
		return marked(i.pid, m.instance+"/")
	}}
}
