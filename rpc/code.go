package rpc

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/rpc/protocol"
	"github.com/caisson-dev/caisson/session"
)

func codeMethods() map[string]method {
	return map[string]method{
		protocol.MethodToolOffer: {handle: bind((*request).toolOffer), class: slotless},
		protocol.MethodCodeRun:   {handle: bind((*request).codeRun), class: asking},
	}
}

// offers are the tools that the client has offered, by session, until the session
// is closed.
type offers struct {
	mu    sync.Mutex
	tools map[string][]tool.Description
}

func (o *offers) set(session string, tools []tool.Description) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.tools, session)
	if len(tools) == 0 {
		return
	}
	if o.tools == nil {
		o.tools = map[string][]tool.Description{}
	}
	o.tools[session] = tools
}

func (o *offers) of(session string) []tool.Description {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.tools[session] // never changed, only replaced
}

// toolName is what an offered tool may be called: what every interpreter can
// make a function of.
var toolName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`) })

// toolOffer replaces what the client offers to the programs of a session.
func (r *request) toolOffer(ctx context.Context, p *protocol.ToolOfferParams) (*protocol.Empty, error) {
	r.mu.Lock()
	invokes := r.client.ToolInvoke
	r.mu.Unlock()
	if !invokes {
		return nil, tool.Errorf(tool.Unsupported, "a client that offers tools has to announce that it answers %s", protocol.MethodToolInvoke).
			WithHint("set the client capability toolInvoke at initialize")
	}
	if len(p.Tools) > maxOffered {
		return nil, invalidParams("tools", "%d tools are more than the %d that can be offered to a session", len(p.Tools), maxOffered)
	}
	var tools []tool.Description
	for _, t := range p.Tools {
		switch {
		case !toolName().MatchString(t.Name):
			return nil, invalidParams("tools", "%q cannot be the name of a tool: at most 64 letters, digits and underscores, no digit first", t.Name)
		case slices.ContainsFunc(tools, func(d tool.Description) bool { return d.Name == t.Name }):
			return nil, invalidParams("tools", "the tool %q is offered twice", t.Name)
		}
		tools = append(tools, tool.Description{
			Name: t.Name, Description: t.Description, InputSchema: json.RawMessage(slices.Clone(t.InputSchema)),
		})
	}
	if _, err := r.sessions().Get(ctx, p.SessionID); err != nil {
		return nil, err
	}
	r.offers.set(p.SessionID, tools)
	return &protocol.Empty{}, nil
}

// codeRun runs a program. Calls that it makes of tools which the client offered go
// to the client.
func (r *request) codeRun(ctx context.Context, p *protocol.CodeRunParams) (*protocol.CodeRunResult, error) {
	if p.TimeoutMs < 0 || p.TimeoutMs > maxProgramMs {
		return nil, invalidParams("timeoutMs", "timeoutMs must be from 0 to %d", int64(maxProgramMs))
	}
	progress := r.begin(p.WorkDoneToken, "Running a program")
	defer progress.end()
	result, err := r.sessions().RunCode(ctx, session.CodeRequest{
		SessionID: p.SessionID,
		Code:      p.Code,
		Tools:     p.Tools,
		Offered:   r.offers.of(p.SessionID),
		Invoke: func(ctx context.Context, name string, arguments json.RawMessage) (tool.Result, error) {
			return r.invoke(ctx, p.SessionID, name, arguments)
		},
		View:     backends.ResultView(p.ResultView),
		Timeout:  time.Duration(p.TimeoutMs) * time.Millisecond,
		CallID:   p.CallID,
		Actor:    toActor(p.Actor),
		Mode:     tool.Mode(p.PermissionMode),
		Confirm:  r.confirm(),
		RunID:    p.RunID,
		NodeName: p.NodeName,
		Progress: progress.steps(),
	})
	if err != nil {
		return nil, err
	}
	out := &protocol.CodeRunResult{
		Logs: result.Logs, Value: result.Value, Error: result.Error, CallSummary: result.CallSummary,
	}
	for _, part := range result.Media {
		out.Media = append(out.Media, toContent(part))
	}
	return out, nil
}

// invoke has the client run one of its tools.
func (r *request) invoke(ctx context.Context, session, name string, arguments json.RawMessage) (tool.Result, error) {
	var answer protocol.ToolInvokeResult
	err := r.ask(ctx, protocol.MethodToolInvoke, protocol.ToolInvokeParams{
		SessionID: session, Name: name, Arguments: protocol.RawObject(arguments),
	}, &answer)
	if err != nil {
		return tool.Result{}, err
	}
	return invoked(name, answer)
}

// invoked is the result that the client's answer holds, within the limits of every
// result.
func invoked(name string, answer protocol.ToolInvokeResult) (tool.Result, error) {
	result := tool.Result{StructuredContent: json.RawMessage(answer.StructuredContent), IsError: answer.IsError}
	size, inline := len(answer.StructuredContent), 0
	for _, c := range answer.Content {
		part, err := fromContent(c)
		if err != nil {
			return tool.Result{}, err
		}
		size += len(part.Text) + len(part.Data) + len(part.URI) + len(part.Name) + len(part.Artifact)
		inline += len(part.Data) / 4 * 3
		result.Content = append(result.Content, part)
	}
	if len(result.Content) > tool.MaxParts || size > tool.MaxResultBytes || inline > tool.MaxInlineBytes {
		return tool.Result{}, tool.Errorf(tool.ProtocolMismatch, "the client's result of %s is larger than a result may be: %d parts, %d bytes", name, len(result.Content), size).
			WithHint("at most %d parts, %d bytes of inline data and %d bytes in all", tool.MaxParts, tool.MaxInlineBytes, tool.MaxResultBytes)
	}
	return result, nil
}

// fromContent is a piece of content in MCP's shape as a part of a result.
func fromContent(c protocol.Content) (tool.Part, error) {
	part := tool.Part{
		Type: tool.PartType(c.Type), Text: c.Text, Data: c.Data, MIMEType: c.MIMEType, URI: c.URI, Name: c.Name, Artifact: c.Artifact,
	}
	switch c.Type {
	case protocol.ContentText, protocol.ContentImage, protocol.ContentAudio, protocol.ContentResourceLink:
		return part, nil
	case protocol.ContentResource:
		if c.Resource == nil {
			return part, tool.Errorf(tool.ProtocolMismatch, "the client's result has a resource without its contents")
		}
		part.URI, part.MIMEType, part.Text, part.Data = c.Resource.URI, c.Resource.MIMEType, c.Resource.Text, c.Resource.Blob
		return part, nil
	}
	return part, tool.Errorf(tool.ProtocolMismatch, "the client's result has content of the unknown type %q", c.Type)
}
