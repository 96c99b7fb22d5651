package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// Detach lets go of the environment: calls in flight are cancelled and have a
// short time to end, then the connection is closed. The environment lives on.
func (e *Environment) Detach(ctx context.Context) error {
	if !e.letGo() {
		return nil
	}
	return e.detach(ctx)
}

// letGo begins the end: nothing connects any more. Only the first one reports
// true.
func (e *Environment) letGo() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	first := !e.detached
	e.detached = true
	return first
}

func (e *Environment) detach(ctx context.Context) error {
	e.end()
	var err error
	if c := e.conn.Load(); c != nil {
		quiet, cancel := context.WithTimeout(ctx, quiesceTimeout)
		if err := c.Quiesce(quiet); err != nil {
			e.log.Debug("calls in flight did not end before the connection was closed", "error", err)
		}
		cancel()
		err = c.Close()
	}
	e.goroutines.Wait()
	e.events.Close(backends.ErrDetached())
	return err
}

// Shutdown ends the session's part of the environment in order, within the
// profile's shutdown timeout: its processes are stopped and reaped and its worker
// exits. It then detaches. An environment that is gone already has nothing to
// end, and neither has one that somebody has stopped, which stays stopped.
func (e *Environment) Shutdown(ctx context.Context) error {
	return e.endWorker(ctx, wire.Shutdown{})
}

// Forget is Shutdown, and after it the environment keeps nothing of the session: the
// worker removes that too, for which there are [backends.ForgetTime] more. One that is
// too old to announce it is not asked to, and leaves it. In an environment that somebody
// has stopped it stays too: that is [backends.ErrStopped].
func (e *Environment) Forget(ctx context.Context) error {
	return e.endWorker(ctx, wire.Shutdown{Forget: true})
}

func (e *Environment) endWorker(ctx context.Context, ask wire.Shutdown) error {
	budget := e.b.Profile.ShutdownTimeout
	if budget <= 0 {
		budget = DefaultShutdownBudget
	}
	if ask.Forget {
		budget += backends.ForgetTime
	}
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	e.mu.Lock()
	e.ending = true
	e.mu.Unlock()
	c, err := e.connected(ctx)
	if !e.letGo() {
		return nil
	}
	if err == nil {
		err = e.shutdown(ctx, c, ask, budget)
		for try := 1; try < shutdownTries && errors.Is(err, errCut); try++ {
			err = e.shutdownAgain(ctx, ask, budget)
		}
	} else if ctx.Err() != nil {
		err = &tool.Error{
			Kind: tool.KindOf(err), Message: "the worker could not be reached within " + budget.String() + ", to end it", Err: err,
			Hint: "nothing was removed; see whether the environment can be reached, then try again",
		}
	} else {
		err = about("ending the worker", err)
	}
	stopped := errors.Is(err, backends.ErrStopped)
	if stopped {
		e.track.loseRunning()
	}
	if tool.KindOf(err) == tool.EnvironmentLost || stopped && !ask.Forget {
		err = nil
	}
	return errors.Join(err, e.detach(ctx))
}

// EndsOnRequest reports whether the worker announces that it ends when it is asked
// to. An older one may not; Shutdown then only lets go of it.
func (e *Environment) EndsOnRequest() bool {
	info := e.info.Load()
	return info != nil && slices.Contains(info.Capabilities, wire.CapShutdown)
}

// errCut is within the error of a shutdown whose connection was lost.
var errCut = errors.New("the connection was lost before the worker had ended")

// shutdownAgain asks over a connection of its own: the worker that was asked may
// have been killed, and what it ran must still be found and ended. Nobody else
// connects any more. One that is just dying may still take a connection.
func (e *Environment) shutdownAgain(ctx context.Context, ask wire.Shutdown, budget time.Duration) error {
	b := e.b
	b.OnlyRunning = true
	for try, wait := 1, firstBackoff; ; try, wait = try+1, 2*wait {
		c, _, err := e.try(ctx, againConnect, b)
		if err == nil {
			return errors.Join(e.shutdown(ctx, c, ask, budget), c.Close())
		}
		if try == shutdownConnects || !retryable(err) || e.o.OneAttempt {
			return about("ending the worker", err)
		}
		pause := time.NewTimer(wait)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return about("ending the worker", err)
		}
	}
}

// shutdown asks the worker to end. One that cannot be asked ends with its
// connection.
func (e *Environment) shutdown(ctx context.Context, c *connection, ask wire.Shutdown, budget time.Duration) error {
	quiet, cancel := context.WithTimeout(ctx, quiesceTimeout)
	defer cancel()
	if err := c.Quiesce(quiet); err != nil {
		e.log.Debug("calls in flight did not end before the shutdown", "error", err)
	}
	if !c.Has(wire.CapShutdown) {
		return nil
	}
	// A worker that has used up its time is not waited for until it has ended the
	// cancelled request too: the connection goes.
	defer context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			_ = c.Close() // its loss is what the call says
		}
	})()
	ask.Forget = ask.Forget && c.Has(wire.CapForget)
	_, err := c.Call(ctx, wire.MethodShutdown, ask, nil)
	switch {
	case err == nil:
		return nil
	case ctx.Err() == nil && c.Err() != nil:
		return about("ending the worker", fmt.Errorf("%w: %w", errCut, err))
	case ctx.Err() != nil || tool.KindOf(err) == tool.OutcomeUnknown:
		e := &tool.Error{
			Kind:    tool.OutcomeUnknown,
			Message: "the worker did not end within " + budget.String() + "; what it had running may still run",
			Hint:    "nothing was removed; look at the environment, then try again", Err: err,
		}
		if ask.Forget {
			// That comes last, and is what takes so long.
			e.Message = "the worker did not end, and remove what it keeps of the session, within " + budget.String() +
				"; a part of that may be removed, and what it had running has most likely ended"
			e.Hint = "look at the environment, then try again"
		}
		return e
	default:
		return about("ending the worker", err)
	}
}
