package remote

import (
	"context"
	"errors"
	"sync"
	"time"
)

// deadlines end the contexts of requests in time, by one timer that is set for the
// earliest of them. Setting a timer for each wakes a thread, and nearly every request is
// over long before its limit; so the timer is left to run on when its request is over. The
// zero value is ready for use.
type deadlines struct {
	mu    sync.Mutex
	timer *time.Timer
	due   time.Time // when the timer fires; zero when it does not
	all   map[*deadline]struct{}
}

// deadline is the context of one request.
type deadline struct {
	context.Context
	at     time.Time
	cancel context.CancelCauseFunc
}

// within is [context.WithTimeout] with the timer of d.
func (d *deadlines) within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	c := &deadline{at: time.Now().Add(limit)}
	c.Context, c.cancel = context.WithCancelCause(ctx)
	if earlier, ok := ctx.Deadline(); ok && !earlier.After(c.at) {
		return c.Context, func() { c.cancel(nil) }
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all == nil {
		d.all = make(map[*deadline]struct{})
	}
	d.all[c] = struct{}{}
	if d.due.IsZero() || c.at.Before(d.due) {
		d.setLocked(c.at)
	}
	return c, func() {
		d.mu.Lock()
		delete(d.all, c)
		d.mu.Unlock()
		c.cancel(nil)
	}
}

// setLocked has expire called at a time.
func (d *deadlines) setLocked(at time.Time) {
	d.due = at
	if d.timer == nil {
		d.timer = time.AfterFunc(time.Until(at), d.expire)
		return
	}
	d.timer.Reset(time.Until(at))
}

// expire ends what is out of time, and sets the timer for the next.
func (d *deadlines) expire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	var next time.Time
	for c := range d.all {
		switch {
		case !c.at.After(now):
			delete(d.all, c)
			c.cancel(context.DeadlineExceeded)
		case next.IsZero() || c.at.Before(next):
			next = c.at
		}
	}
	d.due = time.Time{}
	if !next.IsZero() {
		d.setLocked(next)
	}
}

// Deadline implements [context.Context].
func (c *deadline) Deadline() (time.Time, bool) { return c.at, true }

// Err implements [context.Context].
func (c *deadline) Err() error {
	err := c.Context.Err()
	if err != nil && errors.Is(context.Cause(c.Context), context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return err
}
