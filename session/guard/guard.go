// Package guard decides what may run at all: rules over tools and over the
// commands of parsed shell lines, how many calls there may be in a time and in a
// session, and what a person is asked about. It runs nothing and reads no files,
// and knows no environment: what a rule allows, the environment may still refuse.
//
// What the guard sees is what is asked for, not what it does: a program's own
// doings are the environment's to confine.
package guard

import (
	"context"
	"encoding/json"
	"path"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// Action is what a rule does with the calls that it matches.
type Action string

// The actions, from the mildest to the strictest.
const (
	Allow   Action = "allow"
	Confirm Action = "confirm"
	Deny    Action = "deny"
)

// Policy is one set of rules and limits, as one file writes them. It is saved as
// JSON with its session.
type Policy struct {
	// Source says in messages where it is written.
	Source string `json:"source"`
	// Rules are tried in order; the first that matches decides, none allows.
	Rules  []Rule `json:"rules,omitempty"`
	Rate   Rate   `json:"rate,omitzero"`
	Budget Budget `json:"budget,omitzero"`
	// ConfirmTimeout is how long a person has to answer; 0 means [DefaultConfirmTimeout].
	ConfirmTimeout time.Duration `json:"confirm_timeout,omitempty"`
}

// Rule decides about the calls that it matches.
type Rule struct {
	// Tools are globs over "group.tool".
	Tools []string `json:"tools"`
	// Match are globs over arguments by name, all of which must match. That of
	// "command" is a pattern of commands.
	Match map[string]string `json:"match,omitempty"`
	// Actors are kinds of actors; empty means all.
	Actors []tool.ActorKind `json:"actors,omitempty"`
	Action Action           `json:"action"`
	// Reason is what whoever confirms or is denied is told, or "".
	Reason string `json:"reason,omitempty"`
}

// Rate is how many calls there may be in a time; its zero value means any number.
type Rate struct {
	CallsPerMinute int `json:"calls_per_minute,omitempty"`
	Burst          int `json:"burst,omitempty"`
}

// Budget is how much a session may use in all; zero members mean any amount.
type Budget struct {
	MaxCalls       int64         `json:"max_calls,omitempty"`
	MaxRuntime     time.Duration `json:"max_runtime,omitempty"`
	MaxOutputBytes int64         `json:"max_output_bytes,omitempty"`
}

// Usage is what a session has used of its budgets.
type Usage struct {
	Calls       int64         `json:"calls"`
	Runtime     time.Duration `json:"runtime"`
	OutputBytes int64         `json:"output_bytes"`
}

// Level is what is left of one policy's rate.
type Level struct {
	// Calls is how many calls could be made at once at the time At; that is zero where
	// there is no rate.
	Calls float64   `json:"calls"`
	At    time.Time `json:"at"`
}

// Call is what asks to be admitted.
type Call struct {
	// ID is the call's, for the question.
	ID string
	// Tool is its name as rules have it: "shell.bash", "process.start", "shell.job".
	Tool string
	// Also are names under which rules refuse and ask about it too, and allow
	// nothing: those of what it does as well, or stands in for.
	Also  []string
	Actor tool.ActorKind // "" is the main agent
	Mode  tool.Mode      // what the call asks for; "" is the profile's
	// Arguments is one JSON object, or empty. Its members command (a shell line),
	// argv, script and env are what is run, and cwd is where.
	Arguments json.RawMessage
	// Dir is the directory that relative paths start from, "" when it is not known.
	Dir string
	// Names are other absolute paths of Dir, such as that of a link to it by which the
	// workspace was opened.
	Names []string
	// Files are what the call brings along, by path: code that it runs from them is
	// known.
	Files map[string][]byte
}

// directories are all names of the directory that relative paths start from, clean.
func (c Call) directories() (all []string) {
	for _, dir := range append([]string{c.Dir}, c.Names...) {
		if dir != "" {
			all = append(all, path.Clean(dir))
		}
	}
	return all
}

// Question is what a person is asked.
type Question struct {
	Call Call
	// Reason says why there is a question, in one sentence.
	Reason string
}

// Answer is the person's.
type Answer struct {
	Allow bool
	// Remember gives the same answer to the same call for the rest of the session.
	Remember bool
}

// Ask asks a person and waits for the answer. Its error means no; the context is
// over when nobody waits for the answer any more.
type Ask func(ctx context.Context, q Question) (Answer, error)

// Options is what a Guard works with.
type Options struct {
	// Policies must all admit a call.
	Policies []Policy
	// Used is what the session has used already.
	Used Usage
	// Levels is what was left of the rates, in the order of the policies; one that is
	// missing is full.
	Levels []Level
	// Now is the clock; nil is [time.Now].
	Now func() time.Time
}

// Guard admits the calls of one session. Its methods may be called concurrently.
type Guard struct {
	policies []policy
	timeout  time.Duration // for a person's answer
	now      func() time.Time
	asking   questions

	mu      sync.Mutex
	used    Usage
	running map[*Ticket]time.Time // when it began
}

// New makes a guard. A rule that cannot be understood is [tool.ConfigInvalid].
func New(o Options) (*Guard, error) {
	g := &Guard{now: o.Now, used: o.Used, running: map[*Ticket]time.Time{}}
	if g.now == nil {
		g.now = time.Now
	}
	for i, p := range o.Policies {
		compiled, err := compile(p)
		if err != nil {
			return nil, err
		}
		var left Level
		if i < len(o.Levels) {
			left = o.Levels[i]
		}
		compiled.bucket = newBucket(p.Rate, left, g.now())
		g.policies = append(g.policies, compiled)
		timeout := p.ConfirmTimeout
		if timeout <= 0 {
			timeout = DefaultConfirmTimeout
		}
		if g.timeout == 0 || timeout < g.timeout {
			g.timeout = timeout
		}
	}
	g.asking.init()
	return g, nil
}

// Ticket is a call that was admitted.
type Ticket struct{ guard *Guard }

// Admit decides about a call: rules, rate, budgets, and last the question to a
// person, which ask puts; nil is a client that cannot ask. The error is
// [tool.Denied], [tool.RateLimited] or [tool.BudgetExhausted], and
// that of [tool.EndKind] when ctx ended before there was an answer. The ticket of
// a call that was admitted is given back with [Ticket.Done].
func (g *Guard) Admit(ctx context.Context, c Call, ask Ask) (*Ticket, error) {
	verdicts, err := g.judge(c)
	if err != nil {
		return nil, err
	}
	if err := g.takeRate(); err != nil {
		return nil, err
	}
	g.mu.Lock()
	err = g.overBudget()
	g.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if len(verdicts) > 0 {
		if err := g.confirm(ctx, c, verdicts, ask); err != nil {
			return nil, err
		}
	}
	return g.enter()
}

// judge has every policy judge the call. It returns the verdicts that want a
// confirmation.
func (g *Guard) judge(c Call) ([]verdict, error) {
	s := &subject{call: c}
	var asked []verdict
	for _, p := range g.policies {
		v := p.judge(s)
		switch v.action {
		case Deny:
			return nil, v.refusal(c)
		case Confirm:
			asked = append(asked, v)
		}
	}
	return asked, nil
}
