package wire

import (
	"context"
	"time"
)

// One goroutine at a time reads a connection. Mostly that is the client's own, which
// wakes whoever waits for a reply. A caller whose reply is expected at once reads it
// itself: to be woken for it takes longer than a small read. Between such calls, which
// come one behind the other, nobody reads, for restTime at most; then the client's own
// goroutine does again, for the events and the end of the connection.

// turn is whose turn it is to read. It is guarded by Client.mu, but for own.
type turn struct {
	taken  bool // somebody reads
	prompt bool // the call that was finished last was
	// own has an element when the client's own goroutine should see whether to read.
	own chan struct{}
	// rest is not set and stopped for each call, which would cost more than it saves:
	// once set it runs on until there was none.
	rest    *time.Timer
	time    time.Duration // that rest is set to
	resting bool          // rest is set
	turns   uint64        // that have ended
	rested  uint64        // turns when rest was set
}

func (t *turn) init(over func()) {
	t.own = make(chan struct{}, 1)
	t.own <- struct{}{}
	t.time = restTime
	t.rest = time.AfterFunc(time.Hour, over)
	t.rest.Stop()
}

// readInTurns is the client's own goroutine. It ends after the connection, and after
// the last caller that reads.
func (c *Client) readInTurns() {
	for range c.turn.own {
		c.mu.Lock()
		reads, ended := !c.turn.taken, c.err != nil
		if reads && !ended {
			c.turn.taken, c.turn.prompt = true, false
		}
		c.mu.Unlock()
		switch {
		case !reads: // the end of that turn asks again
		case ended:
			return
		default:
			if err := c.read(); err != nil {
				c.fail(err)
			}
			c.endTurn()
		}
	}
}

// takeTurn reports whether the caller is the one who reads now, since nobody did.
func (c *Client) takeTurn() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.turn.taken
	c.turn.taken = true
	return !taken
}

// endTurn ends the turn of whoever reads.
func (c *Client) endTurn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &c.turn
	t.taken = false // for the others when c.mu is free again
	t.turns++
	switch {
	case c.err != nil || len(c.calls) > 0 || c.reader.buffered():
		wake(t.own)
	case !t.resting:
		t.resting, t.rested = true, t.turns
		t.rest.Reset(t.time)
	}
}

// mayRest reports to the client's own goroutine, which reads, whether the next one to
// read is likely to be a caller.
func (c *Client) mayRest() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.turn.prompt && len(c.calls) == 0
}

// restOver has the client's own goroutine read, unless there were calls meanwhile.
func (c *Client) restOver() {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &c.turn
	switch {
	case t.taken || c.err != nil: // the end of the turn sees to it
		t.resting = false
	case t.turns != t.rested:
		t.rested = t.turns
		t.rest.Reset(t.time)
	default:
		t.resting = false
		wake(t.own)
	}
}

// readFor reads until call is finished, in the caller's turn. When ctx ends before,
// giveUp sees to it that call is finished soon, which readFor reports.
func (c *Client) readFor(ctx context.Context, id string, call *call) (gaveUp bool) {
	given := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(given)
		c.giveUp(ctx, id, call)
	})
	for finished := false; !finished; {
		select {
		case <-call.done:
			finished = true
		default:
			if err := c.readOne(); err != nil {
				c.fail(err)
			}
		}
	}
	c.endTurn()
	if stop() {
		return false
	}
	<-given
	return true
}
