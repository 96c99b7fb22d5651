package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/rpc/client"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// programmed is a service whose sessions run programs in an adapter of another
// language, guarded, and what it asked and told.
type programmed struct {
	*service
	root string

	mu     sync.Mutex
	asked  []string // what a person was asked about
	answer protocol.Decision
	told   []string // how calls ended
}

func newProgrammed(t *testing.T, guard members) *programmed {
	t.Helper()
	adapter, err := filepath.Abs("../../testdata/adapters/broken/broken.py") // which without a word breaks nothing
	if err != nil {
		t.Fatal(err)
	}
	dir := shortDir(t)
	r := &programmed{root: filepath.Join(dir, "workspace")}
	p := newPlace(t, members{})
	config, err := json.Marshal(members{
		"execution_environments": members{"profiles": members{"it": members{
			"backend": "command", "workspace": r.root, "max_permission_mode": "unconfined", "permission_mode": "unconfined",
			"command": []string{"python3", "-B", adapter}, "env_allow_prefixes": []string{"PATH"},
		}}},
		"guard": guard,
	})
	if err == nil {
		err = os.WriteFile(p.config(), config, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	ended := func(e protocol.ExecutionParams) {
		r.mu.Lock()
		defer r.mu.Unlock()
		end := e.Tool
		if e.Failure != nil {
			end += " " + string(e.Failure.Kind)
		}
		r.told = append(r.told, end)
	}
	r.service = p.serve(func(o *client.Options, init *protocol.InitializeParams) {
		init.Capabilities.ExecutionEvents, init.Capabilities.GuardConfirm = true, true
		o.ExecutionCompleted, o.ExecutionFailed = ended, ended
		o.GuardConfirm = func(_ context.Context, q protocol.GuardConfirmParams) (protocol.GuardConfirmResult, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.asked = append(r.asked, q.Tool)
			return protocol.GuardConfirmResult{Decision: r.answer}, nil
		}
	})
	return r
}

// run runs a program, and returns how its calls and itself ended, in order.
func (r *programmed) run(w *work, code string) (protocol.CodeRunResult, []string, error) {
	r.mu.Lock()
	r.told = nil
	r.mu.Unlock()
	got, err := w.CodeRun(w.ctx(), protocol.CodeRunParams{SessionID: w.session.ID, Code: code})
	ends := func() []string {
		r.mu.Lock()
		defer r.mu.Unlock()
		return slices.Clone(r.told)
	}
	r.until("the end of the program to be told", func() bool {
		return slices.ContainsFunc(ends(), func(s string) bool { return strings.HasPrefix(s, "code.run") })
	})
	return got, ends(), err
}

// Programs are under the guard as every call is, and so is each call that they make: by
// rules, questions, budgets, rates and constraints, in a real adapter.
func testProgramsUnderGuard(t *testing.T) {
	r := newProgrammed(t, members{
		"rules": []members{
			{"tools": []string{"*"}, "match": members{"command": "rm -rf /*"}, "action": "deny", "reason": "never"},
			{"tools": []string{"file.write_file"}, "action": "confirm", "reason": "it writes"},
			{"tools": []string{"code.run"}, "match": members{"code": "13"}, "action": "deny", "reason": "unlucky"},
		},
		"budget": members{"max_calls": 5},
	})
	expect := func(w *work, code string, ends ...string) protocol.CodeRunResult {
		t.Helper()
		got, told, err := r.run(w, code)
		if fails := strings.Contains(ends[len(ends)-1], " "); fails != (err != nil) || !slices.Equal(told, ends) {
			t.Errorf("%s: ended %q, want %q; %v", code, told, ends, explain(err))
		}
		return got
	}
	written := func(name string) bool {
		_, err := os.Stat(filepath.Join(r.root, name))
		return err == nil
	}
	w := r.open("it", "rules")
	if got := expect(w, "7", "code.run"); string(got.Value) != "7" {
		t.Errorf("the program says %s", got.Value)
	}
	expect(w, "13", "code.run denied")
	expect(w, `bash({"command":"cd / && rm -rf *"})`, "bash denied", "code.run")
	expect(w, `bash({"command":"echo ran > ran"})`, "bash", "code.run")
	if !written("ran") {
		t.Error("what is allowed did not run")
	}
	// 4 are used: a refused call costs nothing, and the program's own is one.
	expect(w, `bash({"command":"echo over > over"})`, "bash budgetExhausted", "code.run")
	expect(w, "8", "code.run budgetExhausted")
	if written("over") {
		t.Error("a call over the budget ran")
	}

	w = r.open("it", "questions")
	r.mu.Lock()
	r.answer = protocol.Deny
	r.mu.Unlock()
	expect(w, `write_file({"path":"no","content":"x"})`, "write_file denied", "code.run")
	r.mu.Lock()
	r.answer = protocol.Allow
	r.mu.Unlock()
	expect(w, `write_file({"path":"yes","content":"x"})`, "write_file", "code.run")
	if written("no") || !written("yes") || !slices.Equal(r.asked, []string{"write_file", "write_file"}) {
		t.Errorf("asked about %q", r.asked)
	}

	// Constraints of the session hold for programs and their calls.
	constrained := func(id string, c protocol.Constraints) *work {
		t.Helper()
		opened, err := r.SessionOpen(r.ctx(), protocol.SessionOpenParams{SessionID: id, Profile: "it", Constraints: &c})
		if err != nil {
			t.Fatal(explain(err))
		}
		return &work{r.service, opened.Session}
	}
	w = constrained("only-reads", protocol.Constraints{Filesystem: "read_only"})
	expect(w, `write_file({"path":"constrained","content":"x"})`, "write_file denied", "code.run")
	if written("constrained") {
		t.Error("a program wrote in a session that only reads")
	}
	w = constrained("short", protocol.Constraints{Timeout: protocol.Duration(time.Second)})
	began := time.Now()
	expect(w, `bash({"command":"true"})`, "bash", "code.run")
	short := time.Since(began)
	began = time.Now()
	expect(w, `bash({"command":"sleep 60"})`, "bash timeout", "code.run")
	// With the moment more that only commands have which give up by themselves it took
	// six, but a busy machine takes its time as well.
	if took := time.Since(began); took < time.Second || took >= 6*time.Second+20*max(0, short-100*time.Millisecond) {
		t.Errorf("a program of one second took %v", took)
	}
}

// The calls of a program come out of the session's rate, one by one.
func testProgramsAndRate(t *testing.T) {
	r := newProgrammed(t, members{"rate": members{"calls_per_minute": 1, "burst": 3}})
	w := r.open("it", "rate")
	var all []string
	for i := range 3 {
		_, told, err := r.run(w, fmt.Sprintf(`bash({"command":"echo %d"})`, i))
		all = append(all, told...)
		if last := i == 2; last != (kindOf(err) == protocol.KindRateLimited) {
			t.Errorf("program %d: %v", i, explain(err))
		}
	}
	if want := []string{"bash", "code.run", "bash rateLimited", "code.run", "code.run rateLimited"}; !slices.Equal(all, want) {
		t.Errorf("ended %q, want %q", all, want)
	}
}
