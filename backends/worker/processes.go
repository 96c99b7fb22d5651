package worker

import (
	"context"
	"encoding/base64"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
	"github.com/caisson-dev/caisson/backends/worker/process"
	"github.com/caisson-dev/caisson/backends/worker/workspace"
)

type processHandler func(ctx context.Context, s *server, o *session, r *wire.Request) (wire.Response, error)

// processMethods are the process/* requests. All but start have one shape.
var processMethods = map[string]processHandler{
	wire.MethodProcessStart: startProcess,
	wire.MethodProcessList: func(ctx context.Context, _ *server, o *session, _ *wire.Request) (wire.Response, error) {
		return data(o.processes.List(ctx))
	},
	wire.MethodProcessCleanup: func(ctx context.Context, _ *server, o *session, _ *wire.Request) (wire.Response, error) {
		cleaned, err := o.processes.Cleanup(ctx)
		if cleaned == nil {
			cleaned = []tool.Process{}
		}
		return data(wire.ProcessCleanup{Cleaned: cleaned}, err)
	},
	wire.MethodProcessRead: readProcess,
	wire.MethodProcessGet: onProcess(func(ctx context.Context, o *session, in wire.ProcessRequest, _ []byte) (any, error) {
		return o.processes.Get(ctx, in.ID)
	}),
	wire.MethodProcessWrite: onProcess(func(ctx context.Context, o *session, in wire.ProcessRequest, body []byte) (any, error) {
		if body == nil {
			body = []byte(in.Input)
		}
		return o.processes.Write(ctx, in.ID, body)
	}),
	wire.MethodProcessCloseStdin: onProcess(func(ctx context.Context, o *session, in wire.ProcessRequest, _ []byte) (any, error) {
		return o.processes.CloseStdin(ctx, in.ID)
	}),
	wire.MethodProcessResize: onProcess(func(ctx context.Context, o *session, in wire.ProcessRequest, _ []byte) (any, error) {
		if in.Cols == 0 || in.Rows == 0 {
			return nil, tool.Errorf(tool.InvalidParams, "a terminal of %d columns and %d rows is no terminal", in.Cols, in.Rows).WithPath("cols")
		}
		return o.processes.Resize(ctx, in.ID, tool.TTY{Cols: in.Cols, Rows: in.Rows})
	}),
	wire.MethodProcessSignal: onProcess(func(ctx context.Context, o *session, in wire.ProcessRequest, _ []byte) (any, error) {
		return o.processes.Signal(ctx, in.ID, in.Signal)
	}),
	wire.MethodProcessStop: onProcess(func(ctx context.Context, o *session, in wire.ProcessRequest, _ []byte) (any, error) {
		return o.processes.Stop(ctx, in.ID)
	}),
	wire.MethodProcessInputAvailable: onProcess(func(ctx context.Context, o *session, in wire.ProcessRequest, _ []byte) (any, error) {
		return o.processes.InputAvailable(ctx, in.ID)
	}),
	wire.MethodProcessCompletionPending: onProcess(func(ctx context.Context, o *session, in wire.ProcessRequest, _ []byte) (any, error) {
		return o.processes.CompletionPending(ctx, in.ID)
	}),
	wire.MethodProcessCompletionDelivered: onProcess(func(ctx context.Context, o *session, in wire.ProcessRequest, _ []byte) (any, error) {
		return o.processes.CompletionDelivered(ctx, in.ID)
	}),
	wire.MethodProcessCompletionMode: onProcess(func(ctx context.Context, o *session, in wire.ProcessRequest, _ []byte) (any, error) {
		return o.processes.SetCompletionMode(ctx, in.ID, in.Mode)
	}),
	// Nothing here looks at a process again by the clock: the record is the
	// whole answer.
	wire.MethodProcessRecheck:          onProcess(recheck),
	wire.MethodProcessRecheckDelivered: onProcess(recheck),
}

func recheck(ctx context.Context, o *session, in wire.ProcessRequest, _ []byte) (any, error) {
	return o.processes.Get(ctx, in.ID)
}

// onProcess is the handler of a request about one process.
func onProcess(f func(ctx context.Context, o *session, in wire.ProcessRequest, body []byte) (any, error)) processHandler {
	return func(ctx context.Context, _ *server, o *session, r *wire.Request) (wire.Response, error) {
		var in wire.ProcessRequest
		if err := r.Decode(&in); err != nil {
			return wire.Response{}, err
		}
		if in.ID == "" {
			return wire.Response{}, tool.Errorf(tool.InvalidParams, "the request names no process").WithPath("id")
		}
		return data(f(ctx, o, in, r.Body))
	}
}

func startProcess(ctx context.Context, s *server, o *session, r *wire.Request) (wire.Response, error) {
	var in tool.StartRequest
	err := r.Decode(&in)
	if err == nil {
		in.PermissionMode, err = s.mode(in.PermissionMode)
	}
	if err == nil {
		in.CWD, err = workspace.Parse(in.CWD)
	}
	if err == nil {
		err = o.root.Check()
	}
	if err == nil && s.o.Foreground {
		err = tool.Errorf(tool.Unsupported, "nothing runs in the background in this environment")
	}
	if err != nil {
		return wire.Response{}, err
	}
	if in.Actor == "" {
		in.Actor = o.binding.Session
	}
	if _, err := o.actor(in.Actor, in.ActorKind); err != nil {
		return wire.Response{}, err
	}
	return data(o.processes.Start(ctx, in))
}

// readProcess answers with the exact bytes beside the frame where the host can
// take them so, else as text, or as base64 when it asked for that.
func readProcess(ctx context.Context, _ *server, o *session, r *wire.Request) (wire.Response, error) {
	var in wire.ProcessRequest
	if err := r.Decode(&in); err != nil {
		return wire.Response{}, err
	}
	var options wire.ReadOptions
	if in.Options != nil {
		options = *in.Options
	}
	switch {
	case in.ID == "":
		return wire.Response{}, tool.Errorf(tool.InvalidParams, "the request names no process").WithPath("id")
	case options.MaxBytes < 0 || options.Wait < 0 || options.MinDwell < 0 || options.OffsetBytes != nil && *options.OffsetBytes < 0:
		return wire.Response{}, tool.Errorf(tool.InvalidParams, "a read option is negative").WithPath("options")
	case options.Encoding != "" && options.Encoding != wire.EncodingBase64:
		return wire.Response{}, tool.Errorf(tool.InvalidParams, "unknown encoding %q", options.Encoding).WithPath("options.Encoding")
	}
	how := options.Tool()
	var large *[process.MaxReadBytes]byte
	if r.HostHas(wire.CapBulk) {
		how.Buffer = func(size int) []byte {
			if size < largeRead {
				return make([]byte, size)
			}
			large = o.buffers.Get().(*[process.MaxReadBytes]byte)
			return large[:size]
		}
	}
	read, err := o.processes.Read(ctx, in.ID, how)
	if err != nil {
		return wire.Response{}, err
	}
	reply := wire.ProcessRead{
		Process:     read.Process,
		StartOffset: read.StartOffset,
		EndOffset:   read.EndOffset,
		TotalBytes:  read.TotalBytes,
		Truncated:   read.Truncated,
		TimedOut:    read.TimedOut,
		Duration:    int64(read.Duration),
	}
	switch {
	case r.HostHas(wire.CapBulk):
		return wire.Response{Data: reply, Body: read.Output, Done: func() {
			if large != nil {
				o.buffers.Put(large)
			}
		}}, nil
	case options.Encoding == wire.EncodingBase64:
		reply.Encoding, reply.Output = wire.EncodingBase64, base64.StdEncoding.EncodeToString(read.Output)
	default:
		reply.Output = string(read.Output)
	}
	return wire.Response{Data: reply}, nil
}
