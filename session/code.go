package session

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// codeRun is the name of a program among executions. The calls that it makes are
// executions of their own, under their own names.
const codeRun = "code.run"

// CodeRequest asks for one program that calls tools.
type CodeRequest struct {
	SessionID string
	Code      string
	// Tools are the names of the tools that the program may call; nil means all
	// that the environment has, and all of Offered.
	Tools []string
	// Offered are tools that Invoke runs. One of them hides a tool of the
	// environment that has the same name.
	Offered []tool.Description
	// Invoke runs an offered tool; its context ends with the program. It is called
	// concurrently.
	Invoke func(ctx context.Context, name string, arguments json.RawMessage) (tool.Result, error)
	// View is what the program sees of results; "" is the default.
	View backends.ResultView
	// Timeout is the program's own; 0, and what is longer, means the profile's.
	Timeout time.Duration
	// The others are as in [CallRequest], and hold for the calls of the program too.
	CallID   string
	Actor    tool.Actor
	Mode     tool.Mode
	Confirm  Confirm
	RunID    string
	NodeName string
	Progress backends.Progress
}

// RunCode runs a program in the session's environment. An environment that runs
// none is [tool.Unsupported]. A program that fails or times out is a result with
// Error. Each call that it makes goes the way of every other call, with its events,
// as the program's actor and in its mode.
func (m *Manager) RunCode(ctx context.Context, r CodeRequest) (backends.CodeResult, error) {
	if err := r.check(); err != nil {
		return backends.CodeResult{}, err
	}
	s, err := m.use(r.SessionID)
	if err != nil {
		return backends.CodeResult{}, err
	}
	x := Execution{
		Tool: codeRun, CallID: r.CallID, Actor: r.Actor, RunID: r.RunID, NodeName: r.NodeName,
		admission: &admission{tool: codeRun, mode: r.Mode, arguments: made(codeArguments{r.Code}), confirm: r.Confirm},
	}
	var result backends.CodeResult
	p, err := s.placeFor(tool.GroupCode, codeRun)
	if err != nil {
		return backends.CodeResult{}, err
	}
	err = s.execute(ctx, p, x, func(ctx context.Context, x *Execution) error {
		result, err = p.runCode(ctx, r)
		x.admission.output = returned(tool.Result{Content: result.Media}) + int64(len(result.Value)+len(result.Error)+len(result.CallSummary))
		for _, line := range result.Logs {
			x.admission.output += int64(len(line))
		}
		return err
	})
	return result, err
}

func (r *CodeRequest) check() error {
	switch {
	case r.Code == "":
		return invalid("code", "there is no program to run")
	case r.Timeout < 0:
		return invalid("timeoutMs", "a timeout cannot be negative")
	case !r.View.Valid():
		return invalid("resultView", "there is no view of results %q", r.View)
	case len(r.CallID) > maxCallID:
		return invalid("callId", "a call's id has at most %d bytes", maxCallID)
	}
	return checkActor(r.SessionID, r.Actor)
}

// runCode does what a program asks for.
func (p *place) runCode(ctx context.Context, r CodeRequest) (backends.CodeResult, error) {
	mode, err := p.mode(r.Mode, r.Actor, Constraints{})
	if err != nil {
		return backends.CodeResult{}, err
	}
	env, err := p.environment(ctx, r.Progress)
	if err != nil {
		return backends.CodeResult{}, err
	}
	runner, ok := env.(backends.CodeRunner)
	if !ok {
		return backends.CodeResult{}, tool.Errorf(tool.Unsupported, "the environment of the profile %q runs no programs", p.saved.Profile.Name).
			WithHint("Call its tools one by one, or choose a profile whose environment runs programs.")
	}
	own, err := p.s.offers(ctx)
	if err != nil {
		return backends.CodeResult{}, err
	}
	tools, err := programTools(r, own)
	if err != nil {
		return backends.CodeResult{}, err
	}
	timeout := lower(p.toolLimits().Timeout, r.Timeout)
	running := &program{p: p, r: r, tools: tools}
	if timeout > 0 {
		running.until = p.s.m.o.Now().Add(timeout)
	}
	return runner.RunCode(ctx, backends.CodeRequest{
		Code: r.Code, Tools: tools, View: r.View, Timeout: timeout,
		Actor: tool.Actor{ID: p.s.actorID(r.Actor), Kind: r.Actor.Kind}, Mode: mode,
		Invoke: running.invoke,
	})
}

// programTools are the tools that a program may call.
func programTools(r CodeRequest, own []Tool) ([]tool.Description, error) {
	all := slices.Clone(r.Offered)
	for _, d := range own {
		if !named(all, d.Name) {
			all = append(all, d.Description)
		}
	}
	if r.Tools == nil {
		return all, nil
	}
	chosen := make([]tool.Description, 0, len(r.Tools))
	for _, name := range r.Tools {
		i := slices.IndexFunc(all, func(d tool.Description) bool { return d.Name == name })
		switch {
		case i < 0:
			return nil, invalid("tools", "there is no tool %q that a program could call", name)
		case named(chosen, name):
			return nil, invalid("tools", "the tool %q is named twice", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func named(list []tool.Description, name string) bool {
	return slices.ContainsFunc(list, func(d tool.Description) bool { return d.Name == name })
}

// program is a program that runs.
type program struct {
	p     *place
	r     CodeRequest
	tools []tool.Description
	until time.Time // when its time is over; zero is never
}

// invoke makes one call for the program: as every call is made, or by whoever
// offered the tool.
func (g *program) invoke(ctx context.Context, c backends.NestedCall) (tool.Result, error) {
	if !named(g.tools, c.Name) {
		return tool.Result{}, tool.Errorf(tool.ToolNotFound, "the program has no tool %q", c.Name)
	}
	// The mode is what was asked for: the default of the program's own profile is not
	// that of another one that the call may go to.
	call := CallRequest{
		SessionID: g.p.s.id, Name: c.Name, Arguments: c.Arguments,
		Actor: g.r.Actor, Mode: g.r.Mode, Confirm: g.r.Confirm, RunID: g.r.RunID, NodeName: g.r.NodeName,
	}
	if err := call.check(); err != nil {
		return tool.Result{}, err
	}
	if !g.until.IsZero() {
		// Its calls have no more time than it has left.
		left := max(g.until.Sub(g.p.s.m.o.Now()), 1)
		call.Constraints.Timeout = left
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, left+callGrace, tool.Errorf(tool.Timeout, "the program's time was over"))
		defer cancel()
	}
	if !named(g.r.Offered, c.Name) {
		result, err := g.p.s.m.Call(ctx, call)
		return spelled(result.Result), err
	}
	var result tool.Result
	x := Execution{
		Tool: c.Name, Actor: call.Actor, RunID: call.RunID, NodeName: call.NodeName,
		admission: &admission{mode: call.Mode, arguments: given(call.Arguments), confirm: call.Confirm},
	}
	err := g.p.s.execute(ctx, g.p, x, func(ctx context.Context, x *Execution) (err error) {
		result, err = g.r.Invoke(ctx, c.Name, call.Arguments)
		x.admission.output = returned(result)
		return err
	})
	return result, err
}

// spelled is a result whose texts are text: what leaves this process knows no
// other.
func spelled(r tool.Result) tool.Result {
	r.Content = slices.Clone(r.Content)
	for i, part := range r.Content {
		if part.Quoted != nil {
			r.Content[i].Text, r.Content[i].Quoted = part.String(), nil
		}
	}
	return r
}
