package remote

import "time"

// restFor waits before a connect that nobody waits for, until somebody does.
func (e *Environment) restFor(rest time.Duration, hurry <-chan struct{}) {
	if rest <= 0 {
		return
	}
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-hurry:
	case <-e.life.Done():
	}
}

// shortLived notes how long a connection has lasted that ended. Those that end again and
// again as soon as they are made are not made again at once for nobody. e.mu is held.
func (e *Environment) shortLived(c *connection) {
	switch {
	case time.Since(c.since) >= steady:
		e.rest, e.short = 0, false
	case e.short: // the one before was, too
		e.rest = min(max(2*e.rest, firstBackoff), maxRest)
	default:
		e.short = true
	}
}
