package remote

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// TestRunCode: the program goes to the far end as it is, its calls come back to
// whoever runs it, several at once, and what it came to is all told.
func TestRunCode(t *testing.T) {
	f := newFar(ourCaps...)
	var asked wire.RunCode
	f.on(wire.MethodRunCode, func(ctx context.Context, r *wire.Request) (wire.Response, error) {
		if err := r.Decode(&asked); err != nil {
			return wire.Response{}, err
		}
		out := wire.RunCodeResult{Value: object(`{"v":1}`), Media: object(`[{"type":"image","data":"iVBO","mime_type":"image/png"}]`), CallSummary: object(`{"n":2}`)}
		results := make(chan string, 2)
		for _, name := range []string{"grep", "fails"} {
			go func() {
				result, err := r.Callback(ctx, wire.ToolCall{Name: name, Arguments: `{"a":1}`})
				if err != nil {
					results <- "error: " + err.Error()
					return
				}
				results <- result.Content[0].Text
			}()
		}
		out.Logs = []string{<-results, <-results}
		slices.Sort(out.Logs)
		return wire.Response{Data: out}, nil
	})
	e := open(t, f, binding(), Options{})
	got, err := e.RunCode(t.Context(), backends.CodeRequest{
		Code: "code", Tools: []tool.Description{{Name: "grep", Description: "d", InputSchema: object(`{}`), Group: tool.GroupSearch}},
		View: backends.ViewStructured, Timeout: time.Minute, Actor: tool.Actor{ID: "a", Kind: tool.ActorSubagent}, Mode: tool.ReadOnly,
		Invoke: func(_ context.Context, c backends.NestedCall) (tool.Result, error) {
			if c.Name == "fails" {
				return tool.Result{}, errTest
			}
			return tool.Result{Content: []tool.Part{{Type: tool.PartText, Text: c.Name + string(c.Arguments)}}}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := wire.RunCode{
		Program: wire.Program{Code: "code", ResultView: "structured", Tools: []wire.ProgramTool{{Name: "grep", Description: "d", InputSchema: object(`{}`)}}},
		Actor:   "a", PermissionMode: tool.ReadOnly, TimeoutMS: 60_000,
	}
	if a, b := encoded(t, asked), encoded(t, want); a != b {
		t.Errorf("asked %s\nwant  %s", a, b)
	}
	if !slices.Equal(got.Logs, []string{"error: " + errTest.Error(), `grep{"a":1}`}) || string(got.Value) != `{"v":1}` ||
		len(got.Media) != 1 || got.Media[0].MIMEType != "image/png" || string(got.CallSummary) != `{"n":2}` || got.Error != "" {
		t.Errorf("got %+v", got)
	}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestProgramsThatCannotRun: refusals are told apart, and none is answered here.
func TestProgramsThatCannotRun(t *testing.T) {
	f := newFar(ourCaps...) // without run_code
	e := open(t, f, binding(), Options{})
	_, err := e.RunCode(t.Context(), backends.CodeRequest{Code: "x"})
	wantKind(t, err, tool.Unsupported)
	if tool.HintOf(err) == "" {
		t.Errorf("no hint: %v", err)
	}
	_, err = e.RunCode(t.Context(), backends.CodeRequest{Code: "x", Mode: tool.Unconfined})
	wantKind(t, err, tool.Denied)
	_, err = e.RunCode(t.Context(), backends.CodeRequest{Code: "x", View: "smell"})
	wantKind(t, err, tool.InvalidParams)
	f.says(wire.MethodRunCode, object(`{"Logs":null,"Value":null,"Error":"out of luck","Media":null}`), nil)
	got, err := e.RunCode(t.Context(), backends.CodeRequest{Code: "x"})
	if err != nil || got.Error != "out of luck" || got.Value != nil || got.Media != nil {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, reply := range []string{`{"Media":{"type":"image"}}`, `{"Logs":"text"}`, `[]`} {
		f.says(wire.MethodRunCode, object(reply), nil)
		_, err = e.RunCode(t.Context(), backends.CodeRequest{Code: "x"})
		wantKind(t, err, tool.ProtocolMismatch)
	}
}

// TestCancelProgram: a cancelled program has its calls cancelled, and is over when
// the far end says so.
func TestCancelProgram(t *testing.T) {
	f := newFar(ourCaps...)
	ended := make(chan error, 1)
	f.on(wire.MethodRunCode, func(ctx context.Context, r *wire.Request) (wire.Response, error) {
		_, err := r.Callback(ctx, wire.ToolCall{Name: "ask", Arguments: "{}"})
		ended <- err
		<-ctx.Done()
		return wire.Response{}, ctx.Err()
	})
	e := open(t, f, binding(), Options{})
	ctx, cancel := context.WithCancel(t.Context())
	called := make(chan error, 1)
	_, err := e.RunCode(ctx, backends.CodeRequest{Code: "x", Invoke: func(ctx context.Context, _ backends.NestedCall) (tool.Result, error) {
		cancel()
		<-ctx.Done()
		called <- ctx.Err()
		return tool.Result{}, ctx.Err()
	}})
	wantKind(t, err, tool.Cancelled)
	if err := receive(t, called); !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
	if err := receive(t, ended); err == nil {
		t.Error("the far end got a result of it")
	}
	// The connection is as good as before.
	f.says(wire.MethodRunCode, object(`{"Logs":["again"]}`), nil)
	if got, err := e.RunCode(t.Context(), backends.CodeRequest{Code: "x"}); err != nil || !slices.Equal(got.Logs, []string{"again"}) {
		t.Errorf("afterwards: %+v, %v", got, err)
	}
	if n := f.count(&f.dialled); n != 1 {
		t.Errorf("dialled %d times", n)
	}
}

// TestProgramWithoutAnEnd: one that does not heed its own timeout is cancelled.
func TestProgramWithoutAnEnd(t *testing.T) {
	f := newFar(ourCaps...)
	f.on(wire.MethodRunCode, func(ctx context.Context, _ *wire.Request) (wire.Response, error) {
		<-ctx.Done()
		return wire.Response{}, ctx.Err()
	})
	e := open(t, f, binding(), Options{})
	e.o.programGrace = time.Millisecond
	_, err := e.RunCode(t.Context(), backends.CodeRequest{Code: "x", Timeout: time.Millisecond})
	wantKind(t, err, tool.Timeout)
	if e, ok := errors.AsType[*tool.Error](err); !ok || strings.Contains(e.Hint, "background") || !strings.Contains(e.Hint, "the lowest limit") {
		t.Errorf("the hint of %v is not a program's", err)
	}
}
