package adapterkit

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

func TestHandshake(t *testing.T) {
	s := serve(t, backend(t, least()), nil)
	_, err := s.execute(t.Context(), "early")
	if err == nil || !strings.Contains(err.Error(), "before initialize") {
		t.Errorf("%v", err)
	}
	out := s.initialize(t)
	if out.Version != 4 || out.Root != "/w" || strings.Join(out.Capabilities, " ") != wire.CapErrors {
		t.Errorf("%+v", out)
	}
	if got, err := s.execute(t.Context(), "grep"); got != `grep{"a":1}sstandard` || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestBindingNeverChanges: the same again is answered, without the variables too,
// and another one is refused.
func TestBindingNeverChanges(t *testing.T) {
	initialized := 0
	h := least()
	h.Initialize = func(_ context.Context, s *Session, in wire.Initialize) (string, error) {
		initialized++
		if s.Binding().Root != in.Root || s.Binding().Environment["A"] != "1" {
			t.Errorf("bound to %+v", s.Binding())
		}
		return "/resolved", nil
	}
	s := serve(t, backend(t, h), nil)
	s.initialize(t)
	again := func(change func(*wire.Initialize)) error {
		in := binding()
		in.Version, in.Capabilities = wire.Version, []string{wire.CapErrors}
		change(&in)
		reply, err := s.Call(t.Context(), wire.MethodInitialize, in, nil)
		var out wire.Initialized
		if err == nil {
			err = reply.Decode(&out)
		}
		if err == nil && out.Root != "/resolved" {
			t.Errorf("answered %+v", out)
		}
		return err
	}
	for what, change := range map[string]func(*wire.Initialize){
		"equal":                 func(*wire.Initialize) {},
		"without the variables": func(in *wire.Initialize) { in.Environment = nil },
		"back to what it had":   func(in *wire.Initialize) { in.RequireExistingWorkspace = true },
	} {
		if err := again(change); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for member, change := range map[string]func(*wire.Initialize){
		"root":                     func(in *wire.Initialize) { in.Root = "/x" },
		"session":                  func(in *wire.Initialize) { in.Session = "x" },
		"identity":                 func(in *wire.Initialize) { in.Identity = "" },
		"environment":              func(in *wire.Initialize) { in.Environment = map[string]string{"A": "2"} },
		"remove_workspace_on_exit": func(in *wire.Initialize) { in.RemoveWorkspaceOnExit = true },
	} {
		wantKind(t, again(change), tool.Denied, member)
	}
	if initialized != 1 {
		t.Errorf("initialized %d times", initialized)
	}
}

// TestOtherVersions are refused before the backend hears of anything.
func TestOtherVersions(t *testing.T) {
	h := least()
	h.Initialize = func(context.Context, *Session, wire.Initialize) (string, error) {
		t.Error("it was initialized")
		return "", nil
	}
	h.Close = func(context.Context) error {
		t.Error("it was closed")
		return nil
	}
	s := serve(t, backend(t, h), nil)
	in := binding()
	in.Version = 5
	_, err := s.Call(t.Context(), wire.MethodInitialize, in, nil)
	if err == nil || !strings.Contains(err.Error(), "protocol 5") {
		t.Errorf("%v", err)
	}
	_ = s.Close()
	if err := s.wait(t); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// TestFailedInitialize: after it nothing is answered, and what it began is closed.
func TestFailedInitialize(t *testing.T) {
	closed := false
	h := least()
	h.Initialize = func(context.Context, *Session, wire.Initialize) (string, error) {
		return "", tool.Errorf(tool.EnvironmentLost, "the machine is gone").WithHint("buy another")
	}
	h.Close = func(context.Context) error {
		closed = true
		return nil
	}
	s := serve(t, backend(t, h), nil)
	in := binding()
	in.Version, in.Capabilities = wire.Version, []string{wire.CapErrors}
	_, err := s.Call(t.Context(), wire.MethodInitialize, in, nil)
	wantKind(t, err, tool.EnvironmentLost, "the machine is gone")
	_, err = s.Call(t.Context(), wire.MethodInitialize, in, nil)
	if err == nil {
		t.Error("a second initialize worked")
	}
	_ = s.Close()
	if err := s.wait(t); err != nil || !closed {
		t.Errorf("it ended with %v, closed: %v", err, closed)
	}
}

// TestOrderOfTheEnd: requests are cancelled, their handlers waited for, then the
// lifetime ends, then the session is closed.
func TestOrderOfTheEnd(t *testing.T) {
	var mu sync.Mutex
	var order []string
	say := func(s string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, s)
	}
	var background sync.WaitGroup
	entered := make(chan struct{})
	h := least()
	h.Initialize = func(_ context.Context, s *Session, in wire.Initialize) (string, error) {
		background.Go(func() {
			<-s.Lifetime().Done()
			say("lifetime")
		})
		return in.Root, nil
	}
	h.Execute = func(ctx context.Context, c Call) (tool.Result, error) {
		close(entered)
		<-ctx.Done()
		say("cancelled")
		return tool.Result{}, ctx.Err()
	}
	h.Close = func(ctx context.Context) error {
		background.Wait()
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("the close has no bound")
		}
		say("closed")
		return errors.New("a machine is left")
	}
	s := serve(t, backend(t, h), nil)
	s.initialize(t)
	go func() { _, _ = s.execute(context.Background(), "wait") }()
	<-entered
	_ = s.Close()
	if err := s.wait(t); err == nil || !strings.Contains(err.Error(), "a machine is left") {
		t.Errorf("it ended with %v", err)
	}
	if got := strings.Join(order, " "); got != "cancelled lifetime closed" {
		t.Errorf("the order was %s", got)
	}
}

// TestCancel: a cancelled request is answered when its handler has ended.
func TestCancel(t *testing.T) {
	entered := make(chan struct{})
	h := least()
	h.Execute = func(ctx context.Context, _ Call) (tool.Result, error) {
		close(entered)
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}
	s := serve(t, backend(t, h), nil)
	s.initialize(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := s.execute(ctx, "wait")
		done <- err
	}()
	<-entered
	cancel()
	wantKind(t, <-done, tool.Cancelled)
	if s.Err() != nil {
		t.Errorf("the connection ended: %v", s.Err())
	}
}

// TestFail: a backend that has failed ends its connection, and what is in flight is
// of unknown outcome.
func TestFail(t *testing.T) {
	h := least()
	var session *Session
	h.Initialize = func(_ context.Context, s *Session, in wire.Initialize) (string, error) {
		session = s
		return in.Root, nil
	}
	h.Execute = func(ctx context.Context, _ Call) (tool.Result, error) {
		session.Fail(errors.New("the machine is on fire"))
		<-ctx.Done()
		return text("late"), nil
	}
	s := serve(t, backend(t, h), nil)
	s.initialize(t)
	_, err := s.execute(t.Context(), "x")
	wantKind(t, err, tool.OutcomeUnknown)
	if err := s.wait(t); err == nil || err.Error() != "the machine is on fire" {
		t.Errorf("it ended with %v", err)
	}
}

// TestEndOfContext: an adapter that is told to end by a signal ends in order.
func TestEndOfContext(t *testing.T) {
	closed := make(chan struct{})
	h := least()
	h.Close = func(ctx context.Context) error {
		close(closed)
		return ctx.Err()
	}
	ctx, cancel := context.WithCancel(t.Context())
	initialized := make(chan struct{})
	in := &blocked{data: strings.NewReader(`{"id":"1","method":"initialize","data":{"version":4,"root":"/w","session":"s"}}` + "\n"), end: make(chan struct{})}
	defer close(in.end)
	ran := make(chan error, 1)
	go func() {
		ran <- Run(ctx, backend(t, h), Options{In: in, Out: writer(func(p []byte) (int, error) {
			if strings.Contains(string(p), `"root":"/w"`) {
				close(initialized)
			}
			return len(p), nil
		})})
	}()
	<-initialized
	cancel()
	if err := <-ran; err != nil {
		t.Errorf("it ended with %v", err)
	}
	<-closed
}

// blocked gives its data and then nothing, whatever happens, until end.
type blocked struct {
	data *strings.Reader
	end  chan struct{}
}

func (b *blocked) Read(p []byte) (int, error) {
	if b.data.Len() > 0 {
		return b.data.Read(p)
	}
	<-b.end
	return 0, errors.New("ended by the test")
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// TestInvokeTool works inside of a program that runs, and nowhere else.
func TestInvokeTool(t *testing.T) {
	var late func() error
	h := least()
	h.RunCode = func(ctx context.Context, p Program) (wire.RunCodeResult, error) {
		late = func() error {
			_, err := p.InvokeTool(context.Background(), wire.ToolCall{Name: "late"})
			return err
		}
		r, err := p.InvokeTool(ctx, wire.ToolCall{Name: "good", Arguments: "{}"})
		if err != nil {
			return wire.RunCodeResult{}, err
		}
		_, err = p.InvokeTool(ctx, wire.ToolCall{Name: "bad", Arguments: "{}"})
		return wire.RunCodeResult{Logs: []string{r.Content[0].Text, err.Error()}}, nil
	}
	s := serve(t, &outside{Backend: backend(t, h)}, func(_ context.Context, c wire.ToolCall) (tool.Result, error) {
		if c.Name != "good" {
			return tool.Result{}, errors.New("no " + c.Name)
		}
		return text("called " + c.Name + c.Arguments), nil
	})
	s.initialize(t)
	reply, err := s.Call(t.Context(), wire.MethodRunCode, wire.RunCode{Program: wire.Program{Code: "x"}, Actor: "s"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out wire.RunCodeResult
	if err := reply.Decode(&out); err != nil || strings.Join(out.Logs, "|") != "called good{}|no bad" {
		t.Errorf("%q, %v", out.Logs, err)
	}
	wantKind(t, late(), tool.Cancelled, "has ended")
	_, err = s.execute(t.Context(), "x")
	wantKind(t, err, tool.Unsupported, "run_code only")
}

// outside calls a tool from where that is not possible.
type outside struct{ Backend }

func (o *outside) Handle(ctx context.Context, r *Request) (wire.Response, error) {
	if r.Method == wire.MethodExecute {
		_, err := r.InvokeTool(ctx, wire.ToolCall{Name: "good"})
		return wire.Response{}, err
	}
	return o.Backend.Handle(ctx, r)
}

// TestOperations: what carries another operation than the host's is not passed on.
func TestOperations(t *testing.T) {
	records := map[string]tool.Process{}
	h := least()
	h.Close = func(context.Context) error { return nil }
	h.Processes.Start = func(_ context.Context, r tool.StartRequest) (tool.Process, error) {
		p := tool.Process{ID: "p-" + r.OperationID, OperationID: r.OperationID}
		switch r.Command {
		case "other":
			p.OperationID = "other"
		case "none":
			p.ID = ""
		}
		records[p.ID] = p
		return p, nil
	}
	h.Processes.List = func(context.Context) (all []tool.Process, err error) {
		for _, p := range records {
			all = append(all, p)
		}
		return all, nil
	}
	s := serve(t, backend(t, h), nil)
	if out := s.initialize(t); strings.Join(out.Capabilities, " ") != wire.CapErrors+" "+wire.CapProcessStart {
		t.Errorf("announced %v", out.Capabilities)
	}
	start := func(operation, command string) error {
		_, err := s.Call(t.Context(), wire.MethodProcessStart, tool.StartRequest{OperationID: operation, Command: command, Actor: "s"}, nil)
		return err
	}
	list := func() error {
		_, err := s.Call(t.Context(), wire.MethodProcessList, wire.ProcessRequest{}, nil)
		return err
	}
	if err := errors.Join(start("a", "true"), list()); err != nil {
		t.Error(err)
	}
	wantKind(t, start("b", "other"), tool.OutcomeUnknown, `"other"`)
	wantKind(t, start("c", "none"), tool.OutcomeUnknown)
	wantKind(t, start("", "true"), tool.InvalidParams, "operation id")
	records = map[string]tool.Process{"p-a": {ID: "p-a", OperationID: "z"}}
	wantKind(t, list(), tool.OutcomeUnknown, `"z"`)
}
