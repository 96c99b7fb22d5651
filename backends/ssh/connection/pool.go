package connection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// Pool shares connections: whoever wants the same route gets the same one. All
// its methods may be called at once.
type Pool struct {
	o   Options
	log *slog.Logger
	// every and timeout are aliveEvery and aliveTimeout.
	every, timeout time.Duration
	// pauses are hangUpPauses.
	pauses []time.Duration
	// life ends with the pool; work is everything that goes on in it.
	life context.Context
	stop context.CancelFunc
	work sync.WaitGroup

	mu     sync.Mutex
	closed bool
	shared map[string]*shared
	own    map[*link]struct{}
}

// shared is what a pool has for one route.
type shared struct {
	link    *link
	refs    int
	idle    *time.Timer
	attempt *attempt
	// failures is how many attempts in a row have failed, and next when another
	// one may be made.
	failures int
	next     time.Time
	// soonest is when one may be made for somebody who has just come.
	soonest time.Time
}

// attempt is a dial that somebody began and everybody waits for.
type attempt struct {
	done chan struct{} // closed when err is set
	err  error
	// hurried is closed, once, when it is not to wait for a long pause to be over.
	hurried chan struct{}
	once    sync.Once
}

func (a *attempt) hurry() { a.once.Do(func() { close(a.hurried) }) }

// NewPool returns a pool without connections. It must be closed.
func NewPool(o Options) *Pool {
	p := &Pool{o: o, log: o.Log, every: aliveEvery, timeout: aliveTimeout, pauses: hangUpPauses(), shared: make(map[string]*shared), own: make(map[*link]struct{})}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	p.life, p.stop = context.WithCancel(context.Background())
	return p
}

// errPoolClosed is what is left to say after Close.
func errPoolClosed() error {
	return tool.Errorf(tool.Cancelled, "the service is ending")
}

// Dial returns a connection over r: a reference to the one that is open, or a
// new one. A route that could not be followed just now is tried again only
// after a pause, for which Dial waits, the shortest one when ctx's
// [backends.Hurry] is closed; one that was refused for its keys is tried at once.
// Errors are *tool.Error of kind backendUnavailable (Retryable
// unless they are about keys, authentication or the configuration),
// configInvalid, unsupported, or cancelled. The connection must be closed.
func (p *Pool) Dial(ctx context.Context, r *Route, progress backends.Progress) (*Conn, error) {
	for {
		c, a, err := p.join(r, progress)
		if c != nil || err != nil {
			return c, err
		}
		if err := a.await(ctx, r); err != nil {
			return nil, err
		}
	}
}

// await waits for the end of the attempt.
func (a *attempt) await(ctx context.Context, r *Route) error {
	hurry := backends.Hurry(ctx)
	for {
		select {
		case <-a.done:
			return a.err
		case <-hurry:
			a.hurry()
			hurry = nil
		case <-ctx.Done():
			return contextError(ctx, "connecting to "+r.String())
		}
	}
}

// join returns a reference to an open connection, or the attempt to make one,
// which it begins if need be.
func (p *Pool) join(r *Route, progress backends.Progress) (*Conn, *attempt, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, errPoolClosed()
	}
	s := p.shared[r.key]
	if s == nil {
		s = new(shared)
		p.shared[r.key] = s
	}
	if s.link != nil && !s.link.alive() {
		p.discard(s)
	}
	if s.link != nil {
		s.refs++
		if s.idle != nil {
			s.idle.Stop()
			s.idle = nil
		}
		return newConn(p, s.link), nil, nil
	}
	if s.attempt == nil {
		a := &attempt{done: make(chan struct{}), hurried: make(chan struct{})}
		s.attempt = a
		p.work.Go(func() { p.try(r, s, a, progress) })
	}
	return nil, s.attempt, nil
}

// discard forgets a link that has ended; what remains of it goes on its own.
func (p *Pool) discard(s *shared) {
	l := s.link
	s.link, s.refs = nil, 0
	if s.idle != nil {
		s.idle.Stop()
		s.idle = nil
	}
	p.work.Go(l.close)
}

// try makes one attempt, for whoever waits.
func (p *Pool) try(r *Route, s *shared, a *attempt, progress backends.Progress) {
	l, err := p.pausedDial(r, s, a, progress)
	p.mu.Lock()
	defer p.mu.Unlock()
	s.attempt = nil
	a.err = err
	var known *tool.Error
	switch {
	case err == nil:
		s.failures, s.next, s.soonest = 0, time.Time{}, time.Time{}
		s.link = l
		// It is kept for whoever waits, and not for ever if they have gone.
		p.idle(s)
	case errors.As(err, &known) && known.Retryable:
		pause := min(maxPause, firstPause<<min(s.failures, 16))
		s.failures++
		// The random part keeps many services apart.
		now := time.Now()
		s.next, s.soonest = now.Add(pause/2+rand.N(pause/2)), now.Add(firstPause/2)
	default:
		s.failures, s.next, s.soonest = 0, time.Time{}, time.Time{}
	}
	close(a.done)
}

// pausedDial waits for as long as the failures before ask for, and dials.
func (p *Pool) pausedDial(r *Route, s *shared, a *attempt, progress backends.Progress) (*link, error) {
	p.mu.Lock()
	wait, soonest := time.Until(s.next), s.soonest
	p.mu.Unlock()
	hurried := a.hurried
	select {
	case <-hurried:
		wait, hurried = time.Until(soonest), nil
	default:
	}
	if wait > time.Second {
		progress.Report(fmt.Sprintf("%s could not be reached: trying again in %s", r, wait.Round(time.Second)))
	}
	pause := time.NewTimer(max(wait, 0))
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
			return p.dial(p.life, r, progress)
		case <-hurried:
			hurried = nil
			pause.Reset(max(time.Until(soonest), 0))
		case <-p.life.Done():
			return nil, errPoolClosed()
		}
	}
}

// idle has a link that nobody refers to closed after a while. The pool is
// locked.
func (p *Pool) idle(s *shared) {
	l := s.link
	s.idle = time.AfterFunc(linger, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if s.link == l && s.refs == 0 && !p.closed {
			p.discard(s)
		}
	})
}

// release gives one reference to a shared link back.
func (p *Pool) release(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.shared[l.route.key]
	if p.closed || s == nil || s.link != l {
		return // it was discarded
	}
	if s.refs--; s.refs == 0 {
		p.idle(s)
	}
}

// dialOwn makes a connection that is not shared.
func (p *Pool) dialOwn(ctx context.Context, r *Route) (*link, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.life, cancel)()
	l, err := p.dial(ctx, r, nil)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		p.work.Go(l.close)
		return nil, errPoolClosed()
	}
	p.own[l] = struct{}{}
	return l, nil
}

// drop closes a link of dialOwn's; it does not wait.
func (p *Pool) drop(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.own[l]; ok && !p.closed {
		delete(p.own, l)
		p.work.Go(l.close)
	}
}

// Close ends all connections, referred to or not, and waits for all that
// belongs to them.
func (p *Pool) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		p.work.Wait()
		return nil
	}
	p.closed = true
	p.stop()
	var links []io.Closer
	for _, s := range p.shared {
		if s.idle != nil {
			s.idle.Stop()
		}
		if s.link != nil {
			links = append(links, linkCloser{s.link})
		}
	}
	for l := range p.own {
		links = append(links, linkCloser{l})
	}
	p.mu.Unlock()
	for _, l := range links {
		l.Close()
	}
	p.work.Wait()
	// An attempt may have succeeded after all.
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.shared {
		if s.idle != nil {
			s.idle.Stop()
		}
		if s.link != nil {
			s.link.close()
		}
	}
	return nil
}

type linkCloser struct{ *link }

func (l linkCloser) Close() error {
	l.close()
	return nil
}
