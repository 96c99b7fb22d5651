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

	mu   sync.Mutex
	pids map[int]struct{}
}

// fork runs start, which forks, and remembers the child.
func (b *births) fork(start func() (int, error)) (int, error) {
	b.forking.RLock()
	defer b.forking.RUnlock()
	pid, err := start()
	if err == nil {
		b.mu.Lock()
		if b.pids == nil {
			b.pids = make(map[int]struct{})
		}
		b.pids[pid] = struct{}{}
		b.mu.Unlock()
	}
	return pid, err
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
func (m *Manager) reapOrphans() {
	died := make(chan os.Signal, 1)
	signal.Notify(died, childSignals()...)
	defer signal.Stop(died)
	retry := time.NewTimer(0) // something may have ended before we listened
	defer retry.Stop()
	for {
		select {
		case <-m.closed:
			return
		case <-died:
			retry.Reset(reapDelay)
		case <-retry.C:
			if !m.born.reapOthers() {
				retry.Reset(reapDelay)
			}
		}
	}
}

// reapOthers reaps the orphans that have ended. It reports false when a command
// that has ended stands before them: it is being reaped by its watcher.
func (b *births) reapOthers() bool {
	b.forking.Lock()
	defer b.forking.Unlock()
	for {
		pid := nextZombie()
		if pid == 0 {
			return true
		}
		if b.has(pid) {
			return false
		}
		if _, _, err := reap(pid); err != nil && !errors.Is(err, syscall.ECHILD) {
			return false
		}
	}
}
