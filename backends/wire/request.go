package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/caisson-dev/caisson/backends/pace"
	"github.com/caisson-dev/caisson/backends/tool"
)

// Handler does what requests ask for. Handle is called once a request, initialize
// included, and may take its time: nothing else waits for it. ctx ends when the
// request is cancelled or the connection ends, and the terminal reply is sent when
// Handle returns and not before.
//
// An error becomes the reply's error; a [tool.Error] keeps its kind where the
// host understands that. A method that the handler does not know is
// [UnknownMethod].
type Handler interface {
	Handle(ctx context.Context, r *Request) (Response, error)
}

// HandlerFunc is a function that is a Handler.
type HandlerFunc func(ctx context.Context, r *Request) (Response, error)

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, r *Request) (Response, error) { return f(ctx, r) }

// UnknownMethod is the error for a method that a handler does not know.
func UnknownMethod(method string) error {
	return tool.Errorf(tool.Unsupported, "unknown method %q", clip(method))
}

// Request is one request of the host. It must not be used after Handle has
// returned; Data and Body may be.
type Request struct {
	ID     string
	Method string
	// Data is valid JSON, or nil when the frame had none.
	Data json.RawMessage
	// Body is what was sent beside the frame, complete; nil when nothing was.
	Body []byte

	server *Server
	ctx    context.Context
	cancel context.CancelFunc
	in     *inbox // of Body
	out    *outbox
	size   int64          // of Data and Body, as counted in Server.pending
	parsed *parsedExecute // of execute, once it was taken apart
	kind   *pace.Kind     // how soon those like it are over; may be nil
	// begin is what initialize checked before it is handled.
	begin *beginning
}

// Response is what a handler answers. At most one of Body and Stream is set, and
// only for a host that has [CapBulk].
type Response struct {
	// Data is encoded as JSON; a json.RawMessage goes out as it is. Nil is null.
	Data any
	// Body goes beside the frame.
	Body []byte
	// Done, unless nil, is called when Body is not used any more.
	Done func()
	// Stream is read for exactly Size bytes, which go beside the frame without
	// ever being in memory whole. It is closed in every case.
	Stream io.ReadCloser
	Size   int64
}

// Decode decodes the data into v, strictly for its types and leniently for
// unknown members. Its error is [tool.InvalidParams].
func (r *Request) Decode(v any) error {
	if r.Data == nil {
		return tool.Errorf(tool.InvalidParams, "%s: the frame has no data", r.Method)
	}
	var err error
	if e, ok := v.(*Execute); ok {
		p := r.parseExecute()
		*e, err = p.call, p.err
		e.Call.Arguments = string(p.arguments)
	} else {
		err = decodeJSON(r.Data, v)
	}
	if err != nil {
		return tool.Errorf(tool.InvalidParams, "%s: %w", r.Method, err)
	}
	return nil
}

// parsedExecute is what the data of execute says.
type parsedExecute struct {
	call      Execute // without the arguments
	arguments []byte
	err       error
}

// parseExecute takes the data of execute apart, once.
func (r *Request) parseExecute() *parsedExecute {
	if r.parsed == nil {
		p := &parsedExecute{}
		p.arguments, p.err = p.call.parse(r.Data)
		r.parsed = p
	}
	return r.parsed
}

// Execute is the data of execute, and apart from it the arguments, which came in
// it or as the body: one JSON object. Call.Arguments is left empty.
func (r *Request) Execute() (e Execute, arguments json.RawMessage, err error) {
	p := r.parseExecute()
	if e, arguments, err = p.call, p.arguments, p.err; err != nil {
		return e, nil, tool.Errorf(tool.InvalidParams, "%s: %w", r.Method, err)
	}
	if len(arguments) == 0 {
		arguments = r.Body
	}
	if err := eachMember(arguments, nil); err != nil {
		return e, nil, tool.Errorf(tool.InvalidParams, "the arguments of %s: %w", clip(e.Call.Name), err).WithPath("arguments")
	}
	if e.Actor == "" {
		return e, nil, tool.Errorf(tool.InvalidParams, "execute: the actor is missing").WithPath("actor")
	}
	return e, arguments, nil
}

// HostHas reports whether the host announced the capability at initialize.
func (r *Request) HostHas(capability string) bool {
	if r.begin != nil {
		return slices.Contains(r.begin.data.Capabilities, capability)
	}
	return r.server.hostHas(capability)
}

// Callback calls a tool of the host from inside run_code and returns its
// result. It fails when the request is not run_code, when ctx or the request
// ends, and when the host answers with an error.
func (r *Request) Callback(ctx context.Context, call ToolCall) (tool.Result, error) {
	if r.Method != MethodRunCode {
		return tool.Result{}, fmt.Errorf("wire: a callback outside of %s", MethodRunCode)
	}
	s := r.server
	id := "callback-" + strconv.FormatUint(s.lastCallback.Add(1), 10)
	answer := make(chan callbackAnswer, 1)
	s.mu.Lock()
	s.callbacks[id] = answer
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.callbacks, id)
		s.mu.Unlock()
	}()
	err := s.writer.send(ctx, &Frame{ID: id, ParentID: r.ID, Method: methodTool}, call, nil)
	if err != nil {
		s.checkWrite()
		return tool.Result{}, err
	}
	select {
	case a := <-answer:
		return a.result, a.err
	case <-ctx.Done():
		return tool.Result{}, ctx.Err()
	case <-r.ctx.Done():
		return tool.Result{}, r.ctx.Err()
	}
}

// callbackAnswer is what the host answered to a callback.
type callbackAnswer struct {
	result tool.Result
	err    error
}

// parseAnswer takes the nested object of a callback frame apart.
func parseAnswer(id string, data []byte) callbackAnswer {
	var nested, message, result []byte
	err := eachMember(data, func(name, value []byte) (err error) {
		switch string(name) {
		case "id":
			nested, err = stringValue(value)
		case "error":
			message, err = stringValue(value)
		case "data":
			result = notNull(value)
		}
		return inMember(name, err)
	})
	switch {
	case err != nil:
		return callbackAnswer{err: fmt.Errorf("the host's answer is none: %w", err)}
	case string(nested) != id:
		return callbackAnswer{err: errors.New("the host's answer has another id than its frame")}
	case len(message) > 0:
		return callbackAnswer{err: errors.New(clip(string(message)))}
	}
	var a callbackAnswer
	a.result, a.err = ParseResult(result)
	return a
}
