package session

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// longTry is how long a try may have taken and, when it did nothing, still be
// followed by another: repeated waits for an engine that does not answer would keep
// a person from learning so within 3 s.
const longTry = time.Second

// backoff waits between tries, each time twice as long.
type backoff struct {
	left int // tries
	wait time.Duration
}

// backoff is how the user's file says now that tries are repeated.
func (m *Manager) backoff() *backoff {
	e := m.execution()
	return &backoff{left: e.MaxRetries, wait: e.RetryBackoff}
}

// pause waits before another try, and reports false when there is none: they are
// spent, or ctx is over. A random part keeps apart many that failed at once.
func (b *backoff) pause(ctx context.Context) bool {
	if b.left <= 0 || ctx.Err() != nil {
		return false
	}
	b.left--
	timer := time.NewTimer(b.wait/2 + rand.N(b.wait/2+1))
	b.wait *= 2
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		timer.Stop()
		return false
	}
}

// use is how something uses an environment.
type use struct {
	progress backends.Progress
	// reads says that nothing but reading is done, so that it may be done twice; nil
	// is no.
	reads func(ctx context.Context, env backends.Environment) bool
	// budget is the time that all tries have together; 0 is any.
	budget time.Duration
}

// use runs f on the place's environment, with the time that is left, and again after
// failures that are known to have come before anything ran. What only reads is run
// again also when a connection was lost and nobody knows how far it came; nothing
// else ever is.
func (p *place) use(ctx context.Context, u use, f func(env backends.Environment, left time.Duration) error) error {
	now := p.s.m.o.Now
	var tries *backoff
	for {
		env, err := p.environment(ctx, u.progress)
		if err != nil {
			return err // opening it has tries of its own
		}
		begun := now()
		err = f(env, u.budget)
		e, ok := errors.AsType[*tool.Error](err)
		if !ok {
			return err
		}
		took := now().Sub(begun)
		switch {
		case u.budget > 0 && took >= u.budget, ctx.Err() != nil, p.s.ending():
			return err
		case e.Kind == tool.OutcomeUnknown:
			if u.reads == nil || !u.reads(ctx, env) {
				return err
			}
			err = nothingChanged(e)
		case !e.Retryable || took >= longTry:
			return err
		}
		if tries == nil {
			tries = p.s.m.backoff()
		}
		if !tries.pause(ctx) || p.s.ending() {
			return err
		}
		if u.budget > 0 {
			u.budget = max(u.budget-now().Sub(begun), 1)
		}
		u.progress.Report("Trying again: " + e.Message)
	}
}

// nothingChanged is an error of what only reads, for whoever gets it in the end.
func nothingChanged(e *tool.Error) error {
	told := *e
	told.Hint, told.Err = "it only reads, and has changed nothing: ask again", e
	return &told
}

// final is an error after something has run: whatever it says, nothing is done
// again for it.
func final(err error) error {
	e, ok := errors.AsType[*tool.Error](err)
	if !ok || !e.Retryable {
		return err
	}
	told := *e
	told.Retryable = false
	return &told
}

// ending reports whether the session is being closed, deleted or given up.
func (s *live) ending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// reads reports whether the call only reads, as the environment describes its tool. Of the
// workspace tools that change something it is known that they do not: to ask would have
// the caller, whose connection was just lost, wait for the next one.
func (p *place) reads(r CallRequest) func(ctx context.Context, env backends.Environment) bool {
	return func(ctx context.Context, env backends.Environment) bool {
		looks := false // of the process tool
		switch r.Name {
		case "write_file", "edit_file", "bash", "git":
			return false
		case "process":
			action := processArguments(r).Action
			if looks = slices.Contains([]string{"list", "read", "update"}, action); !looks {
				return false
			}
		}
		list, err := p.descriptions(ctx, env)
		if err != nil {
			return false
		}
		for _, d := range list {
			if d.Name == r.Name {
				return d.Annotations.ReadOnly || looks && d.Group == tool.GroupProcess
			}
		}
		return false
	}
}

// onlyReads is how what only reads uses an environment, whichever that is.
func onlyReads() use {
	return use{reads: func(context.Context, backends.Environment) bool { return true }}
}
