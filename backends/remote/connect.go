package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// A connection is one handshaken stream.
type connection struct {
	*wire.Client
	root   string
	stream Stream
	since  time.Time // it is the environment's; set by adopt

	// Environment.mu guards these.
	over bool // its end was told
	owed bool // a call was in flight then
}

// told is an error of the connection as it is shown.
func (c *connection) told(err error) error {
	lost := c.Err()
	return c.stream.told(err, lost != nil && !errors.Is(lost, wire.ErrClosed))
}

// Do is that of the client, with errors as they are shown.
func (c *connection) Do(ctx context.Context, r wire.ClientRequest) (wire.Reply, error) {
	reply, err := c.Client.Do(ctx, r)
	return reply, c.told(err)
}

// Call is that of the client, with errors as they are shown.
func (c *connection) Call(ctx context.Context, method string, data any, body []byte) (wire.Reply, error) {
	reply, err := c.Client.Call(ctx, method, data, body)
	return reply, c.told(err)
}

// Stream is that of the client, with errors as they are shown.
func (c *connection) Stream(ctx context.Context, method string, data any) (int64, io.ReadCloser, error) {
	size, body, err := c.Client.Stream(ctx, method, data)
	return size, body, c.told(err)
}

// An attempt is a connect that somebody began and everybody waits for.
type attempt struct {
	done chan struct{} // closed when err is set
	err  error
	// hurry is closed when somebody new wants the connection, and nil from then on
	// until the next try. Environment.mu guards it.
	hurry chan struct{}
	// wanted says that somebody waits for it. Environment.mu guards it.
	wanted bool
	// limit is why the last try failed, where that was a limit.
	limit atomic.Pointer[error]
	// spared says that the last try would not have started what was stopped. It is of
	// the goroutine that tries.
	spared bool
}

// binding is the one for the next try of an attempt. What somebody has stopped is started
// for those who wait, and not to be ended, nor to see what a lost call has left: nothing
// runs there.
func (e *Environment) binding(a *attempt) backends.Binding {
	e.mu.Lock()
	defer e.mu.Unlock()
	b := e.b
	b.OnlyRunning = e.onlyRunning(a)
	a.spared = b.OnlyRunning
	return b
}

// onlyRunning is that of the binding for an attempt. e.mu is held.
func (e *Environment) onlyRunning(a *attempt) bool {
	return e.b.OnlyRunning || e.ending || !a.wanted
}

// pausing is a new hurry for the time until the next try.
func (e *Environment) pausing(a *attempt) <-chan struct{} {
	hurry := make(chan struct{})
	e.mu.Lock()
	defer e.mu.Unlock()
	a.hurry = hurry
	return hurry
}

// connected returns the connection, and makes one when there is none.
func (e *Environment) connected(ctx context.Context) (*connection, error) {
	if c := e.conn.Load(); c != nil {
		select {
		case <-c.Done():
		default:
			return c, nil
		}
	}
	a, err := e.reconnect(true)
	if err != nil {
		return nil, err
	}
	if a != nil {
		if err := e.await(ctx, a); err != nil {
			return nil, err
		}
	}
	if c := e.conn.Load(); c != nil {
		return c, nil
	}
	return nil, &tool.Error{
		Kind: tool.BackendUnavailable, Message: "the connection was lost again at once",
		Hint: "try again; if it happens again, look at the worker's log", Retryable: true,
	}
}

// await waits for the end of an attempt. Whoever waits while the environment
// cannot even be attached to is told so soon; the attempt goes on.
func (e *Environment) await(ctx context.Context, a *attempt) error {
	patience := time.NewTimer(e.o.Patience)
	defer patience.Stop()
	for {
		select {
		case <-a.done:
			return a.err
		case <-ctx.Done():
			if limit := a.limit.Load(); limit != nil && tool.EndKind(ctx) == tool.Timeout {
				return *limit
			}
			return contextError(ctx, "waiting for the connection")
		case <-patience.C:
			if away := e.away.Load(); away != nil {
				return *away
			}
			patience.Reset(lookAgain)
		}
	}
}

// reconnect joins the connect that is going on, or begins one, for somebody who waits or
// for nobody. It returns nil when there is a connection already.
func (e *Environment) reconnect(wanted bool) (*attempt, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch c := e.conn.Load(); {
	case e.detached:
		return nil, backends.ErrDetached()
	case e.lost != nil:
		return nil, e.lost
	case e.attempt != nil:
		e.attempt.wanted = e.attempt.wanted || wanted
		if wanted && e.attempt.hurry != nil {
			close(e.attempt.hurry)
			e.attempt.hurry = nil
		}
		return e.attempt, nil
	case c != nil && c.Err() == nil:
		return nil, nil
	}
	hurry := make(chan struct{})
	a := &attempt{done: make(chan struct{}), wanted: wanted, hurry: hurry}
	e.attempt = a
	e.away.Store(nil)
	var rest time.Duration
	if !wanted {
		rest = e.rest
	}
	e.goroutines.Go(func() {
		e.restFor(rest, hurry)
		var err error
		for more := true; more; {
			err = e.connect(e.life, againConnect, a)
			e.mu.Lock()
			// Somebody who waits may have joined a try that found it stopped.
			if more = a.spared && !e.onlyRunning(a) && errors.Is(err, backends.ErrStopped); more {
				e.away.Store(nil)
			} else {
				e.attempt = nil
			}
			e.mu.Unlock()
		}
		a.err = err
		close(a.done)
	})
	return a, nil
}

// When a connect takes place.
type when int

const (
	firstConnect when = iota
	againConnect
)

// connect tries to connect until it succeeds, the budget is spent, or an error
// says that trying again is of no use. There is never more than one at a time. The
// first try waits for nothing, and neither does that after somebody new has joined.
func (e *Environment) connect(ctx context.Context, w when, a *attempt) error {
	if ctx.Err() != nil { // it was over before it began
		return contextError(ctx, "connecting")
	}
	budget, cancel := context.WithTimeout(ctx, e.o.ConnectBudget)
	defer cancel()
	e.events.Change(backends.StateConnecting, nil)
	began, wait := time.Now(), firstBackoff
	now := make(chan struct{})
	close(now)
	var hurry <-chan struct{} = now
	for {
		c, shared, err := e.try(backends.WithHurry(budget, hurry), w, e.binding(a))
		if err == nil {
			if err := e.adopt(c); err != nil {
				return err
			}
			e.log.Debug("connected", "shared_socket", shared)
			return nil
		}
		limited := tool.KindOf(err) == tool.Overloaded
		switch {
		case limited:
			a.limit.Store(&err)
		case budget.Err() == nil:
			a.limit.Store(nil)
		}
		if !retryable(err) || e.o.OneAttempt || budget.Err() != nil || limited && time.Since(began) >= e.o.LimitBudget {
			return e.disconnected(w, a.spent(ctx, budget, err))
		}
		e.log.Debug("connecting failed, trying again", "error", err)
		// The random part keeps many environments of one engine apart.
		pause := time.NewTimer(wait/2 + rand.N(wait/2))
		hurry = e.pausing(a)
		select {
		case <-pause.C:
		case <-hurry:
			pause.Stop()
		case <-budget.Done():
			pause.Stop()
			return e.disconnected(w, a.spent(ctx, budget, err))
		}
		wait = min(2*wait, maxBackoff)
	}
}

// spent is err for a connect whose time is over. A limit that the last try has met says
// what to do, and more than that.
func (a *attempt) spent(ctx, budget context.Context, err error) error {
	limit := a.limit.Load()
	switch {
	case limit != nil && (ctx.Err() == nil || tool.EndKind(ctx) == tool.Timeout):
		return *limit
	case ctx.Err() != nil:
		return contextError(ctx, "connecting")
	case budget.Err() != nil:
		return &tool.Error{
			Kind: tool.BackendUnavailable, Message: "could not connect in time: " + err.Error(),
			Hint: tool.HintOf(err), Retryable: true, Err: err,
		}
	default:
		return err
	}
}

func retryable(err error) bool {
	var e *tool.Error
	return errors.As(err, &e) && e.Retryable
}

// disconnected notes that a connect failed, for good or for now.
func (e *Environment) disconnected(w when, err error) error {
	if tool.KindOf(err) == tool.EnvironmentLost {
		e.mu.Lock()
		e.lost = err
		e.mu.Unlock()
		e.track.loseAll()
		e.events.Change(backends.StateFailed, err)
		return err
	}
	if errors.Is(err, backends.ErrStopped) {
		e.track.loseRunning()
	}
	if w == againConnect {
		e.events.Change(backends.StateDisconnected, err)
	}
	return err
}

// try makes one attempt: a stream, the handshake over it, what was missed, and
// the shared socket where there is one.
func (e *Environment) try(ctx context.Context, w when, b backends.Binding) (*connection, bool, error) {
	if w == againConnect {
		if err := e.host.Attach(ctx, b); err != nil {
			e.away.Store(&err)
			return nil, false, err
		}
		e.away.Store(nil)
	}
	stream, err := e.host.Dial(ctx, b)
	if err != nil {
		return nil, false, err
	}
	m := e.meet(stream.SharedDirectory)
	if m != nil {
		defer func() {
			if err := m.close(); err != nil {
				e.log.Debug("removing the shared socket", "error", err)
			}
		}()
	}
	c, in, err := e.handshake(ctx, stream, e.initialize(b, w, m))
	if b.Secrets.Environment != nil && environmentDiffers(err) {
		// The worker lives on with the variables as first given; one that was
		// rotated on the host since must not end the session.
		b.Secrets.Environment = nil
		if stream, err = e.host.Dial(ctx, b); err != nil {
			return nil, false, err
		}
		c, in, err = e.handshake(ctx, stream, e.initialize(b, w, m))
	}
	if err != nil {
		return nil, false, err
	}
	shared := false
	if better := e.upgrade(ctx, m, in, e.initialize(b, againConnect, nil)); better != nil {
		if err := c.Close(); err != nil {
			e.log.Debug("closing the baseline stream", "error", err)
		}
		c, shared = better, true
	}
	if err := e.ready(ctx, c, w); err != nil {
		return nil, false, errors.Join(err, c.Close())
	}
	e.info.Store(&in)
	return c, shared, nil
}

// ready does what comes before anybody uses a connection. One that is lost meanwhile
// leaves nothing unknown: all of it is done again over the next. When ctx ends the
// connection does too, and no terminal reply is waited for.
func (e *Environment) ready(ctx context.Context, c *connection, w when) error {
	stop := context.AfterFunc(ctx, func() {
		if err := c.Close(); err != nil {
			e.log.Debug("closing a connection that is out of time", "error", err)
		}
	})
	defer stop()
	err := e.addPacks(ctx, c)
	if err == nil {
		err = e.resync(ctx, c, w)
	}
	if tool.KindOf(err) != tool.OutcomeUnknown {
		return err
	}
	return &tool.Error{
		Kind: tool.BackendUnavailable, Message: "the connection was lost before it could be used: " + err.Error(),
		Hint: "try again; if it happens again, look at the worker's log", Retryable: true, Err: err,
	}
}

// initialize is the handshake's data, with where the worker may come over unless m is nil.
func (e *Environment) initialize(b backends.Binding, w when, m *meeting) wire.Initialize {
	in := wire.Initialize{
		Root: e.o.Root, Session: b.Session, Identity: b.Environment, Environment: b.Secrets.Environment,
		RequireExistingWorkspace: e.o.RequireExistingWorkspace || w == againConnect,
		RemoveWorkspaceOnExit:    e.o.RemoveWorkspaceOnExit,
	}
	if m != nil {
		in.Socket = &m.offer
	}
	return in
}

// handshake speaks initialize over a stream, which it closes when that fails.
func (e *Environment) handshake(ctx context.Context, stream Stream, data wire.Initialize) (*connection, wire.Initialized, error) {
	ctx, cancel := context.WithTimeout(ctx, e.o.HandshakeTimeout)
	defer cancel()
	c := &connection{stream: stream, Client: wire.NewClient(stream, wire.ClientOptions{
		Token: e.b.Secrets.Token, Mark: stream.Mark, Blocks: wire.Blocks(stream.ReadWriteCloser),
		OnEvent: e.event, OnCallback: invoke, CancelGrace: e.o.CancelGrace, Log: e.log,
	})}
	in, err := c.Initialize(ctx, data)
	if err == nil {
		err = e.unfit(c, in)
	}
	if err != nil {
		if tool.KindOf(err) == tool.Timeout {
			err = &tool.Error{
				Kind: tool.BackendUnavailable, Message: "the far end did not answer initialize in time",
				Hint: "see whether the program there is Caisson's worker, or an adapter of protocol 4", Retryable: true, Err: err,
			}
		}
		return nil, in, errors.Join(stream.told(err, true), c.Close())
	}
	c.root = in.Root
	return c, in, nil
}

// environmentDiffers reports whether a worker refused a binding because of its
// variables alone.
func environmentDiffers(err error) bool {
	var e *tool.Error
	return errors.As(err, &e) && e.Kind == tool.Denied && e.Path == "environment"
}

// unfit is the error for a peer that does not say where the workspace is, or is
// without a capability that is required.
func (e *Environment) unfit(c *connection, in wire.Initialized) error {
	if !path.IsAbs(in.Root) && !filepath.IsAbs(in.Root) {
		return tool.Errorf(tool.ProtocolMismatch, "the far end answered initialize with the root %q, which is not an absolute path", in.Root).
			WithHint("its answer is the path of the workspace, with symlinks resolved")
	}
	for _, capability := range e.o.Required {
		if !c.Has(capability) {
			return tool.Errorf(tool.Unsupported, "the far end lacks the capability %s", capability)
		}
	}
	return nil
}

// resync publishes what happened to processes while there was no connection. It
// takes place before anybody else uses the new one, so that its list cannot miss
// a process that somebody has just started.
func (e *Environment) resync(ctx context.Context, c *connection, w when) error {
	if !c.Has(wire.CapProcessStart) {
		return nil
	}
	records, err := listProcesses(ctx, c)
	if err != nil {
		return fmt.Errorf("listing the processes after connecting: %w", err)
	}
	for _, id := range e.track.sync(records, w == firstConnect) {
		e.settleOutput(c, id)
	}
	return nil
}

// event takes an event of a connection, on its reading goroutine.
func (e *Environment) event(event tool.ProcessEvent) {
	if e.track.live(event) {
		e.settleOutput(e.conn.Load(), event.Process.ID)
	}
}

// settleOutput has the output of a process that ended watched, where the peer
// does not say itself when it is complete.
func (e *Environment) settleOutput(c *connection, id string) {
	if c != nil && !c.Has(wire.CapProcess) {
		e.settle.watch(id)
	}
}

// adopt makes c the connection, and watches it end.
func (e *Environment) adopt(c *connection) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.detached {
		return errors.Join(backends.ErrDetached(), c.Close())
	}
	c.since = time.Now()
	e.conn.Store(c)
	e.events.Change(backends.StateReady, nil)
	e.goroutines.Go(func() {
		<-c.Done()
		e.conn.CompareAndSwap(c, nil)
		reason := c.told(c.Err())
		if err := c.Close(); err != nil {
			e.log.Debug("closing a lost connection", "error", err)
		}
		if e.life.Err() != nil {
			return
		}
		e.log.Info("the connection was lost", "error", reason)
		e.events.Change(backends.StateDisconnected, reason)
		e.mu.Lock()
		c.over = true
		owed := c.owed
		e.shortLived(c)
		e.mu.Unlock()
		if owed || e.track.running() {
			e.reconnectAlone()
		}
	})
	return nil
}

// unanswered has a connection that ended under a call made anew, when its end has been
// told: if the worker has died, what the call has started runs on until there is another.
func (e *Environment) unanswered(c *connection) {
	e.mu.Lock()
	c.owed = true
	over := c.over
	e.mu.Unlock()
	if over {
		e.reconnectAlone()
	}
}

// reconnectAlone is reconnect for nobody who waits.
func (e *Environment) reconnectAlone() {
	if _, err := e.reconnect(false); err != nil {
		e.log.Debug("not connecting again", "error", err)
	}
}
