package remote

import (
	"context"
	"encoding/base64"
	"time"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// Processes are the background processes of this session in the environment.
func (e *Environment) Processes() backends.Processes { return processes{e} }

type processes struct{ e *Environment }

// Start starts a process. A far end without process.start.v1 is not even asked.
func (p processes) Start(ctx context.Context, r tool.StartRequest) (tool.Process, error) {
	const what = "starting a process"
	if r.OperationID == "" {
		return tool.Process{}, tool.Errorf(tool.InvalidParams, "%s: the operation id is missing", what).WithPath("operation_id")
	}
	actor := tool.Actor{ID: r.Actor, Kind: tool.ActorSubagent}
	if r.ActorKind == tool.ActorSideChat {
		actor.Kind = tool.ActorSideChat
	}
	r.Actor = p.e.actor(actor)
	mode, err := p.e.mode(actor, r.PermissionMode)
	if err != nil {
		return tool.Process{}, err
	}
	r.PermissionMode = mode
	var record tool.Process
	err = p.e.request(ctx, what, func(c *connection) (wire.ClientRequest, error) {
		if !c.Has(wire.CapProcessStart) {
			return wire.ClientRequest{}, lacking("start processes", wire.CapProcessStart)
		}
		start := r
		if !c.Has(wire.CapActors) {
			start.ActorKind = ""
		}
		return wire.ClientRequest{Method: wire.MethodProcessStart, Data: start}, nil
	}, &record)
	if err != nil {
		return tool.Process{}, err
	}
	if record.ID == "" || record.OperationID != r.OperationID {
		return tool.Process{}, &tool.Error{
			Kind:    tool.OutcomeUnknown,
			Message: "the far end answered the start of a process with the record of another operation",
			Hint:    "list the processes; the adapter breaks process.start.v1",
		}
	}
	p.e.track.complete(&record)
	return record, nil
}

// List lists the session's processes.
func (p processes) List(ctx context.Context) ([]tool.Process, error) {
	ctx, cancel := p.e.deadlines.within(ctx, requestTimeout)
	defer cancel()
	reply, err := p.e.do(ctx, func(*connection) (wire.ClientRequest, error) { return listRequest(), nil })
	if err != nil {
		return nil, about("listing the processes", err)
	}
	records, err := decodeList(reply)
	for i := range records {
		p.e.track.complete(&records[i])
	}
	return records, err
}

func listRequest() wire.ClientRequest {
	return wire.ClientRequest{Method: wire.MethodProcessList, Data: wire.ProcessRequest{}}
}

// listProcesses is List over a connection that nobody else uses yet.
func listProcesses(ctx context.Context, c *connection) ([]tool.Process, error) {
	reply, err := c.Do(ctx, listRequest())
	if err != nil {
		return nil, err
	}
	return decodeList(reply)
}

func decodeList(reply wire.Reply) ([]tool.Process, error) {
	var records []tool.Process
	if err := reply.Decode(&records); err != nil {
		return nil, err
	}
	if len(records) > maxProcesses {
		return nil, foreign("listing the processes", "%d records; at most %d are taken", len(records), maxProcesses)
	}
	return records, nil
}

// one sends a request about one process, whose reply is its record.
func (p processes) one(ctx context.Context, what string, request func(c *connection) (wire.ClientRequest, error)) (tool.Process, error) {
	var record tool.Process
	if err := p.e.request(ctx, what, request, &record); err != nil {
		return tool.Process{}, err
	}
	p.e.track.complete(&record)
	return record, nil
}

// plain is a request that every far end understands.
func plain(method string, data wire.ProcessRequest) func(*connection) (wire.ClientRequest, error) {
	return func(*connection) (wire.ClientRequest, error) {
		return wire.ClientRequest{Method: method, Data: data}, nil
	}
}

// ours is a request that only a far end with [wire.CapProcess] understands.
func ours(what, method string, data wire.ProcessRequest) func(*connection) (wire.ClientRequest, error) {
	return func(c *connection) (wire.ClientRequest, error) {
		if !c.Has(wire.CapProcess) {
			return wire.ClientRequest{}, lacking(what, wire.CapProcess)
		}
		return wire.ClientRequest{Method: method, Data: data}, nil
	}
}

func (p processes) Get(ctx context.Context, id string) (tool.Process, error) {
	return p.one(ctx, "looking at process "+id, plain(wire.MethodProcessGet, wire.ProcessRequest{ID: id}))
}

// Write writes to the process's standard input: exactly the bytes where both
// ends can, else they must be text.
func (p processes) Write(ctx context.Context, id string, data []byte) (tool.Process, error) {
	what := "writing to process " + id
	return p.one(ctx, what, func(c *connection) (wire.ClientRequest, error) {
		in := wire.ProcessRequest{ID: id}
		switch {
		case c.Has(wire.CapBulk):
			return wire.ClientRequest{Method: wire.MethodProcessWrite, Data: in, Body: data}, nil
		case !utf8.Valid(data):
			return wire.ClientRequest{}, lacking("take input that is not UTF-8", wire.CapBulk)
		default:
			in.Input = string(data)
			return wire.ClientRequest{Method: wire.MethodProcessWrite, Data: in}, nil
		}
	})
}

func (p processes) CloseStdin(ctx context.Context, id string) (tool.Process, error) {
	return p.one(ctx, "closing the input of process "+id,
		ours("close the input of a process", wire.MethodProcessCloseStdin, wire.ProcessRequest{ID: id}))
}

func (p processes) Resize(ctx context.Context, id string, size tool.TTY) (tool.Process, error) {
	return p.one(ctx, "resizing the terminal of process "+id,
		plain(wire.MethodProcessResize, wire.ProcessRequest{ID: id, Cols: size.Cols, Rows: size.Rows}))
}

func (p processes) Signal(ctx context.Context, id, signal string) (tool.Process, error) {
	return p.one(ctx, "signalling process "+id,
		ours("signal a process", wire.MethodProcessSignal, wire.ProcessRequest{ID: id, Signal: signal}))
}

func (p processes) Stop(ctx context.Context, id string) (tool.Process, error) {
	return p.one(ctx, "stopping process "+id, plain(wire.MethodProcessStop, wire.ProcessRequest{ID: id}))
}

// Read reads output. The bytes are exact where both ends can; a peer that knows
// only text has replaced what is not UTF-8.
func (p processes) Read(ctx context.Context, id string, o tool.ReadOptions) (tool.ReadResult, error) {
	what := "reading the output of process " + id
	if o.MaxBytes < 0 || o.Wait < 0 || o.MinDwell < 0 || o.OffsetBytes != nil && *o.OffsetBytes < 0 {
		return tool.ReadResult{}, tool.Errorf(tool.InvalidParams, "%s: an option is negative", what)
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultRead
	}
	ctx, cancel := p.e.deadlines.within(ctx, requestTimeout+o.Wait+o.MinDwell)
	defer cancel()
	reply, err := p.e.do(ctx, func(c *connection) (wire.ClientRequest, error) { return readRequest(c, id, o), nil })
	if err != nil {
		return tool.ReadResult{}, about(what, err)
	}
	var read wire.ProcessRead
	if err := reply.Decode(&read); err != nil {
		return tool.ReadResult{}, about(what, err)
	}
	output, err := outputOf(read, reply.Body)
	if err != nil {
		return tool.ReadResult{}, foreign(what, "%v", err)
	}
	if read.StartOffset < 0 || read.EndOffset < read.StartOffset || len(output) > maxRead {
		return tool.ReadResult{}, foreign(what, "%d bytes from %d to %d", len(output), read.StartOffset, read.EndOffset)
	}
	p.e.track.completeRead(&read)
	return tool.ReadResult{
		Process: read.Process, Output: output,
		StartOffset: read.StartOffset, EndOffset: read.EndOffset, TotalBytes: read.TotalBytes,
		Truncated: read.Truncated, TimedOut: read.TimedOut, Duration: time.Duration(read.Duration),
	}, nil
}

func readRequest(c *connection, id string, o tool.ReadOptions) wire.ClientRequest {
	options := &wire.ReadOptions{OffsetBytes: o.OffsetBytes, Wait: int64(o.Wait), MinDwell: int64(o.MinDwell)}
	if c.Has(wire.CapBulk) {
		options.MaxBytes, options.Encoding = min(o.MaxBytes, maxRead), wire.EncodingBase64
	} else {
		options.MaxBytes = min(o.MaxBytes, maxTextRead)
	}
	return wire.ClientRequest{
		Method:  wire.MethodProcessRead,
		Data:    wire.ProcessRequest{ID: id, Options: options},
		MaxBody: int64(options.MaxBytes),
		Into:    o.Buffer,
	}
}

// outputOf is the output in a reply: beside it, in base64, or as text.
func outputOf(read wire.ProcessRead, body []byte) ([]byte, error) {
	switch {
	case body != nil:
		return body, nil
	case read.Encoding == wire.EncodingBase64:
		return base64.StdEncoding.DecodeString(read.Output)
	default:
		return []byte(read.Output), nil
	}
}
