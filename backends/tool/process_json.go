package tool

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// AppendJSON appends the JSON of p. It is written by hand, since each start of a
// process writes its record six times.
func (p *Process) AppendJSON(b []byte) []byte {
	text := func(name, value string) {
		b = appendText(append(b, name...), value)
	}
	maybe := func(name, value string) {
		if value != "" {
			text(name, value)
		}
	}
	number := func(name string, n int64) {
		b = strconv.AppendInt(append(b, name...), n, 10)
	}
	moment := func(name string, t time.Time) {
		b = t.AppendFormat(append(append(b, name...), '"'), time.RFC3339Nano)
		b = append(b, '"')
	}
	flag := func(name string, set bool) {
		if set {
			b = append(append(b, name...), "true"...)
		}
	}
	text(`{"id":`, p.ID)
	maybe(`,"operation_id":`, p.OperationID)
	text(`,"owner_kind":`, string(p.OwnerKind))
	text(`,"owner_id":`, p.OwnerID)
	text(`,"root_thread_id":`, p.RootThreadID)
	text(`,"lifecycle":`, string(p.Lifecycle))
	text(`,"status":`, string(p.Status))
	number(`,"pid":`, int64(p.PID))
	number(`,"pgid":`, int64(p.PGID))
	if p.TTY != nil {
		number(`,"tty":{"cols":`, int64(p.TTY.Cols))
		number(`,"rows":`, int64(p.TTY.Rows))
		b = append(b, '}')
	}
	text(`,"command":`, p.Command)
	text(`,"cwd":`, p.CWD)
	moment(`,"started_at":`, p.StartedAt)
	moment(`,"updated_at":`, p.UpdatedAt)
	moment(`,"stopped_at":`, p.StoppedAt)
	number(`,"exit_code":`, int64(p.ExitCode))
	maybe(`,"last_error":`, p.LastError)
	maybe(`,"sandbox_mode":`, string(p.SandboxMode))
	flag(`,"sandbox_denied":`, p.SandboxDenied)
	maybe(`,"terminal_cause":`, p.TerminalCause)
	maybe(`,"completion_mode":`, p.CompletionMode)
	if p.LogBaseOffset != 0 {
		number(`,"log_base_offset":`, p.LogBaseOffset)
	}
	for i, a := range p.Argv {
		if i == 0 {
			text(`,"argv":[`, a)
		} else {
			text(`,`, a)
		}
	}
	if len(p.Argv) > 0 {
		b = append(b, ']')
	}
	maybe(`,"signal":`, p.Signal)
	maybe(`,"oom_killed":`, string(p.OOMKilled))
	flag(`,"output_closed":`, p.OutputClosed)
	if p.TotalBytes != 0 {
		number(`,"total_bytes":`, p.TotalBytes)
	}
	maybe(`,"label":`, p.Label)
	maybe(`,"actor_kind":`, string(p.ActorKind))
	return append(b, '}')
}

// AppendJSON appends the JSON of e.
func (e *ProcessEvent) AppendJSON(b []byte) []byte {
	b = appendText(append(b, `{"Type":`...), string(e.Type))
	if e.Cause != "" {
		b = appendText(append(b, `,"Cause":`...), string(e.Cause))
	}
	b = e.Process.AppendJSON(append(b, `,"Process":`...))
	return append(b, '}')
}

// appendText appends a JSON string; what is not UTF-8 in it is replaced.
func appendText(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}
