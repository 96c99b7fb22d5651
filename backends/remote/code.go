package remote

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// RunCode runs a program at the far end. One that runs no programs says
// [tool.Unsupported], where it can say such things, and is not guessed about where
// it cannot. A program is given a little longer than its own timeout, so that it
// can end by that and tell how far it came.
func (e *Environment) RunCode(ctx context.Context, r backends.CodeRequest) (backends.CodeResult, error) {
	const what = "running a program"
	mode, err := e.mode(r.Actor, r.Mode)
	if err != nil {
		return backends.CodeResult{}, err
	}
	if !r.View.Valid() {
		return backends.CodeResult{}, tool.Errorf(tool.InvalidParams, "%s: there is no result view %q", what, r.View).WithPath("result_view")
	}
	caller := ctx
	if r.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.Timeout+e.o.programGrace)
		defer cancel()
	}
	data := wire.RunCode{
		Program:   wire.Program{Code: r.Code, Tools: programTools(r.Tools), ResultView: string(r.View)},
		TimeoutMS: wire.Milliseconds(r.Timeout), Actor: e.actor(r.Actor), PermissionMode: mode,
	}
	// Its callbacks are answered in contexts that derive from this one.
	ctx = context.WithValue(ctx, invokeKey{}, r.Invoke)
	reply, err := e.do(ctx, func(*connection) (wire.ClientRequest, error) {
		return wire.ClientRequest{Method: wire.MethodRunCode, Data: data}, nil
	})
	switch {
	case err == nil:
		return codeResult(reply)
	case tool.KindOf(err) == tool.Timeout && ctx.Err() != nil && caller.Err() == nil:
		return backends.CodeResult{}, tooLong("the program", r.Timeout, err)
	case tool.KindOf(err) == tool.Unsupported:
		return backends.CodeResult{}, tool.Errorf(tool.Unsupported, "this environment runs no programs: %w", err).
			WithHint("call its tools one by one, or choose a profile whose environment runs programs")
	default:
		return backends.CodeResult{}, about(what, err)
	}
}

// invokeKey is the key of what answers the callbacks of a program.
type invokeKey struct{}

// invoke answers a callback: the context is that of the program that makes it.
func invoke(ctx context.Context, call wire.ToolCall) (tool.Result, error) {
	f, _ := ctx.Value(invokeKey{}).(func(context.Context, backends.NestedCall) (tool.Result, error))
	if f == nil {
		return tool.Result{}, errors.New("this program may call no tools")
	}
	arguments := json.RawMessage(call.Arguments)
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	return f(ctx, backends.NestedCall{Name: call.Name, Arguments: arguments})
}

func programTools(list []tool.Description) []wire.ProgramTool {
	tools := make([]wire.ProgramTool, len(list))
	for i, d := range list {
		tools[i] = wire.ProgramTool{Name: d.Name, Description: d.Description, InputSchema: d.InputSchema}
	}
	return tools
}

// codeResult is what a program's reply says.
func codeResult(reply wire.Reply) (backends.CodeResult, error) {
	var out wire.RunCodeResult
	if err := reply.Decode(&out); err != nil {
		return backends.CodeResult{}, about("running a program", err)
	}
	result := backends.CodeResult{
		Logs: out.Logs, Value: notNull(out.Value), Error: out.Error, CallSummary: notNull(out.CallSummary),
	}
	if media := notNull(out.Media); media != nil {
		parts, err := wire.ParseResult(append(append([]byte(`{"content":`), media...), '}'))
		if err != nil {
			return backends.CodeResult{}, foreign("running a program", "its media: %v", err)
		}
		result.Media = parts.Content
	}
	return result, nil
}

func notNull(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}
