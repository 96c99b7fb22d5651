package remote

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// do sends a request over the connection, or a new one. Only a request that was
// provably never sent is sent again, over the next connection.
func (e *Environment) do(ctx context.Context, r func(c *connection) (wire.ClientRequest, error)) (wire.Reply, error) {
	for again := true; ; again = false {
		c, err := e.connected(ctx)
		if err != nil {
			return wire.Reply{}, err
		}
		request, err := r(c)
		if err != nil {
			return wire.Reply{}, err
		}
		reply, err := c.Do(ctx, request)
		if again && err != nil && notSent(ctx, err) {
			e.conn.CompareAndSwap(c, nil)
			continue
		}
		if tool.KindOf(err) == tool.OutcomeUnknown && c.Err() != nil {
			e.unanswered(c)
		}
		return reply, err
	}
}

// ask sends a request without a body and decodes the reply into out.
func (e *Environment) ask(ctx context.Context, what, method string, data, out any) error {
	return e.request(ctx, what, func(*connection) (wire.ClientRequest, error) {
		return wire.ClientRequest{Method: method, Data: data}, nil
	}, out)
}

// request is ask for requests that depend on the connection.
func (e *Environment) request(ctx context.Context, what string, r func(*connection) (wire.ClientRequest, error), out any) error {
	ctx, cancel := e.deadlines.within(ctx, requestTimeout)
	defer cancel()
	reply, err := e.do(ctx, r)
	if err == nil && out != nil {
		err = reply.Decode(out)
	}
	if err != nil {
		return about(what, err)
	}
	return nil
}

// Call runs one tool. Nothing ever falls back to a local one: a name that the
// far end does not have is its error, or ours where it has said what it has.
func (e *Environment) Call(ctx context.Context, r tool.Request) (tool.Result, error) {
	mode, err := e.mode(r.Actor, r.Mode)
	if err != nil {
		return tool.Result{}, err
	}
	caller, timeout := ctx, r.Timeout
	if timeout <= 0 {
		timeout = e.b.Profile.Timeout
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = e.deadlines.within(ctx, timeout)
		defer cancel()
	}
	var most int64 // that is kept to here
	reply, err := e.do(ctx, func(c *connection) (wire.ClientRequest, error) {
		if most = r.MaxOutputBytes; c.Has(wire.CapLimits) {
			most = 0
		}
		return e.execute(c, r, mode)
	})
	if err == nil {
		var result tool.Result
		if result, err = wire.ParseResult(reply.Data); err == nil {
			return limitOutput(result, most)
		}
		err = foreign(r.Name, "%v", err)
		return tool.Result{}, err
	}
	if tool.KindOf(err) == tool.Timeout && ctx.Err() != nil && caller.Err() == nil {
		return tool.Result{}, tooLong(r.Name, timeout, err)
	}
	return tool.Result{}, about(r.Name, err)
}

// tooLong is the error of a call that was cancelled for its timeout.
func tooLong(name string, timeout time.Duration, err error) error {
	hint := "allow it more time: the lowest limit of the call, its session, the project, the profile and the configuration counts"
	if tool.GroupOf(name) == tool.GroupShell {
		hint = "run the command in the background, or " + hint
	}
	return &tool.Error{
		Kind: tool.Timeout, Message: fmt.Sprintf("%s took longer than %s and was cancelled", name, timeout), Hint: hint, Err: err,
	}
}

// execute is the request for a call.
func (e *Environment) execute(c *connection, r tool.Request, mode tool.Mode) (wire.ClientRequest, error) {
	// The built-in tools are what every far end has.
	if tool.GroupOf(r.Name) == tool.GroupPlugins && !c.Has(wire.CapTools) {
		return wire.ClientRequest{}, tool.Errorf(tool.ToolNotFound, "there is no tool called %q in this environment", r.Name)
	}
	x := &wire.Execute{
		Call:           wire.ToolCall{ID: r.ID, Name: r.Name},
		Actor:          e.actor(r.Actor),
		PermissionMode: mode,
	}
	if r.Actor.Kind == tool.ActorSideChat && c.Has(wire.CapActors) {
		x.ActorKind = tool.ActorSideChat // for others it is one of the subagents, and read_only all the same
	}
	request := wire.ClientRequest{Method: wire.MethodExecute, Data: x, Prompt: tool.GroupOf(r.Name) == tool.GroupFile}
	switch {
	case len(r.Arguments) > wire.BulkArguments && c.Has(wire.CapBulk):
		request.Body = r.Arguments
	case len(r.Arguments) > 0:
		x.Call.Arguments = string(r.Arguments)
	default:
		x.Call.Arguments = "{}"
	}
	if r.MaxOutputBytes > 0 && c.Has(wire.CapLimits) {
		x.MaxOutputBytes = r.MaxOutputBytes
	}
	return request, nil
}

// actor is how an actor is written on the wire.
func (e *Environment) actor(a tool.Actor) string {
	if a.ID == "" || a.Kind == tool.ActorMain || a.Kind == "" {
		return e.b.Session
	}
	return a.ID
}

// mode is the permission mode of a call. The far end holds the ceiling; a peer
// that knows none is not asked for more than it either.
func (e *Environment) mode(a tool.Actor, m tool.Mode) (tool.Mode, error) {
	p := e.b.Profile
	if m == "" {
		m = p.PermissionMode
	}
	if m == "" {
		m = tool.Standard
	}
	if a.Kind == tool.ActorSideChat {
		m = tool.ReadOnly
	}
	ceiling := p.MaxPermissionMode
	if ceiling == "" {
		ceiling = tool.Standard
	}
	if !m.Within(ceiling) {
		return m, tool.Errorf(tool.Denied, "the permission mode %q is above this environment's ceiling, %s", m, ceiling).
			WithHint("raise max_permission_mode in the profile %q and open a new session", p.Name)
	}
	return m, nil
}

// Tools describes what the far end offers: what it says itself, else the
// descriptions of the workspace tools that the backend was given.
func (e *Environment) Tools(ctx context.Context) ([]tool.Description, error) {
	c, err := e.connected(ctx)
	if err != nil {
		return nil, about("listing the tools", err)
	}
	if !c.Has(wire.CapTools) {
		return slices.Clone(e.o.Tools), nil
	}
	var list wire.ToolList
	if err := e.ask(ctx, "listing the tools", wire.MethodToolsList, struct{}{}, &list); err != nil {
		return nil, err
	}
	if len(list.Tools) > maxTools {
		return nil, foreign("listing the tools", "%d tools; at most %d are taken", len(list.Tools), maxTools)
	}
	return offered(list.Tools, e.o.Tools), nil
}
