package remote

import (
	"context"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// A settler tells when the output of ended processes is complete, for far ends
// that do not say so themselves: when two looks at it, some time apart, find it
// equally long. One goroutine looks after all of them, and lives as long as
// there are any.
type settler struct {
	e *Environment

	mu       sync.Mutex
	watching map[string]*settling
	running  bool
}

// settling is one process whose output may still grow.
type settling struct {
	total int64 // at the last look; -1 before the first
	due   time.Time
	wait  time.Duration
}

func newSettler(e *Environment) *settler {
	return &settler{e: e, watching: make(map[string]*settling)}
}

// watch begins to look at a process.
func (s *settler) watch(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watching[id] != nil || len(s.watching) >= maxProcesses || s.e.life.Err() != nil {
		return
	}
	s.watching[id] = &settling{total: -1, wait: settleFirst, due: time.Now().Add(settleFirst)}
	if !s.running {
		s.running = true
		s.e.goroutines.Go(s.run)
	}
}

func (s *settler) run() {
	for {
		id, w := s.next()
		if w == nil {
			return
		}
		timer := time.NewTimer(time.Until(w.due))
		select {
		case <-timer.C:
			s.look(id, w)
		case <-s.e.life.Done():
			timer.Stop()
			return
		}
	}
}

// next is the process to look at next; nil ends the goroutine.
func (s *settler) next() (id string, w *settling) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, candidate := range s.watching {
		if w == nil || candidate.due.Before(w.due) {
			id, w = i, candidate
		}
	}
	s.running = w != nil
	return id, w
}

// look looks once. Without a connection, or without an answer, it stops
// watching: the next connection begins again.
func (s *settler) look(id string, w *settling) {
	total, err := s.total(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && total != w.total {
		w.total = total
		w.due = time.Now().Add(w.wait)
		w.wait = min(2*w.wait, settleMax)
		return
	}
	delete(s.watching, id)
	if err != nil {
		s.e.log.Debug("cannot tell whether output is complete", "process", id, "error", err)
		return
	}
	s.e.track.close(id, total)
}

// total is how long the output of a process is now.
func (s *settler) total(id string) (int64, error) {
	c := s.e.conn.Load()
	if c == nil {
		return 0, tool.Errorf(tool.BackendUnavailable, "not connected")
	}
	ctx, cancel := context.WithTimeout(s.e.life, requestTimeout)
	defer cancel()
	reply, err := c.Do(ctx, readRequest(c, id, tool.ReadOptions{MaxBytes: 1}))
	if err != nil {
		return 0, err
	}
	var read wire.ProcessRead
	err = reply.Decode(&read)
	return read.TotalBytes, err
}
