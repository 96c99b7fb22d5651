package process

import (
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// births knows which children of this program are commands, whose end belongs
// to the goroutine that watches them; all others are orphans.
type births struct {
	forking sync.RWMutex // read-held while a child exists that is not in pids

	// first tells the orphans' reaper of a child where it had found none.
	first chan struct{}

	mu     sync.Mutex
	pids   map[int]time.Time // when they were started
	awaits bool              // the reaper knows that there are children
}

func newBirths() *births {
	return &births{pids: make(map[int]time.Time), first: make(chan struct{}, 1)}
}

// fork runs start, which forks, and remembers the child.
func (b *births) fork(start func() (int, error)) (int, error) {
	b.forking.RLock()
	defer b.forking.RUnlock()
	pid, err := start()
	if err != nil {
		return pid, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pids[pid] = time.Now()
	if !b.awaits {
		b.awaits = true
		select {
		case b.first <- struct{}{}:
		default: // the reaper has not taken the last one, or there is none
		}
	}
	return pid, nil
}

// forget drops a child that has been reaped.
func (b *births) forget(pid int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.pids, pid)
}

func (b *births) has(pid int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.pids[pid]
	return ok
}

// reapOrphans reaps every child that is not a command, until the Manager is
// closed. Children that end at the same time are reaped together.
//
// It listens to the signal that tells of a child's end only while somebody lives
// who may leave orphans or is one: the signal costs each short command four
// changes of threads, at the moment of its end.
func (m *Manager) reapOrphans() {
	died := make(chan os.Signal, 1)
	defer signal.Stop(died)
	look := time.NewTimer(0) // there may be children already
	defer look.Stop()
	listens := false
	for {
		select {
		case <-m.closed:
			return
		case <-died:
			look.Reset(reapDelay)
		case <-m.born.first:
			look.Reset(reapDelay)
		case <-look.C:
			left := m.born.reapOthers()
			switch {
			case left == lasting && !listens:
				signal.Notify(died, childSignals()...)
				listens = true
				look.Reset(reapDelay) // something may have ended before we listened
			case left == nobody && listens:
				signal.Stop(died)
				listens = false
			case left == passing:
				look.Reset(reapDelay)
			}
		}
	}
}

// company is what children there are when the orphans that have ended are reaped.
type company int

const (
	nobody  company = iota
	passing         // commands that are about to end, or were just started
	lasting         // commands that have run for a while, or orphans
)

// reapOthers reaps the orphans that have ended. Those that stand behind a
// command that has ended, which its watcher is reaping, it leaves.
func (b *births) reapOthers() company {
	b.forking.Lock()
	defer b.forking.Unlock()
	for {
		pid, childless := nextZombie()
		switch {
		case pid != 0 && b.has(pid):
			return passing
		case pid != 0:
			if _, _, err := reap(pid); err != nil && !errors.Is(err, syscall.ECHILD) {
				return passing
			}
		default:
			return b.company(childless)
		}
	}
}

// company says who lives. The caller holds forking.
func (b *births) company(childless bool) company {
	b.mu.Lock()
	defer b.mu.Unlock()
	if childless {
		b.awaits = false
		return nobody
	}
	if len(b.pids) == 0 {
		return lasting
	}
	for _, began := range b.pids {
		if time.Since(began) >= reapDelay {
			return lasting
		}
	}
	return passing
}
