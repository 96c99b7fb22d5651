package adapterkit

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

func TestHandlersThatMakeNoSense(t *testing.T) {
	start := func(context.Context, tool.StartRequest) (tool.Process, error) { return tool.Process{}, nil }
	for what, change := range map[string]func(*Handlers){
		"no initialize":      func(h *Handlers) { h.Initialize = nil },
		"no execute":         func(h *Handlers) { h.Execute = nil },
		"start without list": func(h *Handlers) { h.Processes.Start, h.Close = start, func(context.Context) error { return nil } },
		"half of exports":    func(h *Handlers) { h.Exports.Close = func(context.Context, string) error { return nil } },
		"start without close": func(h *Handlers) {
			h.Processes.Start, h.Processes.List = start, func(context.Context) ([]tool.Process, error) { return nil, nil }
		},
		"the other half of it": func(h *Handlers) {
			h.Exports.Read = func(context.Context, string, int64) ([]byte, bool, error) { return nil, true, nil }
		},
	} {
		h := least()
		change(&h)
		if _, err := New(h); err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
}

// TestUnknownMethods: what has no function is unknown, and nothing answers instead.
func TestUnknownMethods(t *testing.T) {
	s := serve(t, backend(t, least()), nil)
	s.initialize(t)
	for _, method := range []string{
		wire.MethodRunCode, wire.MethodProcessStart, wire.MethodProcessList, wire.MethodProcessGet, wire.MethodProcessRead, wire.MethodProcessWrite,
		wire.MethodProcessResize, wire.MethodProcessStop, wire.MethodProcessCleanup, wire.MethodProcessInputAvailable, wire.MethodProcessCompletionPending,
		wire.MethodProcessSignal, wire.MethodExportRead, wire.MethodExportClose, wire.MethodExportStream, wire.MethodStat, wire.MethodToolsList, wire.MethodShutdown, "smell",
	} {
		_, err := s.Call(t.Context(), method, map[string]string{"operation_id": "o", "id": "x"}, nil)
		wantKind(t, err, tool.Unsupported, method)
	}
}

// TestMethods: each reaches its function with what the frame says.
func TestMethods(t *testing.T) {
	var said string
	note := func(s string) (tool.Process, error) {
		said = s
		return tool.Process{ID: "p"}, nil
	}
	h := least()
	h.Close = func(context.Context) error { return nil }
	h.Processes = ProcessHandlers{
		Get: func(_ context.Context, id string) (tool.Process, error) { return note("get " + id) },
		Write: func(_ context.Context, id string, in []byte) (tool.Process, error) {
			return note("write " + id + string(in))
		},
		Resize: func(_ context.Context, id string, s tool.TTY) (tool.Process, error) {
			return note("resize " + id + string(rune('0'+s.Cols)))
		},
		Stop: func(_ context.Context, id string) (tool.Process, error) { return note("stop " + id) },
		Read: func(_ context.Context, id string, o tool.ReadOptions) (tool.ReadResult, error) {
			_, _ = note("read " + id)
			if o.MaxBytes != 32768 && o.MaxBytes != 7 || o.MaxBytes == 7 && (*o.OffsetBytes != 3 || o.Wait != time.Second || o.MinDwell != time.Millisecond) {
				t.Errorf("%+v", o)
			}
			return tool.ReadResult{Output: []byte("a\xff"), StartOffset: 3, EndOffset: 5, TotalBytes: 9, Truncated: true, TimedOut: true, Duration: time.Second}, nil
		},
		InputAvailable: func(_ context.Context, id string) (bool, error) { _, err := note("input " + id); return true, err },
		CompletionPending: func(_ context.Context, r wire.ProcessRequest) (bool, error) {
			_, err := note("pending " + r.Consumer)
			return false, err
		},
		CompletionDelivered: func(_ context.Context, r wire.ProcessRequest) (tool.Process, error) {
			return note("delivered " + r.Consumer)
		},
		CompletionMode: func(_ context.Context, r wire.ProcessRequest) (tool.Process, error) { return note("mode " + r.Mode) },
		Recheck: func(_ context.Context, r wire.ProcessRequest) (tool.Process, error) {
			return note("recheck " + string(rune('0'+r.Minutes)))
		},
		RecheckDelivered: func(_ context.Context, r wire.ProcessRequest) (tool.Process, error) { return note("rechecked " + r.ID) },
		Cleanup:          func(context.Context) ([]tool.Process, error) { _, err := note("cleanup"); return nil, err },
		List:             func(context.Context) ([]tool.Process, error) { _, err := note("list"); return nil, err },
	}
	h.Exports = ExportHandlers{
		Read: func(_ context.Context, token string, offset int64) ([]byte, bool, error) {
			_, err := note("export " + token)
			return []byte("x"), offset == 2, err
		},
		Close: func(_ context.Context, token string) error { _, err := note("closed " + token); return err },
	}
	s := serve(t, backend(t, h), nil)
	s.initialize(t)
	for _, test := range []struct{ method, data, said, reply string }{
		{wire.MethodProcessGet, `{"id":"p"}`, "get p", `"id":"p"`},
		{wire.MethodProcessWrite, `{"id":"p","input":"in"}`, "write pin", `"id":"p"`},
		{wire.MethodProcessResize, `{"id":"p","cols":7}`, "resize p7", `"id":"p"`},
		{wire.MethodProcessStop, `{"id":"p"}`, "stop p", `"id":"p"`},
		{wire.MethodProcessRead, `{"id":"p"}`, "read p", `"Output":"a` + "�" + `","StartOffset":3,"EndOffset":5,"TotalBytes":9,"Truncated":true,"TimedOut":true,"Duration":1000000000}`},
		{wire.MethodProcessRead, `{"id":"p","options":{"MaxBytes":7,"OffsetBytes":3,"Wait":1000000000,"MinDwell":1000000,"Encoding":"base64"}}`, "read p", `"Output":"Yf8=","Encoding":"base64"`},
		{wire.MethodProcessInputAvailable, `{"id":"p"}`, "input p", `true`},
		{wire.MethodProcessCompletionPending, `{"consumer":"c"}`, "pending c", `false`},
		{wire.MethodProcessCompletionDelivered, `{"consumer":"c"}`, "delivered c", `"id":"p"`},
		{wire.MethodProcessCompletionMode, `{"mode":"m"}`, "mode m", `"id":"p"`},
		{wire.MethodProcessRecheck, `{"minutes":5}`, "recheck 5", `"id":"p"`},
		{wire.MethodProcessRecheckDelivered, `{"id":"p"}`, "rechecked p", `"id":"p"`},
		{wire.MethodProcessCleanup, `{}`, "cleanup", `{"Cleaned":[]}`},
		{wire.MethodProcessList, `{}`, "list", `[]`},
		{wire.MethodExportRead, `{"token":"t","offset":2}`, "export t", `{"data":"eA==","eof":true}`},
		{wire.MethodExportClose, `{"token":"t"}`, "closed t", `{}`},
	} {
		said = ""
		reply, err := s.Call(t.Context(), test.method, json.RawMessage(test.data), nil)
		if err != nil || said != test.said || !strings.Contains(string(reply.Data), test.reply) {
			t.Errorf("%s: said %q, want %q; %s, %v", test.method, said, test.said, reply.Data, err)
		}
	}
	for method, data := range map[string]string{
		wire.MethodProcessRead: `{"id":"p","options":{"MaxBytes":-1}}`,
		wire.MethodProcessGet:  `{"id":7}`,
		wire.MethodExecute:     `{"call":{"name":"x","arguments":"{}"},"actor":"s","permission_mode":"root"}`,
		wire.MethodExportRead:  `[]`,
	} {
		_, err := s.Call(t.Context(), method, json.RawMessage(data), nil)
		wantKind(t, err, tool.InvalidParams)
	}
}
