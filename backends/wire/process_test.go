package wire

import (
	"reflect"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// What is read by hand means what a decoder says, and what is not is decoded.
func TestDecodeProcess(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6789, time.UTC)
	ours := tool.ProcessEvent{
		Type: tool.EventStopped, Cause: tool.CauseNaturalExit,
		Process: tool.Process{
			ID: "p-1", OperationID: "op", OwnerKind: tool.OwnerMainAgent, OwnerID: "o", RootThreadID: "s",
			Lifecycle: tool.LifecycleSession, Status: tool.ProcessStopped, PID: 7, PGID: 8, Command: "a \"\n\u2028b",
			CWD: "/", StartedAt: at, UpdatedAt: at.Add(time.Hour), StoppedAt: at.Add(time.Minute), ExitCode: -1,
			SandboxMode: tool.Standard, TerminalCause: "natural_exit", LogBaseOffset: 9, Argv: []string{"x", ""},
			OutputClosed: true, TotalBytes: 1 << 40, Label: "l",
		},
	}
	plain := string(ours.AppendJSON(nil))
	if e, err := plainEvent([]byte(plain)); err != nil || !reflect.DeepEqual(e, ours) {
		t.Errorf("%+v, %v", e, err)
	}
	for _, data := range []string{
		plain,
		`{"Type":"updated","Process":{"id":"p","tty":{"cols":1,"rows":2},"last_error":"e","signal":"SIGKILL"}}`,
		`{"Type":"updated","More":1,"Process":{"id":"p","more":{"a":[1]},"argv":null,"label":null,"pid":null}}`,
		`{"Type":"updated","Process":null}`,
		`{"Type":"updated","Process":{"argv":["a"],"pid":1,"argv":["b"],"pid":2}}`,
		`{"Type":"updated","Process":{"argv":[]}}`,
		`{"Type":"updated","Process":{"pid":1},"Process":{"pgid":2}}`,
		`{"Type":"updated","Process":{"id":1}}`,
		`{"Type":"updated","Process":{"pid":1e2}}`,
		`{"Type":"updated","Process":{"pid":"7"}}`,
		`{"Type":"updated","Process":{"started_at":"yesterday"}}`,
		`{"Type":"updated","Process":{"started_at":"2026-01-02T3:04:05Z","stopped_at":null}}`,
		`{"Type":"updated","Process":{"output_closed":false,"argv":["a",null],"argv":["b"]}}`,
		"{\"Type\":\"updated\",\"Process\":{\"command\":\"a\xffb\"}}",
		`{"Type":"updated","Process":{"command":"\ud800"}}`,
	} {
		var got, want tool.ProcessEvent
		gotErr, wantErr := decodeInto([]byte(data), &got), decodeJSON([]byte(data), &want)
		if (gotErr == nil) != (wantErr == nil) || gotErr == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%+v, %v\nwant %+v, %v", data, got, gotErr, want, wantErr)
		}
	}
}
