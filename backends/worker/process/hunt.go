package process

import (
	"context"
	"slices"
	"syscall"
	"time"
)

// quarry is a set of processes that must end: those that match, with their
// descendants if family is set, and whatever was seen of them once, even when
// it no longer matches.
type quarry struct {
	jobs   []*proc              // whose groups are struck as one, so that nobody forks out of sight
	freed  func(*proc)          // told of each job of whose group and session nobody is left; or nil
	look   func(all []procInfo) // at everybody, before match is asked; or nil
	match  func(procInfo) bool
	family bool
	seen   map[int]uint64 // pid to start time
}

// strike signals the groups, as far as their numbers are known to be theirs, and
// returns those.
func (q *quarry) strike(s syscall.Signal) map[int]bool {
	reached := make(map[int]bool, len(q.jobs))
	for _, p := range q.jobs {
		if p.signal(s) == nil {
			reached[p.pid()] = true
		}
	}
	return reached
}

// left scans for what of the quarry is alive.
func (q *quarry) left() ([]procInfo, error) {
	all, err := scan()
	if err != nil {
		return nil, err
	}
	if q.look != nil {
		q.look(all)
	}
	match := func(p procInfo) bool {
		start, known := q.seen[p.pid]
		return known && start == p.start || q.match(p)
	}
	var found []procInfo
	if q.family {
		found = family(all, match)
	} else {
		for _, p := range all {
			if !p.zombie && match(p) {
				found = append(found, p)
			}
		}
	}
	if q.seen == nil {
		q.seen = make(map[int]uint64)
	}
	for _, p := range found {
		q.seen[p.pid] = p.start
	}
	return append(found, q.hidden(all)...), nil
}

// hidden are the jobs that were not seen and have not ended: such as /proc hides, as
// it may of who is another user now, or lets nobody look into itself.
func (q *quarry) hidden(all []procInfo) (found []procInfo) {
	for _, p := range q.jobs {
		pid := p.pid()
		shown := slices.ContainsFunc(all, func(i procInfo) bool { return i.pid == pid })
		if !shown && pid != 0 && !isClosed(p.ending) {
			found = append(found, procInfo{pid: pid, group: pid, session: pid})
		}
	}
	return found
}

// free lets go of the jobs of whose group and session nobody is left. Who is another
// process at each look, and so never seen, is struck before that.
func (q *quarry) free(left []procInfo) {
	q.jobs = slices.DeleteFunc(q.jobs, func(p *proc) bool {
		pid := p.pid()
		if slices.ContainsFunc(left, func(i procInfo) bool { return i.pid == pid || i.group == pid || i.session == pid }) {
			return false
		}
		if !marksKnown && len(left) > 0 {
			return false // a stranger that had its number next would be taken for its group's
		}
		_ = p.signal(syscall.SIGKILL) // mostly nobody is there
		if q.freed != nil {
			q.freed(p)
		}
		return true
	})
}

// blow is a signal and how long its effect is awaited.
type blow struct {
	signal syscall.Signal
	grace  time.Duration
}

// gently and hard are the two ways to end processes.
func (m *Manager) gently() []blow {
	return []blow{{syscall.SIGTERM, m.termGrace}, {syscall.SIGKILL, KillGrace}}
}
func hard() []blow { return []blow{{syscall.SIGKILL, KillGrace}} }

// hunt signals the quarry, blow after blow, until nothing of it is left; what
// is left in the end is returned. It looks before the first signal: whoever was
// seen once is found again, whatever becomes of the others. Groups that are to be
// killed at once halt during that: they start nothing more, and who has started
// whom is seen still. Each blow falls on newcomers too. While looking fails, as
// without a descriptor, nobody counts as gone; the error is that of the last look.
// When ctx ends the next blow falls at once. wake says that looking again is worth it.
func (q *quarry) hunt(ctx context.Context, blows []blow, wake <-chan struct{}) ([]procInfo, error) {
	if blows[0].signal == syscall.SIGKILL {
		q.strike(halting)
	}
	var left []procInfo
	var err error
	for i, b := range blows {
		struck := make(map[int]uint64)
		expired, free := after(b.grace)
		var reached map[int]bool
		looked := false
		given := ctx.Done()
		if i == len(blows)-1 {
			given = nil // the last one is always waited for
		}
		for pause, waiting := pollFirst, true; waiting; pause = min(2*pause, pollLast) {
			left, err = q.left()
			if reached == nil {
				reached = q.strike(b.signal) // also where nobody can be seen
			}
			if err == nil {
				q.free(left)
				if len(left) == 0 {
					free()
					return nil, nil
				}
			}
			for _, p := range left {
				if struck[p.pid] == p.start {
					continue
				}
				struck[p.pid] = p.start
				if looked || !reached[p.group] {
					// What refuses the signal is still there in the end, and told then.
					_ = signalExactly(p, b.signal)
				}
				resume(p)
			}
			looked = looked || err == nil
			poll, stop := after(pause)
			select {
			case <-poll:
			case <-wake:
				wake = nil
			case <-expired:
				waiting = false
			case <-given:
				waiting = false
			}
			stop()
		}
		free()
	}
	return left, err
}
