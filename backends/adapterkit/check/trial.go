package check

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// clause is a rule and how it is driven.
type clause struct {
	Clause
	drive func(t *trial)
	// after are clauses without which it cannot be driven.
	after []string
	// alone is a clause that needs an adapter of its own, because it ends or
	// spoils the connection; bare is one whose initialize is its own affair.
	alone, bare bool
}

// trial drives one clause. Its methods end it by a panic with the outcome, as
// those of a test do: a clause reads as what should happen.
type trial struct {
	*run
	ctx    context.Context
	clause clause
	peer   *peer   // the connection that the clause is driven on
	own    []*peer // those to close with it
	broke  string  // the clause that is broken, where this one was not driven for it
}

// outcome is what a trial panics with.
type outcome struct {
	verdict Verdict
	detail  string
}

// judge runs f and says what came of it.
func (t *trial) judge(f func()) (result Result) {
	result = Result{Clause: t.clause.Clause, Verdict: Kept}
	defer func() {
		caught := recover()
		if caught == nil {
			return
		}
		o, ok := caught.(outcome)
		if !ok {
			panic(caught) // a mistake of the check itself
		}
		result.Verdict, result.Detail = o.verdict, o.detail
		if o.verdict == Broken {
			for _, p := range t.seen() {
				result.Frames = append(result.Frames, p.shown()...)
				result.Stderr += p.said()
			}
		}
	}()
	f()
	return result
}

// seen are the connections of the trial.
func (t *trial) seen() []*peer {
	if t.peer == nil || slices.Contains(t.own, t.peer) {
		return t.own
	}
	return append([]*peer{t.peer}, t.own...)
}

// broken ends the trial: what was expected, and what came.
func (t *trial) broken(format string, a ...any) {
	for i, v := range a {
		a[i] = asSent(v)
	}
	panic(outcome{Broken, fmt.Sprintf(format, a...)})
}

// asSent is a value as its author knows it, when it is one that came in JSON: the
// beginning of the text.
func asSent(v any) any {
	switch v.(type) {
	case args, map[string]any, []any:
	default:
		return v
	}
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(v) != nil {
		return v // never: it came in JSON
	}
	return tool.Clip(strings.TrimSpace(b.String()), shownBytes)
}

// want ends the trial as broken unless ok.
func (t *trial) want(ok bool, format string, a ...any) {
	if !ok {
		t.broken(format, a...)
	}
}

// notOffered ends the trial: the clause does not apply, and why.
func (t *trial) notOffered(format string, a ...any) {
	panic(outcome{NotOffered, fmt.Sprintf(format, a...)})
}

// notDriven ends the trial: another clause, which is broken, keeps it from showing
// anything.
func (t *trial) notDriven(because string) {
	t.broke = because
	panic(outcome{NotDriven, because + " is broken"})
}

// needs ends the trial unless the adapter announces a capability.
func (t *trial) needs(capability string) {
	if !t.announces(capability) {
		t.notOffered("%s is not announced", capability)
	}
}

func (t *trial) announces(capability string) bool {
	return slices.Contains(t.known.capabilities, capability)
}

// needsHere ends the trial unless the adapter's files are those of this machine.
func (t *trial) needsHere() {
	if !t.known.local {
		t.notOffered("the workspace is not on this machine, so it cannot be looked at")
	}
}

// open starts an adapter of the trial's own.
func (t *trial) open() *peer {
	p, err := start(t.run)
	if err != nil {
		t.broken("it cannot be started: %v", err)
	}
	p.begin(t)
	t.own = append(t.own, p)
	return p
}

// binding is a good initialize of p.
func (p *peer) binding() args {
	return args{
		"version": 4, "root": p.root, "session": p.session, "identity": "check",
		"environment": map[string]string{"CAISSON_CHECK": p.secret, variableMark: p.run.marker},
	}
}

// with is a changed copy; a nil value leaves a member out.
func (a args) with(name string, value any) args {
	b := maps.Clone(a)
	b[name] = value
	if value == nil {
		delete(b, name)
	}
	return b
}

// args are the members of an object.
type args map[string]any

// initialized is the reply to initialize.
type initialized struct {
	Version      int      `json:"version"`
	Root         string   `json:"root"`
	Capabilities []string `json:"capabilities"`
}

// initialize makes p ready.
func (t *trial) initialize(p *peer) initialized {
	r := t.on(p).ask("initialize", p.binding())
	t.want(r.failed == "", "a good initialize was refused: %s", r.failed)
	var reply initialized
	if err := json.Unmarshal(r.data, &reply); err != nil {
		t.broken("the reply to initialize is none: %v", err)
	}
	p.resolved = reply.Root
	return reply
}

// on is the trial with another connection.
func (t *trial) on(p *peer) *on { return &on{trial: t, peer: p} }

// on is a connection within a trial.
type on struct {
	*trial
	peer *peer
}

// reply is what came for a request: data, or why it failed.
type reply struct {
	data   json.RawMessage
	failed string
	detail json.RawMessage
	body   []byte
}

// ask sends a request and waits for its reply.
func (o *on) ask(method string, data any) reply {
	return o.await(o.peer.request(method, data))
}

// await waits for the reply to a request.
func (o *on) await(w *waiting) reply {
	patience := o.Patience
	if !o.peer.heard.Load() {
		patience *= starting
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	late := time.NewTimer(noticing)
	defer late.Stop()
	for {
		select {
		case f := <-w.replies:
			return f
		case <-o.peer.ended:
			select { // the reply may have been the last word
			case f := <-w.replies:
				return f
			default:
			}
			o.broken("no reply to %s: %s", w.method, o.peer.over())
		case <-timer.C:
			o.peer.wedged.Store(true)
			o.broken("no reply to %s in %v%s", w.method, patience, o.peer.instead(w))
		case <-late.C:
			if !o.peer.heard.Load() {
				o.slowly(w.method, patience)
			}
		case <-o.ctx.Done():
			o.broken("interrupted")
		}
	}
}

// must asks for what the adapter has to be able to do.
func (o *on) must(method string, data any) json.RawMessage {
	r := o.ask(method, data)
	o.want(r.failed == "", "%s failed: %s", method, r.failed)
	return r.data
}

// refuses asks for what has to be refused.
func (o *on) refuses(why, method string, data any) {
	r := o.ask(method, data)
	o.want(r.failed != "", "%s must be an error: %s", method, why)
}

// Those of the trial's own connection.

func (t *trial) ask(method string, data any) reply            { return t.on(t.peer).ask(method, data) }
func (t *trial) must(method string, data any) json.RawMessage { return t.on(t.peer).must(method, data) }
func (t *trial) refuses(why, method string, data any)         { t.on(t.peer).refuses(why, method, data) }
func (t *trial) await(w *waiting) reply                       { return t.on(t.peer).await(w) }

// until waits for what the adapter must bring about.
func (t *trial) until(what string, done func() bool) {
	t.want(t.within(done), "expected within %v: %s", t.Patience, what)
}

// within waits for what may come about, and reports whether it has.
func (t *trial) within(done func() bool) bool {
	tick := time.NewTicker(looking)
	defer tick.Stop()
	timer := time.NewTimer(t.Patience)
	defer timer.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-timer.C:
			return false
		case <-t.ctx.Done():
			t.broken("interrupted")
		}
	}
	return true
}

// ends waits for the exit of an adapter, whose input has ended or must not matter
// any more.
func (t *trial) ends(p *peer, why string) {
	timer := time.NewTimer(t.Ending)
	defer timer.Stop()
	select {
	case <-p.program.Gone(): // who holds its streams is another clause's
	case <-timer.C:
		t.broken("%s: it must exit, and has not within %v", why, t.Ending)
	case <-t.ctx.Done():
		t.broken("interrupted")
	}
}

// rootIsHere reports whether the adapter has made the root on this machine.
func (p *peer) rootIsHere() bool {
	info, err := os.Stat(p.root)
	return err == nil && info.IsDir()
}

// file is the path of a workspace file on this machine.
func (p *peer) file(name string) string { return filepath.Join(p.root, name) }

// object decodes an object and checks its members, see [members].
func (t *trial) object(what string, data json.RawMessage, shape string) args {
	var a args
	if err := json.Unmarshal(data, &a); err != nil || a == nil {
		t.broken("%s must be an object, not %.200s", what, data)
	}
	t.want(wrong(a, shape) == "", "%s: %s", what, wrong(a, shape))
	return a
}

// wrong says which member of an object is missing or of another type than the
// shape asks for: words such as "path:string" and, for what may be missing,
// "signal?:string".
func wrong(a args, shape string) string {
	for word := range strings.FieldsSeq(shape) {
		name, kind, _ := strings.Cut(word, ":")
		name, optional := strings.CutSuffix(name, "?")
		value, there := a[name]
		if !there && !optional {
			return fmt.Sprintf("the member %s is missing", name)
		}
		if there && kindOf(value) != kind {
			return fmt.Sprintf("the member %s must be a %s, not %v", name, kind, value)
		}
	}
	return ""
}

func kindOf(v any) string {
	switch v.(type) {
	case string:
		return "string"
	case float64:
		return "number"
	case bool:
		return "bool"
	case []any:
		return "list"
	case map[string]any:
		return "object"
	}
	return "null"
}
