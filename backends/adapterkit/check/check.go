// Package check drives the worker protocol, clause by clause, against a program
// that should speak it: for authors of adapters, who learn what their program does
// not keep to and see the frames that prove it. It trusts nothing of what it starts
// but its exit: every wait has a limit, and what an adapter leaves running is found,
// reported and ended.
package check

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends/program"
)

// The limits of a check where [Options] name none.
const (
	// DefaultPatience is how long a reply may take.
	DefaultPatience = 10 * time.Second
	// DefaultEnding is how long an adapter may take from the end of its input to
	// its exit; the protocol's budget for one.
	DefaultEnding = 60 * time.Second
	// DefaultParallel is how many adapters run at once.
	DefaultParallel = 4
)

// Options say what to check.
type Options struct {
	// Command is the program and its arguments: an absolute path, or a name that is
	// looked up in PATH.
	Command []string
	// Clauses are the names of those to drive; empty means all.
	Clauses []string
	// Patience, Ending and Parallel are as the constants; 0 means those.
	Patience, Ending time.Duration
	Parallel         int
	// Progress, unless it is nil, is told once that the adapter takes its time to
	// answer at all.
	Progress func(string)

	// start starts the command; nil is startProgram.
	start func(program.Options) (started, error)
}

// variableMark is the variable of commands that has the marker: it is in what they
// start, too.
const variableMark = "CAISSON_CHECK_MARK"

// Verdict says how an adapter stands to one clause.
type Verdict string

// The verdicts.
const (
	Kept   Verdict = "kept"
	Broken Verdict = "broken"
	// NotOffered is a clause about what the adapter neither announces nor answers.
	NotOffered Verdict = "not offered"
	// NotDriven is a clause that could not be tried, because another one is broken.
	NotDriven Verdict = "not driven"
)

// Clause is one rule of the protocol.
type Clause struct {
	Name string `json:"name"`
	// Section is that of the protocol's document.
	Section string `json:"section"`
	// Says is the rule in a few words.
	Says string `json:"says"`
}

// Result is what came of one clause.
type Result struct {
	Clause
	Verdict Verdict `json:"verdict"`
	// Detail says what was expected and what came, or why the clause does not
	// apply or was not driven.
	Detail string `json:"detail,omitempty"`
	// Frames are those exchanged for a broken clause, "→" to the adapter and "←"
	// from it, without the token and the values of variables.
	Frames []string `json:"frames,omitempty"`
	// Stderr is the end of what the adapter said there, for a broken clause.
	Stderr string `json:"stderr,omitempty"`
}

// Report is the outcome of a check.
type Report struct {
	Command      []string `json:"command"`
	Capabilities []string `json:"capabilities"`
	// Mode is the permission mode that commands were run in; empty when the adapter
	// runs none.
	Mode    string   `json:"mode,omitempty"`
	Results []Result `json:"results"`
	// Left are processes that the adapter left running, which were ended.
	Left []string `json:"left,omitempty"`
}

// Count is how many results have the verdict.
func (r Report) Count(v Verdict) (n int) {
	for _, result := range r.Results {
		if result.Verdict == v {
			n++
		}
	}
	return n
}

// ErrNoClause is what a choice of clauses fails with that has one that there is not.
var ErrNoClause = errors.New("there is no clause")

// Clauses are all clauses, in the order of the protocol's document.
func Clauses() []Clause {
	var list []Clause
	for _, c := range clauses() {
		list = append(list, c.Clause)
	}
	return list
}

// Run drives the clauses. It fails when there is nothing to check: no such clause,
// no such program, or one that does not even answer a good initialize. What an
// adapter does wrong is in the report.
func Run(ctx context.Context, o Options) (Report, error) {
	chosen, err := choose(o.Clauses)
	if err != nil {
		return Report{}, err
	}
	if len(o.Command) == 0 {
		return Report{}, errors.New("no command to check")
	}
	dir, err := os.MkdirTemp("", "caisson-check-")
	if err != nil {
		return Report{}, err
	}
	r := &run{Options: withDefaults(o), dir: dir, marker: "caisson-check-" + strings.ToLower(rand.Text())}
	report, err := r.all(ctx, chosen)
	report.Left = endLeft(r.marker)
	return report, errors.Join(err, os.RemoveAll(dir))
}

func withDefaults(o Options) Options {
	if o.Patience <= 0 {
		o.Patience = DefaultPatience
	}
	if o.Ending <= 0 {
		o.Ending = DefaultEnding
	}
	if o.Parallel <= 0 {
		o.Parallel = DefaultParallel
	}
	if o.start == nil {
		o.start = startProgram
	}
	return o
}

func choose(names []string) ([]clause, error) {
	all := clauses()
	for _, name := range names {
		if !slices.ContainsFunc(all, func(c clause) bool { return c.Name == name }) {
			return nil, fmt.Errorf("%w %q", ErrNoClause, name)
		}
	}
	if len(names) > 0 {
		all = slices.DeleteFunc(all, func(c clause) bool { return !slices.Contains(names, c.Name) })
	}
	return all, nil
}

// run is one check.
type run struct {
	Options
	dir string
	// marker stands in every command that runs, so that what is left of them is
	// found.
	marker string
	known  knowledge
	// driven has, for each clause of this check, what is closed when it was driven.
	driven map[string]chan struct{}

	late sync.Once // for Progress

	mu sync.Mutex
	// noted are breaches that showed while another clause was driven.
	noted map[string]Result
	// failed has, for each clause that is broken or could not be driven, the one that is
	// broken.
	failed map[string]string
}

// knowledge is what the first connection found out for all clauses.
type knowledge struct {
	capabilities []string
	// local says that the adapter's files are those of this machine.
	local bool
	// mode is what commands run in, empty when none do.
	mode string
}

// all drives the clauses: those that can share a connection one after the other on
// one, the others beside them on their own.
func (r *run) all(ctx context.Context, chosen []clause) (Report, error) {
	first, err := r.acquaint(ctx)
	if err != nil {
		return Report{}, err
	}
	r.driven, r.failed = make(map[string]chan struct{}), make(map[string]string)
	for _, c := range chosen {
		r.driven[c.Name] = make(chan struct{})
	}
	report := Report{Command: r.Command, Capabilities: r.known.capabilities, Mode: r.known.mode, Results: make([]Result, len(chosen))}
	slots := make(chan struct{}, r.Parallel)
	var wg sync.WaitGroup
	wg.Go(func() {
		slots <- struct{}{}
		defer func() { <-slots }()
		shared := first
		for i, c := range chosen {
			if c.alone {
				continue
			}
			if shared == nil || shared.unusable() {
				shared.close()
				shared = r.connected(ctx)
			}
			report.Results[i] = r.drive(ctx, c, shared)
		}
		shared.close()
	})
	for i, c := range chosen {
		if !c.alone {
			continue
		}
		wg.Go(func() {
			r.await(ctx, c.after) // without a place, which those may wait for
			slots <- struct{}{}
			defer func() { <-slots }()
			report.Results[i] = r.drive(ctx, c, nil)
		})
	}
	wg.Wait()
	for i, result := range report.Results {
		if noted, ok := r.noted[result.Name]; ok && result.Verdict != Broken {
			noted.Clause = result.Clause
			report.Results[i] = noted
		}
	}
	return report, ctx.Err()
}

// acquaint makes the first connection and learns what the others need to know.
func (r *run) acquaint(ctx context.Context) (*peer, error) {
	var p *peer
	trouble := "no adapter"
	t := &trial{run: r, ctx: ctx, clause: clause{Clause: Clause{Name: "initialize"}}}
	v := t.judge(func() {
		p = t.open()
		r.known.capabilities = t.initialize(p).Capabilities
		trouble = "an adapter that answers initialize and nothing after it"
		t.peer = p
		r.known.local = p.rootIsHere()
		for _, mode := range []string{"standard", "unconfined"} {
			if t.execute("bash", args{"command": "true"}, mode).refused == "" {
				r.known.mode = mode
				return
			}
		}
	})
	if v.Verdict == Broken {
		for _, p := range t.own {
			p.wedged.Store(true)
			p.close()
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%s: %s%s", trouble, v.Detail, v.proof())
	}
	return p, nil
}

// slowly tells that an adapter has said nothing yet.
func (r *run) slowly(method string, patience time.Duration) {
	if r.Progress == nil {
		return
	}
	r.late.Do(func() {
		r.Progress(fmt.Sprintf("no reply to %s after %v; the first one may take %v", method, noticing, patience))
	})
}

// connected is a new connection for the clauses that share one.
func (r *run) connected(ctx context.Context) *peer {
	var p *peer
	t := &trial{run: r, ctx: ctx}
	t.judge(func() {
		p = t.open()
		t.initialize(p)
	})
	return p
}

// await waits until clauses were driven, as far as they are to be.
func (r *run) await(ctx context.Context, names []string) {
	for _, name := range names {
		if driven := r.driven[name]; driven != nil {
			select {
			case <-driven:
			case <-ctx.Done():
			}
		}
	}
}

// obstacle is the broken clause because of which one that needs these cannot be driven, or "".
func (r *run) obstacle(names []string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range names {
		if _, noted := r.noted[name]; noted {
			return name
		}
		if broken := r.failed[name]; broken != "" {
			return broken
		}
	}
	return ""
}

// drive drives one clause, on the shared connection or on its own.
func (r *run) drive(ctx context.Context, c clause, shared *peer) (result Result) {
	t := &trial{run: r, ctx: ctx, clause: c, peer: shared}
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		switch result.Verdict {
		case Broken:
			r.failed[c.Name] = c.Name
		case NotDriven:
			r.failed[c.Name] = t.broke
		}
		close(r.driven[c.Name])
	}()
	if shared != nil {
		shared.begin(t)
	}
	result = t.judge(func() {
		if name := r.obstacle(c.after); name != "" {
			t.notDriven(name)
		}
		if shared == nil && !c.bare {
			t.peer = t.open()
			t.initialize(t.peer)
		}
		c.drive(t)
	})
	for _, p := range t.own {
		p.close()
	}
	return result
}

// lettingGo is how long an adapter's streams are watched after its exit: not at all once it
// is known that it does not let go of them, which would cost that time for each.
func (r *run) lettingGo() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.noted[clauseStreams]; known {
		return 0
	}
	return lettingGo
}

// note keeps a breach of another clause than the one that is driven.
func (r *run) note(name, detail string, p *peer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.noted == nil {
		r.noted = make(map[string]Result)
	}
	if _, ok := r.noted[name]; !ok {
		r.noted[name] = Result{Verdict: Broken, Detail: detail, Frames: p.shown(), Stderr: p.said()}
	}
}
