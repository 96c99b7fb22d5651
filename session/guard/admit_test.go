package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// person answers questions.
type person struct {
	answer Answer
	err    error
	wait   bool // for the end of the context

	mu    sync.Mutex
	asked []Question
}

func (p *person) ask(ctx context.Context, q Question) (Answer, error) {
	p.mu.Lock()
	p.asked = append(p.asked, q)
	p.mu.Unlock()
	if p.wait {
		<-ctx.Done()
		return Answer{}, ctx.Err()
	}
	return p.answer, p.err
}

func (p *person) questions() []Question {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

func newGuard(t *testing.T, o Options) *Guard {
	t.Helper()
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func wantKind(t *testing.T, err error, kind tool.Kind) *tool.Error {
	t.Helper()
	var e *tool.Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Fatalf("got %v, not an error of kind %s", err, kind)
	}
	return e
}

func TestRate(t *testing.T) {
	now := testTime()
	g := newGuard(t, Options{Now: func() time.Time { return now }, Policies: []Policy{
		{Source: "the user's configuration", Rate: Rate{CallsPerMinute: 60, Burst: 3}},
		{Source: "the project", Rate: Rate{CallsPerMinute: 6, Burst: 2}},
	}})
	admit := func() error {
		_, err := g.Admit(t.Context(), shellCall("ls"), nil)
		return err
	}
	for range 2 {
		if err := admit(); err != nil {
			t.Fatal(err)
		}
	}
	e := wantKind(t, admit(), tool.RateLimited)
	if !e.Retryable || !strings.Contains(e.Message, "guard.rate of the project allows 6 calls a minute") || !strings.Contains(e.Message, "retry after 10 s") {
		t.Errorf("got %+v", e)
	}
	now = now.Add(9 * time.Second)
	wantKind(t, admit(), tool.RateLimited)
	now = now.Add(time.Second)
	if err := admit(); err != nil {
		t.Fatal(err)
	}
	wantKind(t, admit(), tool.RateLimited)
	now = now.Add(time.Hour) // no more than the burst comes together
	for range 2 {
		if err := admit(); err != nil {
			t.Fatal(err)
		}
	}
	wantKind(t, admit(), tool.RateLimited)
}

// A guard that goes on from another has what that left of the rates, and what time has
// given back since.
func TestRateGoesOn(t *testing.T) {
	now := testTime()
	all := []Policy{
		{Source: "none", Budget: Budget{MaxCalls: 100}},
		{Source: "here", Rate: Rate{CallsPerMinute: 6, Burst: 3}},
	}
	next := func(g *Guard) *Guard {
		t.Helper()
		return newGuard(t, Options{Now: func() time.Time { return now }, Policies: all, Used: g.Used(), Levels: g.Levels()})
	}
	admit := func(g *Guard, calls int) {
		t.Helper()
		for range calls {
			if _, err := g.Admit(t.Context(), shellCall("ls"), nil); err != nil {
				t.Fatal(err)
			}
		}
		wantKind(t, admitted(g.Admit(t.Context(), shellCall("ls"), nil)), tool.RateLimited)
	}
	g := newGuard(t, Options{Now: func() time.Time { return now }, Policies: all})
	if !g.Limited() {
		t.Error("it has limits")
	}
	admit(g, 3)
	g = next(g)
	admit(g, 0)
	now = now.Add(20 * time.Second)
	g = next(g)
	admit(g, 2)
	g = next(g)
	now = now.Add(-time.Hour) // a clock that is put back gives nothing
	admit(g, 0)
	now = now.Add(time.Hour)
	g = next(g)
	now = now.Add(time.Hour)
	admit(g, 3)
	if newGuard(t, Options{Policies: []Policy{deny("rm")}}).Limited() {
		t.Error("rules are no limit")
	}
}

// Rules come before the rate: what they deny takes nothing of it. The rate comes
// before the budget, and both before a question.
func TestOrder(t *testing.T) {
	now := testTime()
	p := deny("rm")
	p.Rules = append(p.Rules, Rule{Tools: []string{"*"}, Match: map[string]string{"command": "make"}, Action: Confirm})
	p.Rate, p.Budget = Rate{CallsPerMinute: 2, Burst: 2}, Budget{MaxCalls: 1}
	g := newGuard(t, Options{Now: func() time.Time { return now }, Policies: []Policy{p}})
	yes := &person{answer: Answer{Allow: true}}
	admit := func(line string) error {
		_, err := g.Admit(t.Context(), shellCall(line), yes.ask)
		return err
	}
	for range 5 {
		wantKind(t, admit("rm x"), tool.Denied)
	}
	if err := admit("ls"); err != nil {
		t.Fatal(err)
	}
	wantKind(t, admit("make"), tool.BudgetExhausted)
	wantKind(t, admit("make"), tool.RateLimited)
	wantKind(t, admit("rm x"), tool.Denied)
	if len(yes.questions()) != 0 {
		t.Errorf("asked %v", yes.questions())
	}
}

func TestBudget(t *testing.T) {
	now := testTime()
	clock := func() time.Time { return now }
	for name, b := range map[string]Budget{
		"calls": {MaxCalls: 2}, "runtime": {MaxRuntime: 10 * time.Second}, "output": {MaxOutputBytes: 100},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuard(t, Options{Now: clock, Policies: []Policy{{Source: "here", Budget: b}}})
			for range 2 {
				ticket, err := g.Admit(t.Context(), shellCall("ls"), nil)
				if err != nil {
					t.Fatal(err)
				}
				now = now.Add(5 * time.Second)
				ticket.Done(50)
				ticket.Done(50) // counts once
			}
			e := wantKind(t, admitted(g.Admit(t.Context(), shellCall("ls"), nil)), tool.BudgetExhausted)
			if e.Retryable || !strings.Contains(e.Message, "guard.budget of here") || e.Hint == "" {
				t.Errorf("got %+v", e)
			}
			used := g.Used()
			if used != (Usage{Calls: 2, Runtime: 10 * time.Second, OutputBytes: 100}) {
				t.Errorf("used %+v", used)
			}
			// Another guard that goes on from there has no new budget.
			g = newGuard(t, Options{Now: clock, Used: used, Policies: []Policy{{Budget: b}}})
			wantKind(t, admitted(g.Admit(t.Context(), shellCall("ls"), nil)), tool.BudgetExhausted)
		})
	}
	// What runs counts while it runs.
	g := newGuard(t, Options{Now: clock, Policies: []Policy{{Budget: Budget{MaxRuntime: time.Minute}}}})
	for range 2 {
		if _, err := g.Admit(t.Context(), shellCall("sleep 60"), nil); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(30 * time.Second)
	wantKind(t, admitted(g.Admit(t.Context(), shellCall("ls"), nil)), tool.BudgetExhausted)
}

func admitted(_ *Ticket, err error) error { return err }

func confirmAll() Policy {
	return Policy{Source: "here", Rules: []Rule{{Tools: []string{"*"}, Action: Confirm, Reason: "careful"}}, ConfirmTimeout: time.Minute}
}

func TestConfirm(t *testing.T) {
	for name, c := range map[string]struct {
		person *person
		kind   tool.Kind
		says   string
	}{
		"yes":     {person: &person{answer: Answer{Allow: true}}},
		"no":      {person: &person{}, kind: tool.Denied, says: "a person refused it"},
		"error":   {person: &person{err: errors.New("the window is gone")}, kind: tool.Denied, says: "could not be asked: the window is gone"},
		"no time": {person: &person{wait: true}, kind: tool.Denied, says: "nobody answered within 1m0s"},
		"nobody":  {kind: tool.Denied, says: "has nobody to ask"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGuard(t, Options{Policies: []Policy{confirmAll()}})
				var ask Ask
				if c.person != nil {
					ask = c.person.ask
				}
				_, err := g.Admit(t.Context(), shellCall("ls"), ask)
				if c.kind == "" {
					if err != nil {
						t.Error(err)
					}
				} else if e := wantKind(t, err, c.kind); !strings.Contains(e.Message, c.says) || !strings.Contains(e.Message, "careful") || e.Hint == "" {
					t.Errorf("got %+v", e)
				}
				if calls := g.Used().Calls; (calls == 1) != (err == nil) {
					t.Errorf("%d calls were counted", calls)
				}
			})
		})
	}
}

func TestCancelledQuestions(t *testing.T) {
	g := newGuard(t, Options{Policies: []Policy{confirmAll()}})
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan struct{})
	done := make(chan error, 2)
	ask := func(ctx context.Context, _ Question) (Answer, error) {
		close(asked)
		<-ctx.Done()
		return Answer{Allow: true}, nil // too late
	}
	go func() { done <- admitted(g.Admit(ctx, shellCall("ls"), ask)) }()
	<-asked
	go func() { done <- admitted(g.Admit(ctx, shellCall("ls"), ask)) }() // waits for the first answer
	cancel()
	for range 2 {
		wantKind(t, <-done, tool.Cancelled)
	}
	if u := g.Used(); u.Calls != 0 {
		t.Errorf("used %+v", u)
	}
}

// What is remembered, and for what.
func TestRemember(t *testing.T) {
	p := confirmAll()
	base := Call{Tool: "shell.bash", Dir: "/w", Arguments: json.RawMessage(`{"command":"make","n":1}`)}
	for name, c := range map[string]struct {
		change func(*Call)
		asked  int
	}{
		"same":       {func(*Call) {}, 1},
		"spaces":     {func(c *Call) { c.Arguments = json.RawMessage(` { "command" : "make", "n" : 1 } `) }, 1},
		"another id": {func(c *Call) { c.ID = "c9" }, 1},
		"arguments":  {func(c *Call) { c.Arguments = json.RawMessage(`{"command":"make","n":2}`) }, 2},
		"command":    {func(c *Call) { c.Arguments = json.RawMessage(`{"command":"make ","n":1}`) }, 2},
		"tool":       {func(c *Call) { c.Tool = "process.start" }, 2},
		"actor":      {func(c *Call) { c.Actor = tool.ActorSubagent }, 2},
		"mode":       {func(c *Call) { c.Mode = tool.Unconfined }, 2},
		"directory":  {func(c *Call) { c.Dir = "/v" }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			for _, allow := range []bool{true, false} {
				g := newGuard(t, Options{Policies: []Policy{p}})
				who := &person{answer: Answer{Allow: allow, Remember: true}}
				again := base
				c.change(&again)
				first, second := admitted(g.Admit(t.Context(), base, who.ask)), admitted(g.Admit(t.Context(), again, who.ask))
				if (first == nil) != allow || (second == nil) != allow {
					t.Errorf("allow %t: %v, %v", allow, first, second)
				}
				if n := len(who.questions()); n != c.asked {
					t.Errorf("%d questions, want %d", n, c.asked)
				}
			}
		})
	}
	t.Run("not remembered", func(t *testing.T) {
		g := newGuard(t, Options{Policies: []Policy{p}})
		who := &person{answer: Answer{Allow: true}}
		for range 3 {
			if err := admitted(g.Admit(t.Context(), base, who.ask)); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(who.questions()); n != 3 {
			t.Errorf("%d questions", n)
		}
	})
	t.Run("not for ever", func(t *testing.T) {
		g := newGuard(t, Options{Policies: []Policy{p}})
		who := &person{answer: Answer{Allow: true, Remember: true}}
		for i := range maxRemembered + 1 {
			if err := admitted(g.Admit(t.Context(), shellCall(fmt.Sprint("make ", i)), who.ask)); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(g.asking.remembered); n != maxRemembered {
			t.Errorf("%d are remembered", n)
		}
	})
}

// Calls that ask the same at the same time put one question, if its answer is to be
// remembered.
func TestQuestionsCoalesce(t *testing.T) {
	for _, remember := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			g := newGuard(t, Options{Policies: []Policy{confirmAll()}})
			var asked, most, now int
			var mu sync.Mutex
			ask := func(context.Context, Question) (Answer, error) {
				mu.Lock()
				asked, now = asked+1, now+1
				most = max(most, now)
				mu.Unlock()
				synctest.Wait()
				mu.Lock()
				now--
				mu.Unlock()
				return Answer{Allow: true, Remember: remember}, nil
			}
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					if err := admitted(g.Admit(t.Context(), shellCall("make"), ask)); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			want := 1
			if !remember {
				want = 8
			}
			if asked != want || most != 1 {
				t.Errorf("remember %t: %d questions, %d at once", remember, asked, most)
			}
		})
	}
}

// More questions than a person can have before him are not put.
func TestQuestionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t, Options{Policies: []Policy{confirmAll()}})
		who := &person{wait: true}
		var all sync.WaitGroup
		for i := range maxQuestions {
			all.Go(func() {
				wantKindOf(t, admitted(g.Admit(t.Context(), shellCall(fmt.Sprint("make ", i)), who.ask)), tool.Denied)
			})
		}
		synctest.Wait()
		e := wantKind(t, admitted(g.Admit(t.Context(), shellCall("make"), who.ask)), tool.Overloaded)
		if !e.Retryable {
			t.Errorf("got %+v", e)
		}
		all.Wait()
	})
}

func wantKindOf(t *testing.T, err error, kind tool.Kind) {
	t.Helper()
	if tool.KindOf(err) != kind {
		t.Errorf("got %v, not an error of kind %s", err, kind)
	}
}

// A person is shown the real arguments, cut where they are long.
func TestQuestions(t *testing.T) {
	g := newGuard(t, Options{Policies: []Policy{confirmAll()}})
	who := &person{answer: Answer{Allow: true}}
	short := json.RawMessage(`{"path":"x","content":"hello"}`)
	long, err := json.Marshal(map[string]any{"path": "x", "content": strings.Repeat("é", maxShownArguments) + "; end", "list": strings.Split(strings.Repeat("a,", maxShownArguments), ",")})
	if err != nil {
		t.Fatal(err)
	}
	command, err := json.Marshal(map[string]string{"command": "x " + strings.Repeat("\x01", 128<<10)})
	if err != nil {
		t.Fatal(err)
	}
	many, err := json.Marshal(map[string][]string{"a": {"b"}})
	if err != nil {
		t.Fatal(err)
	}
	many = append(many[:len(many)-1], []byte(strings.Repeat(`,"b":1`, maxShownArguments/4)+"}")...) // members that stand twice
	for _, raw := range []json.RawMessage{short, long, command} {
		if err := admitted(g.Admit(t.Context(), Call{ID: "c7", Tool: "file.write_file", Arguments: raw}, who.ask)); err != nil {
			t.Fatal(err)
		}
	}
	q := who.questions()
	if string(q[0].Call.Arguments) != string(short) || q[0].Call.ID != "c7" || q[0].Reason != "guard.rules[0] of here is about such calls: careful" {
		t.Errorf("got %+v", q[0])
	}
	var shown struct{ Path, Content, List string }
	if err := json.Unmarshal(q[1].Call.Arguments, &shown); err != nil {
		t.Fatal(err)
	}
	if n := len(q[1].Call.Arguments); n > maxShownArguments || shown.Path != "x" || !strings.HasPrefix(shown.Content, "éé") || !strings.HasSuffix(shown.Content, "é; end") || !regexp.MustCompile(`^\["a",.*"… \[\d+ bytes cut\] ….*,""\]$`).MatchString(shown.List) {
		t.Errorf("%d bytes: %.100s", n, q[1].Call.Arguments)
	}
	if string(q[2].Call.Arguments) != string(command) {
		t.Errorf("a command that can be run is not whole: %d of %d bytes", len(q[2].Call.Arguments), len(command))
	}
	if shown := bounded(many); len(shown) > maxShownArguments || !strings.Contains(string(shown), `\"a\":[\"b\"]`) || !strings.Contains(string(shown), "bytes cut") {
		t.Errorf("%d bytes: %.100s", len(shown), shown)
	}
}

// What the arguments do not show stands in the question.
func TestQuestionsTellWhoAsksForWhat(t *testing.T) {
	for _, c := range []struct {
		mode  tool.Mode
		actor tool.ActorKind
		want  string
	}{
		{"", "", ""},
		{"", tool.ActorMain, ""},
		{tool.Unconfined, "", "; it asks for the permission mode unconfined"},
		{tool.ReadOnly, tool.ActorSideChat, "; it asks for the permission mode read_only; it comes from a side chat"},
	} {
		g := newGuard(t, Options{Policies: []Policy{confirmAll()}})
		who := &person{answer: Answer{Allow: true}}
		call := shellCall("ls")
		call.Mode, call.Actor = c.mode, c.actor
		if err := admitted(g.Admit(t.Context(), call, who.ask)); err != nil {
			t.Fatal(err)
		}
		if got, want := who.questions()[0].Reason, "guard.rules[0] of here is about such calls: careful"+c.want; got != want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
