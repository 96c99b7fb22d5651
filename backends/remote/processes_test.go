package remote

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

func TestStart(t *testing.T) {
	start := tool.StartRequest{OperationID: "op", Command: "sleep 1", TTY: &tool.TTY{Cols: 80, Rows: 24}}
	t.Run("starts", func(t *testing.T) {
		f := newFar(ourCaps...)
		f.on(wire.MethodProcessStart, func(_ context.Context, r *wire.Request) (wire.Response, error) {
			if want := `{"operation_id":"op","command":"sleep 1","tty":{"cols":80,"rows":24},"actor":"s1","permission_mode":"standard"}`; string(r.Data) != want {
				t.Errorf("sent %s", r.Data)
			}
			return wire.Response{Data: tool.Process{ID: "p1", OperationID: "op"}}, nil
		})
		e := open(t, f, binding(), Options{})
		p, err := e.Processes().Start(t.Context(), start)
		if err != nil || p.ID != "p1" {
			t.Error(p, err)
		}
	})
	t.Run("for a side chat", func(t *testing.T) {
		for want, caps := range map[string][]string{
			`{"operation_id":"op","command":"x","actor":"chat","permission_mode":"read_only","actor_kind":"side_chat"}`: ourCaps,
			`{"operation_id":"op","command":"x","actor":"chat","permission_mode":"read_only"}`:                          {wire.CapProcessStart},
		} {
			f := newFar(caps...)
			f.on(wire.MethodProcessStart, func(_ context.Context, r *wire.Request) (wire.Response, error) {
				if string(r.Data) != want {
					t.Errorf("sent %s", r.Data)
				}
				return wire.Response{Data: tool.Process{ID: "p1", OperationID: "op"}}, nil
			})
			e := open(t, f, binding(), Options{})
			_, err := e.Processes().Start(t.Context(), tool.StartRequest{OperationID: "op", Command: "x", Actor: "chat", ActorKind: tool.ActorSideChat, PermissionMode: tool.Standard})
			if err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("another operation's record", func(t *testing.T) {
		f := newFar(wire.CapProcessStart)
		f.says(wire.MethodProcessStart, tool.Process{ID: "p1", OperationID: "other"}, nil)
		e := open(t, f, binding(), Options{})
		_, err := e.Processes().Start(t.Context(), start)
		wantKind(t, err, tool.OutcomeUnknown)
	})
	t.Run("without the capability", func(t *testing.T) {
		f := newFar(wire.CapBulk)
		e := open(t, f, binding(), Options{})
		_, err := e.Processes().Start(t.Context(), start)
		wantKind(t, err, tool.Unsupported)
		_, err = e.Processes().Signal(t.Context(), "p", "SIGINT")
		wantKind(t, err, tool.Unsupported)
		_, err = e.Processes().CloseStdin(t.Context(), "p")
		wantKind(t, err, tool.Unsupported)
		if len(f.requests) > 0 {
			t.Errorf("sent %v", f.requests)
		}
	})
	t.Run("refused here", func(t *testing.T) {
		e := open(t, newFar(ourCaps...), binding(), Options{})
		_, err := e.Processes().Start(t.Context(), tool.StartRequest{Command: "x"})
		wantKind(t, err, tool.InvalidParams)
		_, err = e.Processes().Start(t.Context(), tool.StartRequest{OperationID: "op", Command: "x", PermissionMode: tool.Unconfined})
		wantKind(t, err, tool.Denied)
	})
}

func TestProcessRequests(t *testing.T) {
	ctx := t.Context()
	for _, test := range []struct {
		caps       []string
		method     string
		data, body string
		call       func(p backends.Processes) (tool.Process, error)
	}{
		{ourCaps, wire.MethodProcessGet, `{"id":"p"}`, "", func(p backends.Processes) (tool.Process, error) { return p.Get(ctx, "p") }},
		{ourCaps, wire.MethodProcessWrite, `{"id":"p"}`, "a\xff", func(p backends.Processes) (tool.Process, error) { return p.Write(ctx, "p", []byte("a\xff")) }},
		{nil, wire.MethodProcessWrite, `{"id":"p","input":"é"}`, "", func(p backends.Processes) (tool.Process, error) { return p.Write(ctx, "p", []byte("é")) }},
		{ourCaps, wire.MethodProcessCloseStdin, `{"id":"p"}`, "", func(p backends.Processes) (tool.Process, error) { return p.CloseStdin(ctx, "p") }},
		{ourCaps, wire.MethodProcessResize, `{"id":"p","cols":80,"rows":24}`, "", func(p backends.Processes) (tool.Process, error) {
			return p.Resize(ctx, "p", tool.TTY{Cols: 80, Rows: 24})
		}},
		{ourCaps, wire.MethodProcessSignal, `{"id":"p","signal":"SIGINT"}`, "", func(p backends.Processes) (tool.Process, error) { return p.Signal(ctx, "p", "SIGINT") }},
		{nil, wire.MethodProcessStop, `{"id":"p"}`, "", func(p backends.Processes) (tool.Process, error) { return p.Stop(ctx, "p") }},
	} {
		t.Run(test.method, func(t *testing.T) {
			f := newFar(test.caps...)
			f.on(test.method, func(_ context.Context, r *wire.Request) (wire.Response, error) {
				if string(r.Data) != test.data || string(r.Body) != test.body {
					t.Errorf("sent %s and %q", r.Data, r.Body)
				}
				return wire.Response{Data: running("p")}, nil
			})
			e := open(t, f, binding(), Options{})
			if p, err := test.call(e.Processes()); err != nil || p.ID != "p" {
				t.Error(p, err)
			}
		})
	}
	e := open(t, newFar(), binding(), Options{})
	_, err := e.Processes().Write(ctx, "p", []byte("\xff"))
	wantKind(t, err, tool.Unsupported)
}

func TestReadProcess(t *testing.T) {
	offset := int64(7)
	reply := wire.ProcessRead{Process: running("p"), StartOffset: 7, EndOffset: 10, TotalBytes: 12, Truncated: true, TimedOut: true, Duration: int64(time.Second)}
	text, coded := reply, reply
	text.Output = "a\u00e9"
	coded.Output, coded.Encoding = base64.StdEncoding.EncodeToString([]byte("a\xff\x00")), wire.EncodingBase64
	bad := coded
	bad.Output = "?"
	back := reply
	back.EndOffset = 6
	for _, test := range []struct {
		name   string
		caps   []string
		reply  wire.ProcessRead
		body   string
		sent   string
		output string
		kind   tool.Kind
	}{
		{name: "beside the frame", caps: ourCaps, reply: reply, body: "a\xff\x00", output: "a\xff\x00",
			sent: `{"id":"p","options":{"MaxBytes":100,"OffsetBytes":7,"Wait":2000000,"MinDwell":1000000,"Encoding":"base64"}}`},
		{name: "in base64", caps: ourCaps, reply: coded, output: "a\xff\x00"},
		{name: "as text", reply: text, output: "aé", sent: `{"id":"p","options":{"MaxBytes":100,"OffsetBytes":7,"Wait":2000000,"MinDwell":1000000}}`},
		{name: "more than was asked for", caps: ourCaps, reply: reply, body: string(make([]byte, 101)), kind: tool.ProtocolMismatch},
		{name: "base64 that is none", caps: ourCaps, reply: bad, kind: tool.ProtocolMismatch},
		{name: "offsets that go back", caps: ourCaps, reply: back, kind: tool.ProtocolMismatch},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFar(test.caps...)
			f.on(wire.MethodProcessRead, func(_ context.Context, r *wire.Request) (wire.Response, error) {
				if test.sent != "" && string(r.Data) != test.sent {
					t.Errorf("sent %s", r.Data)
				}
				return wire.Response{Data: test.reply, Body: []byte(test.body)}, nil
			})
			e := open(t, f, binding(), Options{})
			read, err := e.Processes().Read(t.Context(), "p", tool.ReadOptions{MaxBytes: 100, OffsetBytes: &offset, Wait: 2 * time.Millisecond, MinDwell: time.Millisecond})
			if test.kind != "" {
				wantKind(t, err, test.kind)
				return
			}
			if err != nil || string(read.Output) != test.output || read.StartOffset != 7 || read.EndOffset != 10 || read.TotalBytes != 12 || !read.Truncated || !read.TimedOut || read.Duration != time.Second {
				t.Errorf("%+v, %v", read, err)
			}
		})
	}
	e := open(t, newFar(ourCaps...), binding(), Options{})
	_, err := e.Processes().Read(t.Context(), "p", tool.ReadOptions{Wait: -1})
	wantKind(t, err, tool.InvalidParams)
}

func stopped(id string) tool.Process {
	p := running(id)
	p.Status, p.ExitCode, p.TerminalCause = tool.ProcessStopped, 0, string(tool.CauseNaturalExit)
	return p
}

func closed(p tool.Process) tool.Process {
	p.OutputClosed = true
	return p
}

func TestEventsThatWereMissed(t *testing.T) {
	f := newFar(ourCaps...)
	b := binding()
	b.Provisioned = true
	f.list(running("old"), closed(stopped("older")))
	e := open(t, f, b, Options{})
	events := e.Events().Subscribe()
	defer events.Close()
	for _, id := range []string{"ends", "vanishes", "stays"} {
		f.emit(tool.ProcessEvent{Type: tool.EventStarted, Process: running(id)})
		nextProcess(t, events)
	}
	failed := running("fails")
	failed.Status, failed.TerminalCause = tool.ProcessFailed, tool.CauseLost
	f.list(running("old"), closed(stopped("older")), closed(stopped("ends")), running("stays"), closed(stopped("new")), failed)
	f.cut() // processes are running, so it connects at once
	type told struct {
		kind  tool.ProcessEventType
		cause tool.EventCause
		end   bool
	}
	got := make(map[string][]told)
	for range 6 {
		p := nextProcess(t, events)
		got[p.Process.ID] = append(got[p.Process.ID], told{p.Type, p.Cause, p.Process.OutputClosed})
	}
	want := map[string][]told{
		"ends":     {{tool.EventStopped, tool.CauseNaturalExit, true}},
		"vanishes": {{tool.EventFailed, "", true}},
		"new":      {{tool.EventStarted, "", false}, {tool.EventStopped, tool.CauseNaturalExit, true}},
		"fails":    {{tool.EventStarted, "", false}, {tool.EventFailed, "", false}},
	}
	// Late, and told already.
	f.emit(tool.ProcessEvent{Type: tool.EventStopped, Process: stopped("ends")})
	f.emit(tool.ProcessEvent{Type: tool.EventStarted, Process: running("stays")})
	f.emit(tool.ProcessEvent{Type: tool.EventUpdated, Process: closed(failed)})
	last := nextProcess(t, events)
	if last.Process.ID != "fails" || !last.Process.OutputClosed {
		t.Errorf("the last event was %+v", last)
	}
	if len(got["ends"]) != 1 || got["ends"][0].kind != tool.EventStopped {
		t.Errorf("ends: %v", got["ends"])
	}
	for id, events := range want {
		if len(got[id]) < len(events) {
			t.Errorf("%s: %v, want %v", id, got[id], events)
			continue
		}
		for i := range events {
			if got[id][i] != events[i] {
				t.Errorf("%s: %v, want %v", id, got[id], events)
			}
		}
	}
	if len(got["old"])+len(got["older"])+len(got["stays"]) > 0 {
		t.Errorf("told again: %v", got)
	}
}

// A far end that does not say when output is complete is looked at until it
// stops growing.
func TestOutputThatStopsGrowing(t *testing.T) {
	f := newFar(wire.CapProcessStart)
	totals := []int64{3, 5, 9, 9}
	reads := 0
	f.on(wire.MethodProcessRead, func(context.Context, *wire.Request) (wire.Response, error) {
		reads++
		return wire.Response{Data: wire.ProcessRead{Process: stopped("p"), TotalBytes: totals[min(reads, len(totals))-1]}}, nil
	})
	f.says(wire.MethodProcessGet, stopped("p"), nil)
	e := open(t, f, binding(), Options{})
	events := e.Events().Subscribe()
	f.emit(tool.ProcessEvent{Type: tool.EventStarted, Process: running("p")})
	f.emit(tool.ProcessEvent{Type: tool.EventStopped, Cause: tool.CauseNaturalExit, Process: stopped("p")})
	for i, want := range []tool.ProcessEventType{tool.EventStarted, tool.EventStopped, tool.EventUpdated} {
		p := nextProcess(t, events)
		if p.Type != want || p.Process.OutputClosed != (i == 2) {
			t.Errorf("event %d: %+v", i, p)
		}
		if i == 2 && p.Process.TotalBytes != 9 {
			t.Errorf("%d bytes", p.Process.TotalBytes)
		}
	}
	p, err := e.Processes().Get(t.Context(), "p")
	if err != nil || !p.OutputClosed {
		t.Error(p, err)
	}
}

// A page that was read before the end, and comes after it was told, is not the last one.
func TestReadFromBeforeTheEnd(t *testing.T) {
	f := newFar(ourCaps...)
	page := wire.ProcessRead{Process: running("p"), EndOffset: 3, TotalBytes: 3}
	f.on(wire.MethodProcessRead, func(context.Context, *wire.Request) (wire.Response, error) {
		return wire.Response{Data: page, Body: make([]byte, page.EndOffset)}, nil
	})
	e := open(t, f, binding(), Options{})
	events := e.Events().Subscribe()
	defer events.Close()
	end := closed(stopped("p"))
	end.TotalBytes = 9
	f.emit(tool.ProcessEvent{Type: tool.EventStarted, Process: running("p")})
	f.emit(tool.ProcessEvent{Type: tool.EventStopped, Cause: tool.CauseNaturalExit, Process: end})
	nextProcess(t, events)
	nextProcess(t, events)
	for _, total := range []int64{3, 9} {
		page.EndOffset, page.TotalBytes = total, total
		read, err := e.Processes().Read(t.Context(), "p", tool.ReadOptions{})
		if err != nil || read.Process.OutputClosed != (total == 9) {
			t.Errorf("a page to %d: %+v, %v", total, read, err)
		}
	}
}

func TestTrackerIsBounded(t *testing.T) {
	track := newTracker(backends.NewHub())
	for i := range 2 * maxProcesses {
		id := string(rune('a'+i%26)) + time.Duration(i).String()
		track.live(tool.ProcessEvent{Type: tool.EventStarted, Process: running(id)})
	}
	if n := len(track.known); n > maxProcesses {
		t.Errorf("%d processes are tracked", n)
	}
}

// TestTrackerKeepsFewWords: what a far end writes about a process is passed on whole,
// and kept in brief.
func TestTrackerKeepsFewWords(t *testing.T) {
	hub := backends.NewHub()
	events := hub.Subscribe()
	defer events.Close()
	track := newTracker(hub)
	long := strings.Repeat("ä", 1<<19)
	r := tool.Process{
		ID: "p", OperationID: long, OwnerKind: tool.OwnerKind(long), OwnerID: long, RootThreadID: long, Lifecycle: tool.Lifecycle(long),
		Status: tool.ProcessStatus(long), Command: long, CWD: long, LastError: long, SandboxMode: tool.Mode(long), TerminalCause: long,
		CompletionMode: long, Argv: []string{"a", long, long}, Signal: long, Label: long, ActorKind: tool.ActorKind(long),
	}
	track.live(tool.ProcessEvent{Type: tool.EventStarted, Process: r})
	e, err := events.Next(t.Context())
	if err != nil || e.Process.Process.Command != long || len(e.Process.Process.Argv) != 3 {
		t.Fatalf("the event was not passed on as it came: %v", err)
	}
	kept, err := json.Marshal(track.known["p"].record)
	if err != nil || len(kept) > 4*maxTrackedCommand {
		t.Errorf("%d bytes are kept, %v", len(kept), err)
	}
	if got := track.known["p"].record.Argv; len(got) != 2 || got[0] != "a" || got[1] != "…" || len(r.Argv[1]) != len(long) {
		t.Errorf("%d arguments are kept", len(got))
	}
	r.ID = long
	track.live(tool.ProcessEvent{Type: tool.EventStarted, Process: r})
	track.sync([]tool.Process{r, {ID: "p", Status: tool.ProcessRunning}}, false)
	if len(track.known) != 1 {
		t.Errorf("%d processes are known", len(track.known))
	}
}
