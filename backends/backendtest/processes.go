package backendtest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// counter prints the numbers from 1 on, a line each, until it is ended.
const counter = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.05; done"

func processTests() []test {
	return []test{
		{name: "ProcessLife", needs: needShell, run: testProcessLife},
		{name: "ProcessInput", needs: needShell, run: testProcessInput},
		{name: "ProcessSignals", needs: needShell, run: testProcessSignals},
		{name: "ProcessOutputIsExact", needs: needShell, run: testProcessOutput},
		{name: "ProcessTerminal", needs: needShell, run: testTerminal},
		{name: "OperationIDs", needs: needShell, run: testOperationIDs},
		{name: "EventsInOrder", needs: needShell, run: testEvents},
		{name: "ProcessTool", needs: needShell, run: testProcessTool},
	}
}

// start starts a process, which must work. Actor and operation are filled in.
func (w *world) start(r tool.StartRequest) tool.Process {
	w.Helper()
	if r.OperationID == "" {
		r.OperationID = random(8)
	}
	r.Actor = w.binding.Session
	p, err := w.env.Processes().Start(w.Context(), r)
	if err != nil {
		w.Fatalf("start %q %q: %v", r.Command, r.Argv, describe(err))
	}
	return p
}

// ended waits for the end of the process and of its output.
func (w *world) ended(id string) tool.Process {
	w.Helper()
	var p tool.Process
	w.until("the end of "+id, func() bool {
		var err error
		if p, err = w.env.Processes().Get(w.Context(), id); err != nil {
			w.Fatal(describe(err))
		}
		return p.Status.Terminal() && p.OutputClosed
	})
	return p
}

// readAt reads output from the offset on, waiting for some.
func (w *world) readAt(id string, offset int64) tool.ReadResult {
	w.Helper()
	r, err := w.env.Processes().Read(w.Context(), id, tool.ReadOptions{OffsetBytes: &offset, Wait: 5 * time.Second, MaxBytes: 1 << 20})
	if err != nil {
		w.Fatalf("read %s at %d: %v", id, offset, describe(err))
	}
	if r.StartOffset != offset || r.EndOffset != offset+int64(len(r.Output)) || r.TotalBytes < r.EndOffset {
		w.Fatalf("read %s at %d: %d bytes, [%d, %d) of %d", id, offset, len(r.Output), r.StartOffset, r.EndOffset, r.TotalBytes)
	}
	return r
}

// output is all that the process printed.
func (w *world) output(id string) []byte {
	w.Helper()
	p := w.ended(id)
	var all []byte
	for int64(len(all)) < p.TotalBytes {
		r := w.readAt(id, int64(len(all)))
		if len(r.Output) == 0 {
			w.Fatalf("%s has %d bytes of output and gives %d", id, p.TotalBytes, len(all))
		}
		all = append(all, r.Output...)
	}
	return all
}

// counts reads a counter's output from the offset until it is at least size
// bytes longer, and checks that it goes on where it was, without hole or
// repeat. It returns where it ended.
func (w *world) counts(id string, offset, size int64) int64 {
	w.Helper()
	var want []byte
	goal := offset + size
	for offset < goal {
		r := w.readAt(id, offset)
		if len(r.Output) == 0 && (r.TimedOut || r.Process.Status.Terminal()) {
			w.Fatalf("%s counts no more: %+v", id, r.Process)
		}
		for n := 1 + bytes.Count(want, []byte("\n")); int64(len(want)) < r.EndOffset; n++ {
			want = fmt.Appendln(want, n)
		}
		if !bytes.Equal(r.Output, want[r.StartOffset:r.EndOffset]) {
			w.Fatalf("output [%d, %d) is %q, want %q", r.StartOffset, r.EndOffset, r.Output, want[r.StartOffset:r.EndOffset])
		}
		offset = r.EndOffset
	}
	return offset
}

func (w *world) stop(id string) {
	w.Helper()
	if _, err := w.env.Processes().Stop(w.Context(), id); err != nil {
		w.Fatalf("stop %s: %v", id, describe(err))
	}
	w.ended(id)
}

func testProcessLife(w *world) {
	ps := w.env.Processes()
	p := w.start(tool.StartRequest{Command: "echo $$ > pid; pwd; echo $EXTRA; sleep 0.1; exit 7", CWD: "", Environment: map[string]string{"EXTRA": "given"}, Label: "short"})
	if p.ID == "" || p.OperationID == "" || p.RootThreadID != w.binding.Session || p.OwnerKind != tool.OwnerMainAgent || p.Label != "short" || p.StartedAt.IsZero() {
		w.Errorf("started %+v", p)
	}
	done := w.ended(p.ID)
	if done.ExitCode != 7 || done.Signal != "" || done.StoppedAt.IsZero() || done.PID != p.PID && p.PID != 0 {
		w.Errorf("ended %+v", done)
	}
	if out := string(w.output(p.ID)); out != w.env.Info().Root+"\ngiven\n" {
		w.Errorf("printed %q", out)
	}
	r, err := ps.Read(w.Context(), p.ID, tool.ReadOptions{MaxBytes: 6})
	if err != nil || string(r.Output) != "given\n" {
		w.Errorf("its tail: %q, %v", r.Output, err)
	}

	running := w.start(tool.StartRequest{Command: counter})
	if got, err := ps.Get(w.Context(), running.ID); err != nil || got.Status != tool.ProcessRunning || got.ExitCode != -1 || !got.StoppedAt.IsZero() {
		w.Errorf("running %+v, %v", got, err)
	}
	w.counts(running.ID, 0, 20)
	list, err := ps.List(w.Context())
	if err != nil {
		w.Fatal(describe(err))
	}
	var ids []string
	for _, p := range list {
		ids = append(ids, p.ID)
	}
	if len(ids) != 2 || !slices.Contains(ids, p.ID) || !slices.Contains(ids, running.ID) {
		w.Errorf("listed %v, want %s and %s", ids, p.ID, running.ID)
	}
	w.stop(running.ID)
	if got, err := ps.Get(w.Context(), running.ID); err != nil || got.Signal != "SIGTERM" && got.ExitCode < 0 {
		w.Errorf("stopped %+v, %v", got, err)
	}

	argv := w.start(tool.StartRequest{Argv: []string{"sh", "-c", `printf '%s|' "$@"`, "sh", "a b", "", "$HOME"}})
	if out := string(w.output(argv.ID)); out != "a b||$HOME|" {
		w.Errorf("an argument list printed %q", out)
	}
	for what, err := range map[string]error{
		"get":    ignore(ps.Get(w.Context(), "p-none")),
		"read":   ignore(ps.Read(w.Context(), "p-none", tool.ReadOptions{})),
		"stop":   ignore(ps.Stop(w.Context(), "p-none")),
		"write":  ignore(ps.Write(w.Context(), "p-none", nil)),
		"signal": ignore(ps.Signal(w.Context(), "../../etc", "SIGTERM")),
	} {
		if tool.KindOf(err) != tool.ProcessNotFound {
			w.Errorf("%s of an unknown process: %v", what, describe(err))
		}
	}
	for what, r := range map[string]tool.StartRequest{
		"nothing":           {},
		"two things":        {Command: "true", Argv: []string{"true"}},
		"outside the root":  {Command: "true", CWD: "/etc"},
		"without a program": {Argv: []string{"/no/such/program"}},
	} {
		r.OperationID, r.Actor = random(8), w.binding.Session
		if p, err := ps.Start(w.Context(), r); err == nil {
			if end := w.ended(p.ID); end.Status != tool.ProcessFailed && end.ExitCode <= 0 {
				w.Errorf("a start of %s gave %+v", what, end)
			}
		}
	}
}

func testProcessInput(w *world) {
	ps := w.env.Processes()
	p := w.start(tool.StartRequest{Command: "cat; echo end"})
	raw := []byte("first\n\xff\x00\xfe\nlast")
	if _, err := ps.Write(w.Context(), p.ID, raw[:6]); err != nil {
		w.Fatal(describe(err))
	}
	if r := w.readAt(p.ID, 0); string(r.Output) != "first\n" {
		w.Errorf("echoed %q", r.Output)
	}
	if _, err := ps.Write(w.Context(), p.ID, raw[6:]); err != nil {
		w.Fatal(describe(err))
	}
	if _, err := ps.CloseStdin(w.Context(), p.ID); err != nil {
		w.Fatal(describe(err))
	}
	if out := w.output(p.ID); !bytes.Equal(out, append(raw, "end\n"...)) {
		w.Errorf("echoed %q", out)
	}
	if _, err := ps.Write(w.Context(), p.ID, []byte("late")); err == nil {
		w.Error("input for a process that has ended was taken")
	}
}

func testProcessSignals(w *world) {
	ps := w.env.Processes()
	p := w.start(tool.StartRequest{Command: "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.05; done"})
	w.readAt(p.ID, 0)
	if _, err := ps.Signal(w.Context(), p.ID, "SIGINT"); err != nil {
		w.Fatal(describe(err))
	}
	if end := w.ended(p.ID); end.ExitCode != 5 || end.Signal != "" {
		w.Errorf("after SIGINT: %+v", end)
	}
	if out := string(w.output(p.ID)); !strings.HasSuffix(out, "caught\n") {
		w.Errorf("printed %q", out)
	}
	stubborn := w.start(tool.StartRequest{Command: "trap '' TERM; echo $$ > pid; (trap '' TERM; echo ready; sleep 300) ; sleep 300"})
	w.readAt(stubborn.ID, 0)
	if _, err := ps.Signal(w.Context(), stubborn.ID, "SIGNONSENSE"); err == nil {
		w.Error("an unknown signal was sent")
	}
	w.stop(stubborn.ID)
	if end := w.ended(stubborn.ID); end.Signal != "SIGKILL" || end.ExitCode != -1 {
		w.Errorf("after a stop that needed force: %+v", end)
	}
	w.dead("pid")
}

func testProcessOutput(w *world) {
	p := w.start(tool.StartRequest{Command: `printf '\377\000\001\303'; sleep 0.1; printf '\251\n\355\240\200'`})
	if out, want := w.output(p.ID), []byte("\xff\x00\x01\xc3\xa9\n\xed\xa0\x80"); !bytes.Equal(out, want) {
		w.Errorf("printed %q, want %q", out, want)
	}
	// More than one frame holds, every byte counted.
	const size = 20 << 20
	big := w.start(tool.StartRequest{Command: fmt.Sprintf("head -c %d /dev/zero | tr '\\0' '\\377'", size)})
	if out := w.output(big.ID); len(out) != size || bytes.Count(out, []byte{0xff}) != size {
		w.Errorf("%d bytes, want %d", len(out), size)
	}
}

func testTerminal(w *world) {
	ps := w.env.Processes()
	p := w.start(tool.StartRequest{Command: "stty size; test -t 0 && test -t 1 && stty -isig && echo terminal; read x; stty size; echo got $x", TTY: &tool.TTY{Cols: 101, Rows: 33}})
	var seen string
	w.until("the terminal's size", func() bool {
		seen += string(w.readAt(p.ID, int64(len(seen))).Output)
		return strings.Contains(seen, "terminal")
	})
	if !strings.HasPrefix(seen, "33 101\r\n") {
		w.Errorf("at first it printed %q", seen)
	}
	if _, err := ps.Resize(w.Context(), p.ID, tool.TTY{Cols: 80, Rows: 24}); err != nil {
		w.Fatal(describe(err))
	}
	if _, err := ps.Signal(w.Context(), p.ID, "^C"); tool.KindOf(err) != tool.Unsupported {
		w.Errorf("a key that is no signal: %v", err)
	}
	if _, err := ps.Write(w.Context(), p.ID, []byte("hello\n")); err != nil {
		w.Fatal(describe(err))
	}
	if out := string(w.output(p.ID)); !strings.Contains(out, "24 80\r\n") || !strings.HasSuffix(out, "got hello\r\n") {
		w.Errorf("printed %q", out)
	}
}

func testOperationIDs(w *world) {
	r := tool.StartRequest{OperationID: "op-1", Command: "echo ran >> runs; sleep 300"}
	first := w.start(r)
	again := w.start(r)
	if first.ID != again.ID || first.OperationID != "op-1" {
		w.Errorf("first %+v\nagain %+v", first, again)
	}
	other := w.start(tool.StartRequest{OperationID: "op-2", Command: r.Command})
	if other.ID == first.ID {
		w.Error("another operation gave the same process")
	}
	w.until("both runs", func() bool { return w.exists("runs") && bytes.Count(w.read("runs"), []byte("ran\n")) == 2 })
	list, err := w.env.Processes().List(w.Context())
	if err != nil || len(list) != 2 {
		w.Errorf("listed %d processes, %v", len(list), err)
	}
	for _, p := range list {
		if p.OperationID != "op-1" && p.OperationID != "op-2" {
			w.Errorf("the record %s names operation %q", p.ID, p.OperationID)
		}
	}
	w.stop(first.ID)
	if p := w.start(r); p.ID != first.ID || !p.Status.Terminal() {
		w.Errorf("after its end the operation gives %+v", p)
	}
}

// next waits for the subscription's next process event.
func (w *world) next(s backends.Subscription) tool.ProcessEvent {
	w.Helper()
	for {
		e, err := s.Next(w.Context())
		if err != nil {
			w.Fatalf("next event: %v", describe(err))
		}
		if e.Process != nil {
			return *e.Process
		}
	}
}

func testEvents(w *world) {
	s := w.env.Events().Subscribe()
	defer s.Close()
	p := w.start(tool.StartRequest{Command: "echo one; exit 4"})
	var seen []tool.ProcessEvent
	for len(seen) == 0 || !seen[len(seen)-1].Process.OutputClosed {
		e := w.next(s)
		if e.Process.ID != p.ID {
			w.Fatalf("an event of %s, want %s", e.Process.ID, p.ID)
		}
		seen = append(seen, e)
	}
	if seen[0].Type != tool.EventStarted {
		w.Errorf("the first event is %+v", seen[0])
	}
	var terminal int
	for _, e := range seen {
		if e.Type == tool.EventStopped || e.Type == tool.EventFailed {
			terminal++
			if e.Cause != tool.CauseNaturalExit || e.Process.ExitCode != 4 {
				w.Errorf("the end is %+v", e)
			}
		}
		if terminal == 0 && e.Process.OutputClosed {
			w.Errorf("the output is closed before the end: %+v", e)
		}
	}
	last := seen[len(seen)-1]
	if terminal != 1 || last.Process.TotalBytes != 4 {
		w.Errorf("%d terminal events, the last event is %+v", terminal, last)
	}

	asked := w.start(tool.StartRequest{Command: counter})
	w.stop(asked.ID)
	for {
		if e := w.next(s); e.Process.ID == asked.ID && e.Process.Status.Terminal() {
			if e.Cause != tool.CauseRequestedStop {
				w.Errorf("a stop's event is %+v", e)
			}
			break
		}
	}
}

func testProcessTool(w *world) {
	type one struct {
		ID     string             `json:"process_id"`
		Status tool.ProcessStatus `json:"status"`
		Output string             `json:"output"`
	}
	r := into[ran](w, "bash", args{"command": "cat", "run_in_background": true})
	id := r.Promoted
	w.call("process", args{"action": "write", "process_id": id, "input": "hello\n"})
	if got := into[one](w, "process", args{"action": "read", "process_id": id, "offset_bytes": 0, "wait_ms": 5000}); !strings.Contains(got.Output, "hello") {
		w.Errorf("read %+v", got)
	}
	if res := w.call("process", args{"action": "list"}); !strings.Contains(string(res.StructuredContent), id) {
		w.Errorf("list %s", brief(res.StructuredContent))
	}
	w.call("process", args{"action": "stop", "process_id": id})
	w.ended(id)
	w.refused("process", args{"action": "read", "process_id": "p-none"}, tool.ProcessNotFound, tool.InvalidParams)
}
