//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/caisson-dev/caisson/rpc/protocol"
)

const (
	// callLimit bounds one call: more than every bound of the service's.
	callLimit = 90 * time.Second
	// aftermath is how long after an accident its traces may be met.
	aftermath = 20 * time.Second
	// thinking is the mean time between two steps of a session.
	thinking = 60 * time.Millisecond
)

// agent is the user of one session after the other, all of one profile and in
// one folder.
type agent struct {
	*world
	index   int
	profile string
	folder  string // that is opened
	subdir  string // what is its own in the workspace

	service    *service // that the last call went to
	held       bool     // the service has the session
	session    protocol.Session
	generation int
	exists     bool // the session was, or may have been, made
	calls      int

	files     map[string]*file
	book      *book
	processes []*process
	forgotten map[string]bool // processes that a list may still hold
	unsure    map[string]bool // operations that may have become processes

	published []publication
	strays    []string // forks that may have been made and not deleted

	// What accidents need to know.
	id        atomic.Pointer[string]
	container atomic.Pointer[string]
	disturbed atomic.Int64 // when something was last done to its worker, Unix nanoseconds
}

func newAgent(w *world, index int) (*agent, error) {
	a := &agent{world: w, index: index, profile: w.plan.profiles[index], subdir: fmt.Sprintf("s%02d", index), forgotten: map[string]bool{}, unsure: map[string]bool{}}
	a.folder = filepath.Join(w.dir, "work", a.name())
	a.empty()
	return a, os.Mkdir(a.folder, 0o700)
}

func (a *agent) name() string { return fmt.Sprintf("%s-%02d", a.profile, a.index) }

// empty begins with no files and no processes.
func (a *agent) empty() {
	a.files, a.book = map[string]*file{}, newBook()
	a.processes = nil
}

func (a *agent) note(format string, args ...any) { a.journal.note(a.name(), format, args...) }

// step is one kind of thing that an agent does.
type step struct {
	name   string
	weight int
	do     func(*agent, context.Context, *rand.Rand) error
}

// steps are all that an agent does, the likeliest first.
var steps = []step{
	{"write", 14, (*agent).write},
	{"edit", 10, (*agent).edit},
	{"read", 14, (*agent).read},
	{"append", 12, (*agent).append},
	{"find", 8, (*agent).find},
	{"hash", 4, (*agent).hash},
	{"book", 4, (*agent).readBook},
	{"burst", 3, (*agent).burst},
	{"cancel", 4, (*agent).cancel},
	{"timeout", 2, (*agent).timeout},
	{"start", 8, (*agent).begin},
	{"input", 6, (*agent).input},
	{"output", 8, (*agent).output},
	{"subscribe", 4, (*agent).subscribe},
	{"stop", 4, (*agent).stop},
	{"adopt", 1, (*agent).adopt},
	{"list", 4, (*agent).list},
	{"publish", 3, (*agent).publish},
	{"recall", 3, (*agent).recall},
	{"busy", 2, (*agent).busy},
	{"fork", 1, (*agent).fork},
	{"close", 1, (*agent).close},
	{"delete", 1, (*agent).delete},
}

// run does steps until the time is over.
func (a *agent) run(ctx, over context.Context) error {
	for n := 0; over.Err() == nil; n++ {
		r := a.plan.dice(a.index, n)
		pause := time.NewTimer(time.Duration(r.ExpFloat64() * float64(thinking)))
		s := steps[draw(r, steps, func(i int) int { return steps[i].weight })]
		select {
		case <-pause.C:
		case <-over.Done():
			pause.Stop()
			return nil
		}
		if err := a.open(ctx, r); err != nil {
			return fmt.Errorf("step %d, open %s: %w", n, a.sessionID(), err)
		}
		began := time.Now()
		if err := s.do(a, ctx, r); err != nil {
			if ctx.Err() != nil {
				return nil // somebody else's failure ended the soak
			}
			a.note("step %d, %s: FAILED: %v", n, s.name, err)
			return fmt.Errorf("step %d, %s in %s: %w", n, s.name, a.sessionID(), err)
		}
		a.tally.step(s.name, time.Since(began))
	}
	return nil
}

// sessionID is the id of the agent's session.
func (a *agent) sessionID() string { return fmt.Sprintf("%s-%d", a.name(), a.generation) }

// judge says what a call has done that ended with err. An error that nothing
// excuses is returned.
func (a *agent) judge(what string, began time.Time, err error) (effect, error) {
	if err == nil {
		return done, nil
	}
	var e *protocol.Error
	if !errors.As(err, &e) {
		if a.service.gone() {
			return unknown, nil
		}
		return unknown, fmt.Errorf("%s: %w", what, err)
	}
	excused := a.service.gone() || a.recently(began)
	switch kind := e.Kind(); {
	case kind == protocol.KindOverloaded:
		a.tally.count("overloaded")
		return nothing, nil
	case kind == protocol.KindOutcomeUnknown && excused:
		a.tally.count("outcome unknown")
		return unknown, nil
	case kind == protocol.KindBackendUnavailable && e.Data.Retryable && (excused || a.profile != local):
		// An engine on a busy machine may be too slow for its limit.
		a.tally.count("unavailable")
		return nothing, nil
	case kind == protocol.KindCancelled && a.service.gone(), kind == protocol.KindBackendUnavailable && a.service.gone():
		return unknown, nil
	case e.Code == protocol.CodeInvalidRequest && a.service.gone():
		return nothing, nil // it has begun its shutdown
	}
	return unknown, fmt.Errorf("%s: %s", what, explain(err))
}

// recently reports whether something was done to the session's worker or
// connection so that a call that began then may have noticed.
func (a *agent) recently(began time.Time) bool {
	at := a.disturbed.Load()
	return at != 0 && time.Unix(0, at).After(began.Add(-aftermath))
}

// disturbedAt is when the session's worker was last in danger.
func (a *agent) disturbedAt() time.Time { return time.Unix(0, a.disturbed.Load()) }

func (a *agent) disturb() { a.disturbed.Store(time.Now().UnixNano()) }

func explain(err error) string {
	var e *protocol.Error
	if errors.As(err, &e) && e.Data != nil {
		return fmt.Sprintf("%s (%s; %s)", e.Message, e.Data.Kind, e.Data.Hint)
	}
	return fmt.Sprint(err)
}

// limited bounds one call.
func limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, callLimit, fmt.Errorf("no answer within %v", callLimit))
}

// open makes the agent's session, or finds it again, when it has none.
func (a *agent) open(ctx context.Context, r *rand.Rand) error {
	const attempts = 20
	for range attempts {
		if a.held && !a.service.gone() {
			return nil
		}
		a.held = false
		if err := a.waitForOwner(ctx); err != nil {
			return err
		}
		s, err := a.pick(ctx, r.IntN(slots))
		if err != nil {
			return err
		}
		a.service = s
		began := time.Now()
		id, uri := a.sessionID(), "file://"+a.folder
		a.id.Store(&id)
		call, cancel := limited(ctx)
		opened, err := s.SessionOpen(call, protocol.SessionOpenParams{SessionID: id, Workspace: &uri, Profile: a.profile})
		cancel()
		e, err := a.judge("session/open", began, err)
		if err != nil {
			return err
		}
		if e != done {
			a.exists = a.exists || e == unknown
			continue
		}
		if opened.Resumed && !a.exists {
			return errors.New("a new session exists already")
		}
		if !opened.Resumed && a.exists && a.session.ID == id {
			return errors.New("the session is not there any more")
		}
		a.session, a.exists, a.held = opened.Session, true, true
		if a.profile != local {
			a.container.Store(&opened.Session.EnvironmentID)
		}
		a.tally.count("opened")
		return nil
	}
	return fmt.Errorf("it was tried %d times", attempts)
}

// waitForOwner waits for the end of a service that is ending and has the session.
func (a *agent) waitForOwner(ctx context.Context) error {
	s := a.service
	if s == nil || !s.gone() {
		return nil
	}
	limit := time.NewTimer(exitLimit)
	defer limit.Stop()
	select {
	case <-s.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-limit.C:
		return errors.New("its former service does not end")
	}
}
