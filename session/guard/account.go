package guard

import (
	"fmt"
	"math"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// bucket holds the calls that may be made at once: it fills steadily up to its
// burst.
type bucket struct {
	perSecond float64
	burst     float64
	tokens    float64
	at        time.Time
}

// newBucket is full, or as full as it was left.
func newBucket(r Rate, left Level, now time.Time) *bucket {
	if r.CallsPerMinute <= 0 {
		return nil
	}
	burst := float64(r.Burst)
	if burst <= 0 {
		burst = float64(r.CallsPerMinute)
	}
	b := &bucket{perSecond: float64(r.CallsPerMinute) / 60, burst: burst, tokens: burst, at: now}
	if !left.At.IsZero() {
		b.tokens, b.at = min(burst, left.Calls), left.At
	}
	return b
}

// wait fills the bucket up to now and says how long it takes until there is a
// token; 0 when there is one.
func (b *bucket) wait(now time.Time) time.Duration {
	if passed := now.Sub(b.at).Seconds(); passed > 0 {
		b.tokens = min(b.burst, b.tokens+passed*b.perSecond)
	}
	b.at = now
	if b.tokens >= 1 {
		return 0
	}
	return time.Duration((1 - b.tokens) / b.perSecond * float64(time.Second))
}

// takeRate takes one call from every rate, or from none.
func (g *Guard) takeRate() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	var (
		longest time.Duration
		by      *policy
	)
	for i := range g.policies {
		p := &g.policies[i]
		if p.bucket == nil {
			continue
		}
		if wait := p.bucket.wait(now); wait > longest {
			longest, by = wait, p
		}
	}
	if by != nil {
		seconds := int64(math.Ceil(longest.Seconds()))
		err := tool.Errorf(tool.RateLimited, "%s allows %d calls a minute in a session, and they are used: retry after %d s", by.where("guard.rate"), by.Rate.CallsPerMinute, seconds).
			WithHint("Wait %d seconds, then make the same call again; fewer and larger calls get further.", seconds).WithPath("guard.rate")
		err.Retryable = true
		return err
	}
	for _, p := range g.policies {
		if p.bucket != nil {
			p.bucket.tokens--
		}
	}
	return nil
}

// overBudget says which budget is used up; nil when none is. What calls that run
// have taken until now counts. The caller holds mu.
func (g *Guard) overBudget() error {
	runtime := g.runtime()
	for i := range g.policies {
		p := &g.policies[i]
		var what string
		switch b := p.Budget; {
		case b.MaxCalls > 0 && g.used.Calls >= b.MaxCalls:
			what = fmt.Sprintf("%d calls", b.MaxCalls)
		case b.MaxRuntime > 0 && runtime >= b.MaxRuntime:
			what = fmt.Sprintf("%v of running time", b.MaxRuntime)
		case b.MaxOutputBytes > 0 && g.used.OutputBytes >= b.MaxOutputBytes:
			what = fmt.Sprintf("%d bytes of output", b.MaxOutputBytes)
		default:
			continue
		}
		return tool.Errorf(tool.BudgetExhausted, "the session has used all that %s gives it: %s", p.where("guard.budget"), what).
			WithHint("No call of this session runs any more. Tell the user what is done and what is left; a new session has a budget of its own.").WithPath("guard.budget")
	}
	return nil
}

// runtime is the time that calls have taken. The caller holds mu.
func (g *Guard) runtime() time.Duration {
	now, all := g.now(), g.used.Runtime
	for _, since := range g.running {
		all += max(0, now.Sub(since))
	}
	return all
}

// enter counts a call in, unless a budget was used up while it waited.
func (g *Guard) enter() (*Ticket, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.overBudget(); err != nil {
		return nil, err
	}
	g.used.Calls++
	t := &Ticket{guard: g}
	g.running[t] = g.now()
	return t, nil
}

// Done counts what the call took. Only the first one counts.
func (t *Ticket) Done(outputBytes int64) {
	g := t.guard
	g.mu.Lock()
	defer g.mu.Unlock()
	since, ok := g.running[t]
	if !ok {
		return
	}
	delete(g.running, t)
	g.used.Runtime += max(0, g.now().Sub(since))
	g.used.OutputBytes += max(0, outputBytes)
}

// Used is what the session has used, calls that run included.
func (g *Guard) Used() Usage {
	g.mu.Lock()
	defer g.mu.Unlock()
	u := g.used
	u.Runtime = g.runtime()
	return u
}

// Levels is what is left of the rates, for [Options] of a guard that goes on from here.
func (g *Guard) Levels() []Level {
	g.mu.Lock()
	defer g.mu.Unlock()
	levels := make([]Level, len(g.policies))
	for i, p := range g.policies {
		if p.bucket != nil {
			levels[i] = Level{Calls: p.bucket.tokens, At: p.bucket.at}
		}
	}
	return levels
}

// Limited reports whether a policy has a rate or a budget, so that what is used has to
// be kept with the session.
func (g *Guard) Limited() bool {
	for _, p := range g.policies {
		if p.bucket != nil || p.Budget != (Budget{}) {
			return true
		}
	}
	return false
}
