package check

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Where the adapters in Python are.
const (
	python = "../../../testdata/adapters/python/adapter.py"
	broken = "../../../testdata/adapters/broken/broken.py"
)

// atOnce is how many adapters are checked at once for each processor: they wait most
// of the time.
const atOnce = 10

// silent are clauses whose breach is that something never comes, so that whoever
// checks it only waits, for all of his patience.
var silent = []string{
	"bash-holder", "cancel", "close-stdin", "concurrent", "end-of-input", "long-frame", "malformed", "output-closed",
	"process-exit", "process-stop", "shutdown",
}

// interpreter is Python, with a directory for what it compiles.
func interpreter(t *testing.T) []string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err)
	}
	return []string{path, "-E", "-s", "-S", "-X", "pycache_prefix=" + filepath.Join(t.TempDir(), "compiled")}
}

// patient are limits that a busy machine keeps.
func patient(command ...string) Options {
	return Options{Command: command, Patience: 30 * time.Second, Ending: 30 * time.Second, Parallel: 2}
}

// TestPython: an adapter that was written from the document alone keeps to it.
func TestPython(t *testing.T) {
	t.Parallel()
	report, err := Run(t.Context(), patient(append(interpreter(t), python)...))
	if err != nil {
		t.Fatal(err)
	}
	expect(t, report, "")
	if report.Count(Kept) < 80 || report.Mode != "unconfined" {
		t.Errorf("%d clauses kept, in the mode %s", report.Count(Kept), report.Mode)
	}
}

// TestCatalogue: there is a breach of every clause, and a clause for every breach. What a
// clause needs stands before it, and shares the connection when the clause does.
func TestCatalogue(t *testing.T) {
	t.Parallel()
	argv := append(interpreter(t), broken, "--list")
	out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).Output()
	if err != nil {
		t.Fatal(err)
	}
	breaches := strings.Fields(string(out))
	before := make(map[string]clause)
	for _, c := range clauses() {
		if _, twice := before[c.Name]; twice {
			t.Errorf("there are two clauses %s", c.Name)
		}
		if !slices.Contains(breaches, c.Name) {
			t.Errorf("nothing breaks the clause %s", c.Name)
		}
		for _, name := range c.after {
			if other, ok := before[name]; !ok || other.alone && !c.alone {
				t.Errorf("the clause %s waits for %s, which is not driven before it", c.Name, name)
			}
		}
		before[c.Name] = c
	}
	for _, breach := range breaches {
		if _, ok := before[breach]; !ok {
			t.Errorf("there is no clause that the breach %s breaks", breach)
		}
	}
}

// TestBroken: the whole check of the adapter that breaks a clause says that this clause
// is broken, and no other, for every clause of the catalogue.
func TestBroken(t *testing.T) {
	t.Parallel()
	nursery := newNursery(t)
	all := Clauses()
	slots := make(chan struct{}, atOnce*runtime.GOMAXPROCS(0))
	reports := make([]Report, len(all))
	errs := make([]error, len(all))
	took := make([]time.Duration, len(all))
	var wg sync.WaitGroup
	for i, c := range all {
		wg.Go(func() {
			if !slices.Contains(silent, c.Name) {
				slots <- struct{}{}
				defer func() { <-slots }()
			}
			o := patient(broken, c.Name)
			o.start = nursery.start
			begun := time.Now()
			reports[i], errs[i] = Run(t.Context(), o)
			took[i] = time.Since(begun)
		})
	}
	wg.Wait()
	for i, c := range all {
		t.Run(c.Name, func(t *testing.T) {
			t.Logf("checked in %v", took[i])
			if errs[i] != nil {
				t.Fatal(errs[i])
			}
			expect(t, reports[i], c.Name)
			expectDependants(t, reports[i], c.Name)
		})
	}
}

// expectDependants fails unless what needs the broken clause, and nothing else, was not
// driven, and says that it is for this one.
func expectDependants(t *testing.T, r Report, broken string) {
	t.Helper()
	failed := map[string]bool{broken: true}
	for i, c := range clauses() {
		needs := slices.ContainsFunc(c.after, func(name string) bool { return failed[name] })
		if needs {
			failed[c.Name] = true
		}
		if result := r.Results[i]; needs != (result.Verdict == NotDriven) || needs && result.Detail != broken+" is broken" {
			t.Errorf("%s is %s: %s", result.Name, result.Verdict, result.Detail)
		}
	}
}

// TestWhole: the adapter that all of them are made of offers everything and breaks
// nothing.
func TestWhole(t *testing.T) {
	t.Parallel()
	report, err := Run(t.Context(), patient(append(interpreter(t), broken)...))
	if err != nil {
		t.Fatal(err)
	}
	expect(t, report, "")
	if n := report.Count(Kept); n != len(Clauses()) {
		t.Errorf("kept %d of %d", n, len(Clauses()))
	}
}

// expect fails unless exactly one clause is broken, or none where the name is empty.
func expect(t *testing.T, r Report, name string) {
	t.Helper()
	found := false
	for _, result := range r.Results {
		if result.Verdict != Broken {
			continue
		}
		found = found || result.Name == name
		if result.Name != name {
			t.Errorf("%s is broken: %s\n%s\n%s", result.Name, result.Detail, strings.Join(result.Frames, "\n"), result.Stderr)
			continue
		}
		if len(result.Frames) == 0 || result.Detail == "" {
			t.Errorf("%s is broken without a proof: %q %q", name, result.Detail, result.Frames)
		}
	}
	if !found && name != "" {
		t.Errorf("%s is not broken", name)
	}
}

// TestHangs: an adapter that never answers, never reads or never exits hangs nothing.
func TestHangs(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"silent":  "cat >/dev/null",
		"deaf":    "exec sleep 300",
		"banner":  "yes",
		"gone":    "exit 3",
		"hangs":   "trap '' TERM; while :; do sleep 1; done",
		"garbage": "echo '{}'; cat",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := patient("/bin/sh", "-c", "echo why >&2; "+script)
			o.Patience, o.Ending = 300*time.Millisecond, 300*time.Millisecond
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := Run(ctx, o)
			if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "no adapter") {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestNoAdapter: a program that is none is told from one that takes its time as soon
// as it says or does what no adapter does, with what shows it.
func TestNoAdapter(t *testing.T) {
	t.Parallel()
	relay := append(interpreter(t), "../../../testdata/adapters/broken/relay.py")
	relay = relay[:len(relay):len(relay)]
	for name, test := range map[string]struct {
		command []string
		words   []string
	}{
		"echo":     {[]string{"cat"}, []string{"no adapter", "no reply to initialize", "sends back what it is sent", "→", "[token]"}},
		"ends":     {[]string{"true"}, []string{"no adapter", "it has exited with 0"}},
		"fails":    {[]string{"/bin/sh", "-c", "echo what is wrong >&2; exit 3"}, []string{"no adapter", "exit status 3", "what is wrong"}},
		"closes":   {[]string{"/bin/sh", "-c", "exec >&-; exec sleep 300"}, []string{"no adapter", "runs on"}},
		"floods":   {[]string{"yes"}, []string{"no adapter", "are no frames", `"y\n"`, "← y"}},
		"one line": {[]string{"/bin/sh", "-c", `yes | tr -d "\n"`}, []string{"no adapter", "16 MiB"}},
		"missing":  {[]string{"./no-such-program"}, []string{"no adapter", "cannot be started", "no-such-program"}},
		// These begin as adapters do.
		"dies later":   {append(relay, "2", "dies"), []string{"answers initialize", "no reply to execute", "exit status 9", "this is the end", "← "}},
		"floods later": {append(relay, "2", "floods"), []string{"answers initialize", "no reply to execute", "are no frames"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := patient(test.command...)
			o.Patience = 10 * time.Minute // nothing of this waits for a reply
			_, err := Run(t.Context(), o)
			if err == nil {
				t.Fatal("it is one")
			}
			for _, words := range test.words {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("it does not say %q: %v", words, err)
				}
			}
		})
	}
}

// TestInterrupted: whoever ends the check has not found out anything.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	o := patient("/bin/sh", "-c", "cat >/dev/null")
	o.Progress = func(string) { cancel() }
	if _, err := Run(ctx, o); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "no adapter") {
		t.Errorf("%v", err)
	}
}

// TestSlowAdapter: who waits for a first reply is told so, once.
func TestSlowAdapter(t *testing.T) {
	t.Parallel()
	var told []string
	o := patient("/bin/sh", "-c", "cat >/dev/null")
	o.Patience, o.Ending = (noticing+time.Second)/starting, time.Second
	o.Progress = func(text string) { told = append(told, text) }
	if _, err := Run(t.Context(), o); err == nil || len(told) != 1 || !strings.Contains(told[0], "no reply to initialize") {
		t.Errorf("told %q, %v", told, err)
	}
}

// TestChoice: one clause alone, and none that there is not.
func TestChoice(t *testing.T) {
	t.Parallel()
	o := patient(append(interpreter(t), broken, "version")...)
	o.Clauses = []string{"version"}
	report, err := Run(t.Context(), o)
	if err != nil || len(report.Results) != 1 || report.Results[0].Verdict != Broken {
		t.Errorf("%+v, %v", report, err)
	}
	o.Clauses = []string{"no-such-clause"}
	if _, err := Run(t.Context(), o); !errors.Is(err, ErrNoClause) {
		t.Errorf("there is no such clause: %v", err)
	}
	if _, err := Run(t.Context(), Options{}); err == nil {
		t.Error("there is no command")
	}
}

// TestTokens: that a token is looked at shows with whatever little an adapter answers.
func TestTokens(t *testing.T) {
	t.Parallel()
	few := append(interpreter(t), "../../../testdata/adapters/broken/few.py")
	few = few[:len(few):len(few)]
	for name, test := range map[string]struct {
		breach string
		tools  []string
	}{
		"nothing, kept":             {"", nil},
		"nothing, missing":          {"token-missing", nil},
		"nothing, fixed":            {"token-fixed", nil},
		"another tool, wrong":       {"token-wrong", []string{"glob"}},
		"commands, wrong":           {"token-wrong", []string{"bash"}},
		"another tool yet, missing": {"token-missing", []string{"grep"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := patient(append(append(few, test.breach), test.tools...)...)
			o.Clauses = []string{test.breach}
			if test.breach == "" {
				o.Clauses = []string{"token-wrong", "token-missing", "token-fixed"}
			}
			report, err := Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			expect(t, report, test.breach)
			if test.breach == "" && report.Count(Kept) != len(o.Clauses) {
				t.Errorf("%+v", report.Results)
			}
		})
	}
}

// TestReport: the table, the proof, no secrets, and what was left.
func TestReport(t *testing.T) {
	t.Parallel()
	o := patient(append(interpreter(t), broken, "processes-end")...)
	o.Clauses = []string{"processes-end", "environment"}
	report, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := report.Print(&b); err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{"processes-end", "is broken", `"method":"process/start"`, "→", "←", `"token":"[token]"`, `"CAISSON_CHECK":"[secret]"`, "left running", "1 kept, 1 broken, 0 not offered"} {
		if !strings.Contains(b.String(), words) {
			t.Errorf("the report does not say %s:\n%s", words, b.String())
		}
	}
	if len(report.Left) == 0 {
		t.Error("it says nothing of what was left")
	}
}
