package adapterkit

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// handled is the Backend of Handlers.
type handled struct{ h Handlers }

func (h Handlers) check() error {
	switch p := h.Processes; {
	case h.Initialize == nil || h.Execute == nil:
		return errors.New("adapterkit: Initialize and Execute are required")
	case p.Start != nil && (p.List == nil || h.Close == nil):
		return errors.New("adapterkit: Processes.Start needs Processes.List and Close: what is started must be listed, and stopped at the end")
	case h.RunJob != nil && h.Exports.Read == nil:
		return errors.New("adapterkit: RunJob needs Exports: what a job leaves is fetched by them")
	case (h.Exports.Read == nil) != (h.Exports.Close == nil):
		return errors.New("adapterkit: Exports.Read and Exports.Close belong together")
	}
	return nil
}

// Initialize announces what there are functions for.
func (b *handled) Initialize(ctx context.Context, s *Session, in wire.Initialize) (wire.Initialized, error) {
	root, err := b.h.Initialize(ctx, s, in)
	if err != nil {
		return wire.Initialized{}, err
	}
	out := wire.Initialized{Root: root, Capabilities: []string{wire.CapErrors}}
	if b.h.Processes.Start != nil {
		out.Capabilities = append(out.Capabilities, wire.CapProcessStart)
	}
	if b.h.RunJob != nil {
		out.Capabilities = append(out.Capabilities, wire.CapBulk, wire.CapJob)
	}
	return out, nil
}

// Close closes the session.
func (b *handled) Close(ctx context.Context) error {
	if b.h.Close == nil {
		return nil
	}
	return b.h.Close(ctx)
}

// Handle calls the function of the method.
func (b *handled) Handle(ctx context.Context, r *Request) (wire.Response, error) {
	switch r.Method {
	case wire.MethodExecute:
		return b.execute(ctx, r)
	case wire.MethodRunCode:
		if b.h.RunCode == nil {
			break
		}
		return typed(r, func(p wire.RunCode) (wire.RunCodeResult, error) {
			if err := knownMode(&p.PermissionMode); err != nil {
				return wire.RunCodeResult{}, err
			}
			return b.h.RunCode(ctx, Program{RunCode: p, request: r})
		})
	case wire.MethodJobRun:
		if b.h.RunJob == nil {
			break
		}
		return b.runJob(ctx, r)
	case wire.MethodExportStream:
		if b.h.RunJob == nil {
			break
		}
		return b.stream(ctx, r)
	case wire.MethodExportRead:
		if b.h.Exports.Read == nil {
			break
		}
		return typed(r, func(x wire.ExportRead) (wire.ExportData, error) {
			data, eof, err := b.h.Exports.Read(ctx, x.Token, x.Offset)
			return wire.ExportData{Data: data, EOF: eof}, err
		})
	case wire.MethodExportClose:
		if b.h.Exports.Close == nil {
			break
		}
		return typed(r, func(x wire.Export) (struct{}, error) { return struct{}{}, b.h.Exports.Close(ctx, x.Token) })
	}
	if strings.HasPrefix(r.Method, "process/") {
		return b.process(ctx, r)
	}
	return wire.Response{}, wire.UnknownMethod(r.Method)
}

func (b *handled) execute(ctx context.Context, r *Request) (wire.Response, error) {
	e, arguments, err := r.Execute()
	if err != nil {
		return wire.Response{}, err
	}
	if err := knownMode(&e.PermissionMode); err != nil {
		return wire.Response{}, err
	}
	result, err := b.h.Execute(ctx, Call{
		ID: e.Call.ID, Name: e.Call.Name, Arguments: arguments, Actor: e.Actor, Mode: e.PermissionMode,
	})
	if err != nil {
		return wire.Response{}, err
	}
	return wire.Response{Data: result}, nil
}

// process calls the function of a process method.
func (b *handled) process(ctx context.Context, r *Request) (wire.Response, error) {
	p := b.h.Processes
	one := func(f func(context.Context, string) (tool.Process, error)) func(context.Context, wire.ProcessRequest) (tool.Process, error) {
		if f == nil {
			return nil
		}
		return func(ctx context.Context, in wire.ProcessRequest) (tool.Process, error) { return f(ctx, in.ID) }
	}
	record := map[string]func(context.Context, wire.ProcessRequest) (tool.Process, error){
		wire.MethodProcessGet:                 one(p.Get),
		wire.MethodProcessStop:                one(p.Stop),
		wire.MethodProcessCompletionDelivered: p.CompletionDelivered,
		wire.MethodProcessCompletionMode:      p.CompletionMode,
		wire.MethodProcessRecheck:             p.Recheck,
		wire.MethodProcessRecheckDelivered:    p.RecheckDelivered,
	}
	if f := record[r.Method]; f != nil {
		return typed(r, func(in wire.ProcessRequest) (tool.Process, error) { return f(ctx, in) })
	}
	switch {
	case r.Method == wire.MethodProcessStart && p.Start != nil:
		return typed(r, func(in tool.StartRequest) (tool.Process, error) {
			if err := knownMode(&in.PermissionMode); err != nil {
				return tool.Process{}, err
			}
			return p.Start(ctx, in)
		})
	case r.Method == wire.MethodProcessList && p.List != nil:
		return answer(list(p.List(ctx)))
	case r.Method == wire.MethodProcessRead && p.Read != nil:
		return typed(r, func(in wire.ProcessRequest) (wire.ProcessRead, error) { return read(ctx, p.Read, in) })
	case r.Method == wire.MethodProcessWrite && p.Write != nil:
		return typed(r, func(in wire.ProcessRequest) (tool.Process, error) {
			if r.Body != nil {
				return p.Write(ctx, in.ID, r.Body)
			}
			return p.Write(ctx, in.ID, []byte(in.Input))
		})
	case r.Method == wire.MethodProcessResize && p.Resize != nil:
		return typed(r, func(in wire.ProcessRequest) (tool.Process, error) {
			return p.Resize(ctx, in.ID, tool.TTY{Cols: in.Cols, Rows: in.Rows})
		})
	case r.Method == wire.MethodProcessInputAvailable && p.InputAvailable != nil:
		return typed(r, func(in wire.ProcessRequest) (bool, error) { return p.InputAvailable(ctx, in.ID) })
	case r.Method == wire.MethodProcessCompletionPending && p.CompletionPending != nil:
		return typed(r, func(in wire.ProcessRequest) (bool, error) { return p.CompletionPending(ctx, in) })
	case r.Method == wire.MethodProcessCleanup && p.Cleanup != nil:
		cleaned, err := list(p.Cleanup(ctx))
		return answer(wire.ProcessCleanup{Cleaned: cleaned}, err)
	}
	return wire.Response{}, wire.UnknownMethod(r.Method)
}

// typed decodes the request for f and answers what it returns.
func typed[P, R any](r *Request, f func(P) (R, error)) (wire.Response, error) {
	var in P
	if err := r.Decode(&in); err != nil {
		return wire.Response{}, err
	}
	return answer(f(in))
}

func answer[R any](v R, err error) (wire.Response, error) {
	if err != nil {
		return wire.Response{}, err
	}
	return wire.Response{Data: v}, nil
}

// list is never null in JSON.
func list(records []tool.Process, err error) ([]tool.Process, error) {
	if records == nil {
		records = []tool.Process{}
	}
	return records, err
}

// read answers process/read. Output is text: what is no UTF-8 becomes U+FFFD,
// while the offsets count the bytes.
func read(ctx context.Context, f func(context.Context, string, tool.ReadOptions) (tool.ReadResult, error), in wire.ProcessRequest) (wire.ProcessRead, error) {
	var o tool.ReadOptions
	encoding := ""
	if in.Options != nil {
		o, encoding = in.Options.Tool(), in.Options.Encoding
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultRead
	}
	if o.MaxBytes < 0 || o.Wait < 0 || o.MinDwell < 0 || o.OffsetBytes != nil && *o.OffsetBytes < 0 {
		return wire.ProcessRead{}, tool.Errorf(tool.InvalidParams, "process/read: an option is negative").WithPath("options")
	}
	got, err := f(ctx, in.ID, o)
	out := wire.ProcessRead{
		Process: got.Process, Output: string(got.Output),
		StartOffset: got.StartOffset, EndOffset: got.EndOffset, TotalBytes: got.TotalBytes,
		Truncated: got.Truncated, TimedOut: got.TimedOut, Duration: int64(got.Duration),
	}
	if encoding == wire.EncodingBase64 {
		out.Output, out.Encoding = base64.StdEncoding.EncodeToString(got.Output), encoding
	}
	return out, err
}

// defaultRead is how much process/read returns when nothing is said, in bytes.
const defaultRead = 32 << 10

// knownMode fills in the default mode, and refuses one that there is not.
func knownMode(m *tool.Mode) error {
	if *m == "" {
		*m = tool.Standard
	}
	if !m.Valid() {
		return tool.Errorf(tool.InvalidParams, "there is no permission mode %q", *m).WithPath("permission_mode")
	}
	return nil
}
