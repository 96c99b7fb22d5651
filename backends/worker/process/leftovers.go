package process

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/workspace"
)

// killLeftovers kills what a worker that did not close has left running: the
// processes of the records with who is in their sessions, and everything that
// carries that worker's mark.
func (r *registry) killLeftovers(records []record) error {
	path := filepath.Join(r.dir, instanceFile)
	instance, err := readPlain(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the last one closed, or there was none
	}
	if err != nil {
		return tool.Errorf(tool.Internal, "read the process registry: %w", err).WithPath(path).WithHint(notOurs)
	}
	l := leftovers{instance: string(instance), limited: unprivileged(os.Getpid())}
	for _, rec := range records {
		if !rec.Status.Terminal() && rec.PID > 1 && rec.Identity.Start != 0 && rec.Identity.sameSystem(r.here) {
			l.records = append(l.records, rec)
		}
	}
	q := quarry{family: true, look: l.look, match: func(p procInfo) bool {
		return p.pid != os.Getpid() && (l.has(p) || len(instance) > 0 && marked(p.pid, l.instance+"/"))
	}}
	left, err := q.hunt(context.Background(), hard(), nil)
	if err != nil {
		return tool.Errorf(tool.Internal, "look for processes of a dead worker: %w", err)
	}
	if len(left) > 0 {
		return tool.Errorf(tool.Internal, "processes of a dead worker cannot be killed: %s", pids(left))
	}
	return nil
}

// leftovers knows which sessions are those that a dead worker's processes began.
//
// Such a process mostly ends with its worker, and who is in its session lives on. The
// kernel gives its number to no other process as long as somebody is in that session. So
// where a process has the number, the session is its own: ours if it began when ours
// did. Where none has it, the session is ours, or that of a later process which had the
// number when ours was free, and has ended too. That is rare enough, and yet each of its
// members must show that it came from ours.
type leftovers struct {
	records  []record // of what ran, on this system, and when that began
	instance string
	limited  bool // this program can gain no privileges: then that tells nothing

	// At the last look, by the number of the session: which are ours, and which may be.
	led      map[int]bool
	orphaned map[int][]record
}

// look looks at all processes.
func (l *leftovers) look(all []procInfo) {
	l.led, l.orphaned = make(map[int]bool), make(map[int][]record)
	starts := make(map[int]uint64, len(all))
	for _, p := range all {
		starts[p.pid] = p.start
	}
	for _, rec := range l.records {
		start, shown := starts[rec.PID]
		switch {
		case shown:
			l.led[rec.PID] = l.led[rec.PID] || start == rec.Identity.Start
		case !taken(rec.PID):
			l.orphaned[rec.PID] = append(l.orphaned[rec.PID], rec)
		}
	}
}

// has reports whether p is in one of the sessions. Who has become another user's is
// left alone where nobody else shows that it is ours: that it cannot be killed would
// keep the next worker from its work.
func (l *leftovers) has(p procInfo) bool {
	if l.led[p.pid] || l.led[p.group] || l.led[p.session] {
		return true
	}
	came := func(rec record) bool { return l.cameFrom(rec, p) }
	return slices.ContainsFunc(l.orphaned[p.session], came) && mayEnd(p.pid)
}

// cameFrom reports whether a member of a session without its first process shows that
// this was the record's: by where it works, or by what confined commands are not allowed
// and others are.
func (l *leftovers) cameFrom(rec record, p procInfo) bool {
	if p.start < rec.Identity.Start || p.zombie {
		return false
	}
	dir, err := workspace.Parse(rec.CWD)
	return err == nil && dir != "/" && worksIn(p.pid, dir) ||
		!l.limited && rec.SandboxMode != tool.Unconfined && unprivileged(p.pid)
}
