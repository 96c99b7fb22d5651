package process

import (
	"context"
	"syscall"
	"time"
)

// quarry is a set of processes that must end: those that match, with their
// descendants if family is set, and whatever was seen of them once, even when
// it no longer matches.
type quarry struct {
	jobs   []*proc              // whose groups are struck as one, so that nobody forks out of sight
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
	return found, nil
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
// seen once is found again, whatever becomes of the others. Each blow falls on
// newcomers too. When ctx ends the next blow falls at once. wake says that looking
// again is worth it.
func (q *quarry) hunt(ctx context.Context, blows []blow, wake <-chan struct{}) ([]procInfo, error) {
	var left []procInfo
	for i, b := range blows {
		struck := make(map[int]uint64)
		expired, free := after(b.grace)
		var reached map[int]bool
		given := ctx.Done()
		if i == len(blows)-1 {
			given = nil // the last one is always waited for
		}
		for pause, waiting := pollFirst, true; waiting; pause = min(2*pause, pollLast) {
			var err error
			left, err = q.left()
			first := reached == nil
			if first {
				reached = q.strike(b.signal) // also where nobody can be seen
			}
			if err != nil || len(left) == 0 {
				free()
				q.strike(syscall.SIGKILL) // who is another process at each look, and never seen
				return left, err
			}
			for _, p := range left {
				if struck[p.pid] == p.start {
					continue
				}
				struck[p.pid] = p.start
				if !first || !reached[p.group] {
					// What refuses the signal is still there in the end, and told then.
					_ = signalExactly(p, b.signal)
				}
				resume(p)
			}
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
	return left, nil
}
