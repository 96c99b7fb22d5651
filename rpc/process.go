package rpc

import (
	"context"
	"encoding/base64"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/rpc/protocol"
	"github.com/caisson-dev/caisson/session"
)

func processMethods() map[string]method {
	return map[string]method{
		protocol.MethodProcessStart:       {handle: bind((*request).processStart), class: slotted},
		protocol.MethodProcessList:        {handle: bind((*request).processList), class: slotless},
		protocol.MethodProcessGet:         {handle: bind((*request).processGet), class: slotless},
		protocol.MethodProcessStop:        {handle: bind((*request).processStop), class: slotless},
		protocol.MethodProcessSignal:      {handle: bind((*request).processSignal), class: slotless},
		protocol.MethodProcessWrite:       {handle: bind((*request).processWrite), class: slotless},
		protocol.MethodProcessCloseStdin:  {handle: bind((*request).processCloseStdin), class: slotless},
		protocol.MethodProcessResize:      {handle: bind((*request).processResize), class: slotless},
		protocol.MethodProcessRead:        {handle: bind((*request).processRead), class: slotless},
		protocol.MethodProcessWait:        {handle: bind((*request).processWait), class: slotless},
		protocol.MethodProcessSubscribe:   {handle: bind((*request).processSubscribe), class: slotless},
		protocol.MethodProcessUnsubscribe: {handle: bind((*request).processUnsubscribe), class: slotless},
	}
}

func (r *request) processStart(ctx context.Context, p *protocol.ProcessStartParams) (*protocol.ProcessResult, error) {
	if (p.Command == "") == (len(p.Argv) == 0) {
		return nil, invalidParams("command", "either command or argv must stand, and not both")
	}
	start := session.StartProcess{
		SessionID:   p.SessionID,
		Command:     p.Command,
		Argv:        p.Argv,
		CWD:         p.CWD,
		Environment: p.Env,
		OperationID: p.OperationID,
		Label:       p.Label,
		Actor:       toActor(p.Actor),
		Mode:        tool.Mode(p.PermissionMode),
		CallID:      p.CallID,
		RunID:       p.RunID,
		NodeName:    p.NodeName,
		Confirm:     r.confirm(),
	}
	if p.TTY != nil {
		start.TTY = &tool.TTY{Cols: p.TTY.Cols, Rows: p.TTY.Rows}
	}
	started, err := r.sessions().StartProcess(ctx, start)
	return processResult(started, err)
}

func processResult(p session.Process, err error) (*protocol.ProcessResult, error) {
	if err != nil {
		return nil, err
	}
	return &protocol.ProcessResult{Process: toProcess(p)}, nil
}

func (r *request) processList(ctx context.Context, p *protocol.SessionParams) (*protocol.ProcessListResult, error) {
	list, err := r.sessions().ListProcesses(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	out := &protocol.ProcessListResult{Processes: make([]protocol.Process, len(list))}
	for i, process := range list {
		out.Processes[i] = toProcess(process)
	}
	return out, nil
}

func (r *request) processGet(ctx context.Context, p *protocol.ProcessParams) (*protocol.ProcessResult, error) {
	process, err := r.sessions().GetProcess(ctx, p.SessionID, p.ProcessID)
	return processResult(process, err)
}

func (r *request) processStop(ctx context.Context, p *protocol.ProcessParams) (*protocol.ProcessResult, error) {
	process, err := r.sessions().StopProcess(ctx, p.SessionID, p.ProcessID)
	return processResult(process, err)
}

func (r *request) processSignal(ctx context.Context, p *protocol.ProcessSignalParams) (*protocol.ProcessResult, error) {
	process, err := r.sessions().SignalProcess(ctx, p.SessionID, p.ProcessID, p.Signal)
	return processResult(process, err)
}

func (r *request) processWrite(ctx context.Context, p *protocol.ProcessWriteParams) (*protocol.ProcessResult, error) {
	data := []byte(p.Data)
	if p.Encoding == protocol.EncodingBase64 {
		var err error
		if data, err = base64.StdEncoding.DecodeString(p.Data); err != nil {
			return nil, invalidParams("data", "data must be base64: %w", err)
		}
	}
	process, err := r.sessions().WriteProcess(ctx, p.SessionID, p.ProcessID, data)
	return processResult(process, err)
}

func (r *request) processCloseStdin(ctx context.Context, p *protocol.ProcessParams) (*protocol.ProcessResult, error) {
	process, err := r.sessions().CloseStdin(ctx, p.SessionID, p.ProcessID)
	return processResult(process, err)
}

func (r *request) processResize(ctx context.Context, p *protocol.ProcessResizeParams) (*protocol.ProcessResult, error) {
	process, err := r.sessions().ResizeProcess(ctx, p.SessionID, p.ProcessID, tool.TTY{Cols: p.Cols, Rows: p.Rows})
	return processResult(process, err)
}

func (r *request) processWait(ctx context.Context, p *protocol.ProcessWaitParams) (*protocol.ProcessWaitResult, error) {
	timeout := session.MaxWait
	if ms := p.TimeoutMs; ms != nil {
		if *ms < 0 {
			return nil, invalidParams("timeoutMs", "timeoutMs must not be negative")
		}
		timeout = max(waitTime(*ms), 1) // the sessions take 0 for the longest wait
	}
	process, timedOut, err := r.sessions().WaitProcess(ctx, p.SessionID, p.ProcessID, timeout)
	if err != nil {
		return nil, err
	}
	return &protocol.ProcessWaitResult{Process: toProcess(process), TimedOut: timedOut}, nil
}

// waitTime is a number of milliseconds, cut to the longest wait.
func waitTime(ms int64) time.Duration {
	return time.Duration(min(ms, session.MaxWait.Milliseconds())) * time.Millisecond
}

func (r *request) processRead(ctx context.Context, p *protocol.ProcessReadParams) (*protocol.ProcessReadResult, error) {
	for name, value := range map[string]int64{"tailBytes": p.TailBytes, "maxBytes": p.MaxBytes, "waitMs": p.WaitMs} {
		if value < 0 {
			return nil, invalidParams(name, "%s must not be negative", name)
		}
	}
	if p.Offset != nil && *p.Offset < 0 {
		return nil, invalidParams("offset", "offset must not be negative")
	}
	read := session.ReadProcess{Offset: p.Offset, TailBytes: p.TailBytes, MaxBytes: p.MaxBytes, Wait: waitTime(p.WaitMs)}
	if p.Encoding == protocol.EncodingBase64 {
		out, err := r.sessions().ReadProcess(ctx, p.SessionID, p.ProcessID, read)
		if err != nil {
			return nil, err
		}
		page := readResult(out)
		page.Encoding, page.Data = protocol.EncodingBase64, base64.StdEncoding.EncodeToString(out.Data)
		return page, nil
	}
	return r.readText(ctx, p, read)
}

func readResult(out session.ProcessOutput) *protocol.ProcessReadResult {
	return &protocol.ProcessReadResult{
		StartOffset: out.StartOffset,
		EndOffset:   out.EndOffset,
		TotalBytes:  out.TotalBytes,
		Truncated:   out.Truncated,
		TimedOut:    out.TimedOut,
		EOF:         out.EOF,
		Process:     toProcess(out.Process),
	}
}
