package rpc

import (
	"context"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"go.lsp.dev/jsonrpc2"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/rpc/frame"
	"github.com/caisson-dev/caisson/rpc/protocol"
	"github.com/caisson-dev/caisson/session"
)

func toolMethods() map[string]method {
	return map[string]method{
		protocol.MethodToolList: {handle: bind((*request).toolList), class: slotted},
		protocol.MethodToolCall: {handle: bind((*request).toolCall), class: slotted},
	}
}

func (r *request) toolList(ctx context.Context, p *protocol.SessionParams) (*protocol.ToolListResult, error) {
	tools, err := r.sessions().Tools(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	out := &protocol.ToolListResult{}
	for _, t := range tools {
		out.Tools = append(out.Tools, protocol.Tool{
			Name:        t.Name,
			Group:       protocol.ToolGroup(t.Group),
			Description: t.Description.Description,
			InputSchema: protocol.RawObject(t.InputSchema),
			Annotations: protocol.ToolAnnotations(t.Annotations),
			Profile:     t.Profile,
		})
	}
	return out, nil
}

func (r *request) toolCall(ctx context.Context, p *protocol.ToolCallParams) (jsonrpc2.RawMessage, error) {
	constraints, err := r.constraints(p.Constraints)
	if err != nil {
		return nil, err
	}
	progress := r.begin(p.WorkDoneToken, p.Name)
	defer progress.end()
	result, err := r.sessions().Call(ctx, session.CallRequest{
		SessionID:   p.SessionID,
		Name:        p.Name,
		Arguments:   []byte(p.Arguments),
		CallID:      p.CallID,
		Actor:       toActor(p.Actor),
		Mode:        tool.Mode(p.PermissionMode),
		Constraints: constraints,
		Confirm:     r.confirm(),
		RunID:       p.RunID,
		NodeName:    p.NodeName,
		Progress:    progress.steps(),
	})
	if err != nil {
		return nil, err
	}
	size := resultSize(result)
	if size > frame.LongResult {
		return ToolCallData(result)
	}
	if r.scratch, _ = r.scratches.Get().(*[]byte); r.scratch == nil {
		r.scratch = new([]byte)
	}
	raw, err := appendResult(slices.Grow((*r.scratch)[:0], size), result)
	if *r.scratch = raw; len(raw) > frame.LongResult {
		r.scratch = nil // which the stream keeps
	}
	return raw, err
}

// ToolCallData is a result as the protocol has it: the JSON of a
// [protocol.ToolCallResult]. It is written by hand: a result may hold megabytes of
// JSON that the far end encoded and that its connection checked, and reflection
// would read all of it again.
func ToolCallData(r session.CallResult) (jsonrpc2.RawMessage, error) {
	return appendResult(make([]byte, 0, resultSize(r)), r)
}

func appendResult(dst []byte, r session.CallResult) (jsonrpc2.RawMessage, error) {
	var err error
	dst = append(dst, `{"content":[`...)
	for i, part := range r.Content {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendPart(dst, part); err != nil {
			return nil, err
		}
	}
	dst = append(dst, ']')
	if len(r.StructuredContent) > 0 {
		dst = append(dst, `,"structuredContent":`...)
		dst = append(dst, r.StructuredContent...)
	}
	if r.IsError {
		dst = append(dst, `,"isError":true`...)
	}
	dst = append(dst, `,"meta":{"callId":`...)
	dst = appendText(dst, r.CallID)
	dst = append(dst, `,"backend":`...)
	dst = appendText(dst, r.Backend)
	dst = append(dst, `,"profile":`...)
	dst = appendText(dst, r.Profile)
	dst = append(dst, `,"durationMs":`...)
	dst = strconv.AppendInt(dst, r.Duration.Milliseconds(), 10)
	if r.FuelRemaining != nil {
		dst = append(dst, `,"fuelRemaining":`...)
		dst = strconv.AppendUint(dst, *r.FuelRemaining, 10)
	}
	if len(r.Meta) > 0 {
		dst = append(dst, `,"tool":`...)
		dst = append(dst, r.Meta...)
	}
	return append(dst, '}', '}'), nil
}

// resultSize is about how long the result will be.
func resultSize(r session.CallResult) int {
	size := 512 + len(r.StructuredContent) + len(r.Meta)
	for _, p := range r.Content {
		size += 128 + len(p.Text) + len(p.Text)/16 + len(p.Quoted) + len(p.Data)
	}
	return size
}

// appendPart writes one piece of content in MCP's shape, which knows no files:
// one with its bytes is an embedded resource, one without a link to it.
func appendPart(dst []byte, p tool.Part) ([]byte, error) {
	if p.Type == tool.PartText {
		dst = append(dst, `{"type":"text","text":`...)
		if p.Quoted != nil {
			return append(append(dst, p.Quoted...), '}'), nil
		}
		return append(appendText(dst, p.Text), '}'), nil
	}
	raw, err := codec{}.Marshal(toContent(p))
	return append(dst, raw...), err
}

// toContent is a part in MCP's shape.
func toContent(p tool.Part) protocol.Content {
	c := protocol.Content{
		Type:     protocol.ContentType(p.Type),
		Data:     p.Data,
		MIMEType: p.MIMEType,
		URI:      p.URI,
		Name:     p.Name,
		Artifact: p.Artifact,
	}
	switch {
	case p.Type == tool.PartText:
		c.Text = p.String()
	case p.Type == tool.PartResource, p.Type == tool.PartFile && (p.Data != "" || p.Text != ""):
		c = protocol.Content{
			Type:     protocol.ContentResource,
			Artifact: p.Artifact,
			Resource: &protocol.EmbeddedResource{URI: resourceURI(p), MIMEType: p.MIMEType, Text: p.Text, Blob: p.Data},
		}
	case p.Type == tool.PartFile:
		c.Type, c.URI = protocol.ContentResourceLink, resourceURI(p)
	}
	return c
}

// resourceURI is the part's URI, or one made of its name: MCP demands one.
func resourceURI(p tool.Part) string {
	if p.URI != "" {
		return p.URI
	}
	return "file:///" + p.Name
}

// appendText writes a JSON string; bytes that are not UTF-8 become U+FFFD.
func appendText(dst []byte, s string) []byte {
	// The only error tells of those bytes, and they are in place then.
	dst, _ = jsontext.AppendQuote(dst, s)
	return dst
}
