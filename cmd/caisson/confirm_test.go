package main

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/adapterkit/check"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session"
)

// What is told of other machines and programs holds nothing that a terminal obeys.
func TestHarmless(t *testing.T) {
	const evil = "it said “\x1b]0;mine\x07é\u009b31m\u202e” twice\n\tso"
	const want = "it said “�]0;mine�é�31m�” twice\n\tso"
	indented := strings.ReplaceAll(want, "\n", "\n    ") // no line looks like one of ours
	var out, errs strings.Builder
	a := &app{out: &out, errs: &errs}
	a.report(a.rootCommand(), tool.Errorf(tool.BackendUnavailable, "%s", evil).WithHint("%s", evil))
	if got := errs.String(); got != "caisson: "+indented+"\n  hint: "+indented+"\n" {
		t.Errorf("an error is told as %q", got)
	}
	if err := a.printChecks([]backends.Check{{Name: "far end", Detail: evil, Hint: evil}}); err != nil || strings.ContainsAny(out.String(), "\x1b\x07\u009b\u202e") {
		t.Errorf("a check is told as %q, %v", out.String(), err)
	}
	out.Reset()
	adapter := check.Report{Capabilities: []string{evil}, Left: []string{evil}, Results: []check.Result{
		{Verdict: check.Broken, Detail: evil, Frames: []string{"← " + evil}, Stderr: evil}, {Verdict: check.NotOffered, Detail: evil},
	}}
	if err := a.printReport(adapter); err != nil || strings.ContainsAny(out.String(), "\x1b\x07\u009b\u202e") || strings.Count(out.String(), want[:strings.Index(want, "\n")]) != 6 {
		t.Errorf("the check of an adapter is told as %q, %v", out.String(), err)
	}
}

func TestAskPerson(t *testing.T) {
	q := session.Confirmation{Tool: "bash", Arguments: []byte(`{"command":"make"}`), Reason: "it is slow"}
	for answer, allow := range map[string]bool{"y\n": true, " YES \n": true, "n\n": false, "\n": false, "yesterday\n": false, "y": false, "": false} {
		var out strings.Builder
		d, err := askPerson(t.Context(), strings.NewReader(answer), &out, q)
		if d.Allow != allow || d.Remember || allow && err != nil {
			t.Errorf("%q: %+v, %v", answer, d, err)
		}
		if want := "bash needs a confirmation: it is slow\n  {\"command\":\"make\"}\nRun it? [y/N] "; out.String() != want {
			t.Errorf("asked %q", out.String())
		}
	}
	// What runs is shown, whatever it would do to a terminal.
	var out strings.Builder
	q.Arguments = []byte("{\"command\":\"é \u202ex\u009b2K\U000e0041\"}")
	if _, err := askPerson(t.Context(), strings.NewReader("n\n"), &out, q); err != nil || !strings.Contains(out.String(), `{"command":"é \u202ex\u009b2K\udb40\udc41"}`) {
		t.Errorf("asked %q, %v", out.String(), err)
	}
	in, end := io.Pipe()
	defer end.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d, err := askPerson(ctx, in, io.Discard, q); err == nil || d.Allow {
		t.Errorf("nobody answered: %+v, %v", d, err)
	}
	// Without a terminal nobody is asked.
	if (&app{in: io.NopCloser(strings.NewReader("y\n")), errs: io.Discard}).confirm() != nil {
		t.Error("a pipe is taken for a person")
	}
}
