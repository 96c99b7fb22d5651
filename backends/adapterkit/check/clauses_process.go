package check

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/backends/wire"
)

const shapeRecord = "id:string operation_id?:string owner_kind:string owner_id:string root_thread_id:string lifecycle:string " +
	"status:string pid:number pgid:number tty?:object command:string cwd:string started_at:string updated_at:string " +
	"stopped_at:string exit_code:number last_error?:string sandbox_mode?:string sandbox_denied?:bool terminal_cause?:string " +
	"completion_mode?:string log_base_offset?:number"

func processes() []clause {
	return []clause{
		rule("process-announced", sectionProcess, "who announces process.start.v1 can start and list, who does not cannot", driveAnnounced),
		rule("process-record", sectionProcess, "the members of a record", driveRecord),
		rule("process-operation", sectionProcess, "operation_id is in the reply to a start and in the list", driveOperation),
		rule("process-start", sectionProcess, "a start has either command or argv, and a cwd inside of the root", driveStart),
		rule("process-environment", sectionProcess, "a process has the variables of its start", func(t *trial) {
			p := t.start(args{"argv": []string{"sh", "-c", `printf %s "$CAISSON_CHECK_START"`}, "environment": map[string]string{"CAISSON_CHECK_START": "yes"}})
			t.want(t.all(p) == "yes", "a process must have the variables of its start")
		}),
		rule("process-get", sectionProcess, "process/get gives the record", func(t *trial) {
			p := t.start(args{"command": "sleep 300"})
			defer t.stop(p)
			a := t.record("process/get", args{"id": p["id"]})
			t.want(a["id"] == p["id"] && a["exit_code"] == -1.0, "process/get must give the record, with exit_code −1: %v", a)
		}),
		rule("process-exit", sectionProcess, "the exit code of a process is in its record", func(t *trial) {
			p := t.start(args{"command": "exit 7"})
			var last args
			t.until("a record with exit_code 7 and a final status", func() bool {
				last = t.record("process/get", args{"id": p["id"]})
				return slices.Contains([]string{"stopped", "failed"}, text(last["status"])) && last["exit_code"] == 7.0
			})
			t.want(!strings.HasPrefix(text(last["stopped_at"]), "0001"), "stopped_at must be set: %v", last)
		}),
		rule("process-offsets", sectionProcess, "offsets count every byte ever written", driveOffsets),
		rule("process-tail", sectionProcess, "a read without an offset gives the tail, at once", driveTail),
		rule("process-utf8", sectionProcess, "bytes that are no UTF-8 are U+FFFD in Output, and count one each", func(t *trial) {
			p := t.start(args{"argv": []string{"printf", `a\377b`}})
			t.all(p)
			r := t.readProcess(p, args{"OffsetBytes": 0})
			t.want(utf8.ValidString(text(r["Output"])) && r["Output"] == "a\ufffdb" && r["EndOffset"] == 3.0, "the output must be a, U+FFFD, b with 3 bytes: %v", r)
		}),
		rule("process-wait", sectionProcess, "Wait is nanoseconds", driveWait),
		rule("process-write", sectionProcess, "process/write gives input", func(t *trial) {
			p := t.start(args{"command": "read x; echo got $x"})
			t.record("process/write", args{"id": p["id"], "input": "hello\n"})
			t.want(t.all(p) == "got hello\n", "the process must have read its input")
		}),
		rule("process-stop", sectionProcess, "process/stop ends the whole group", driveStop),
		rule("process-resize", sectionProcess, "a terminal has the size of its start, and changes it", driveResize),
		rule("process-events", sectionProcess, "started, then stopped or failed with its cause", driveEvents),
		rule("process-completion", sectionProcess, "input_available and completion_pending are true or false, the others give the record", driveCompletion),
		rule("process-cleanup", sectionProcess, "process/cleanup forgets what has ended", func(t *trial) {
			p := t.start(args{"command": "true"})
			t.all(p)
			r := t.ask("process/cleanup", args{})
			if r.failed != "" {
				t.notOffered("process/cleanup: %s", r.failed)
			}
			a := t.object("the reply to process/cleanup", r.data, "Cleaned:list")
			t.want(hasRecord(list(a["Cleaned"]), "id", p["id"]), "Cleaned must have the process that ended: %v", a)
			t.want(!hasRecord(t.processes(), "id", p["id"]), "what was cleaned must not be listed any more")
		}),
		rule("process-unknown", sectionProcess, "a process that there is not is an error", func(t *trial) {
			t.needs(wire.CapProcessStart)
			for _, method := range []string{"process/get", "process/read", "process/write", "process/stop"} {
				t.refuses("there is no such process", method, args{"id": "check-unknown"})
			}
		}),
		rule("process-session", sectionProcess, "the process of another session is an error", func(t *trial) {
			p := t.start(args{"command": "sleep 300"})
			other := t.open()
			t.initialize(other)
			t.on(other).refuses("the process belongs to another session", "process/get", args{"id": p["id"]})
			listed := list(decoded(t.on(other).must("process/list", args{})))
			t.want(!hasRecord(listed, "id", p["id"]), "process/list must have the session's own processes only")
			t.stop(p)
		}).apart(),
	}
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func decoded(data json.RawMessage) (v any) {
	_ = json.Unmarshal(data, &v) // nothing, where it is nothing
	return v
}

// record asks for a record and checks its members.
func (t *trial) record(method string, data args) args {
	return t.object("the reply to "+method, t.must(method, data), "id:string status:string exit_code:number")
}

// processes is process/list.
func (t *trial) processes() []any {
	data := t.must("process/list", args{})
	l, ok := decoded(data).([]any)
	t.want(ok || string(data) == "null", "process/list must give a list, not %.100s", data)
	return l
}

func hasRecord(records []any, member string, value any) bool {
	return slices.ContainsFunc(records, func(r any) bool {
		a, _ := r.(map[string]any)
		return a[member] == value
	})
}

// readProcess reads output.
func (t *trial) readProcess(p, options args) args {
	return t.object("the reply to process/read", t.must("process/read", args{"id": p["id"], "options": options}),
		"Process:object Output:string StartOffset:number EndOffset:number TotalBytes:number Truncated:bool TimedOut:bool Duration:number")
}

// all is the output of a process when it has ended.
func (t *trial) all(p args) (output string) {
	t.until("the end of the process "+text(p["id"]), func() bool {
		status := text(t.record("process/get", args{"id": p["id"]})["status"])
		return status == "stopped" || status == "failed"
	})
	// What it wrote last may still be on its way, and some adapters say until when.
	closed := false
	t.within(func() bool {
		r := t.readProcess(p, args{"OffsetBytes": len(output), "Wait": int64(200 * time.Millisecond)})
		output += text(r["Output"])
		over := closed && r["Output"] == ""
		record, _ := r["Process"].(map[string]any)
		closed = record["output_closed"] != false
		return over
	})
	return output
}

func (t *trial) stop(p args) { t.record("process/stop", args{"id": p["id"]}) }

func driveAnnounced(t *trial) {
	if !t.announces(wire.CapProcessStart) {
		t.refuses("process.start.v1 is not announced", "process/start", args{"operation_id": "check", "command": "true", "actor": t.peer.session, "permission_mode": "standard"})
		return
	}
	r := t.ask("process/start", t.starting(args{"command": "true"}))
	t.want(r.failed == "", "process.start.v1 is announced, but process/start says %s", r.failed)
	t.processes()
}

func driveRecord(t *trial) {
	p := t.start(args{"command": "sleep 300"})
	defer t.stop(p)
	for name, a := range map[string]args{"process/start": p, "process/get": t.record("process/get", args{"id": p["id"]})} {
		w := wrong(a, shapeRecord)
		t.want(w == "", "the record of %s: %s", name, w)
		t.want(a["root_thread_id"] == t.peer.session && a["owner_id"] == t.peer.session && a["owner_kind"] == "main_agent", "the record of %s must name its session and owner: %v", name, a)
		for member, words := range map[string]string{"status": "starting running stopping stopped failed", "lifecycle": "session managed"} {
			t.want(slices.Contains(strings.Fields(words), text(a[member])), "%s must be one of %s: %v", member, words, a)
		}
		for _, member := range []string{"started_at", "updated_at", "stopped_at"} {
			_, err := time.Parse(time.RFC3339, text(a[member]))
			t.want(err == nil, "%s must be RFC 3339: %v", member, err)
		}
	}
}

func driveOperation(t *trial) {
	start := t.starting(args{"command": "true"})
	r := t.ask("process/start", start)
	if r.failed != "" {
		t.notOffered("process/start: %s", r.failed)
	}
	p := t.object("the reply to process/start", r.data, "id:string")
	t.want(p["operation_id"] == start["operation_id"], "the reply to process/start must have the operation_id %v: %v", start["operation_id"], p)
	t.want(hasRecord(t.processes(), "operation_id", start["operation_id"]), "process/list must have the operation_id %v", start["operation_id"])
}

func driveStart(t *trial) {
	p := t.start(args{"argv": []string{"echo", "a b"}})
	t.want(t.all(p) == "a b\n", "argv must run as it is, without a shell")
	t.refuses("it has neither command nor argv", "process/start", t.starting(args{}))
	t.refuses("it has both command and argv", "process/start", t.starting(args{"command": "true", "argv": []string{"true"}}))
	t.refuses("cwd is outside of the root", "process/start", t.starting(args{"command": "true", "cwd": ".."}))
}

func driveOffsets(t *trial) {
	p := t.start(args{"command": "printf 0123456789"})
	t.want(t.all(p) == "0123456789", "a read from 0 must give all output")
	r := t.readProcess(p, args{"OffsetBytes": 4, "MaxBytes": 3})
	t.want(r["Output"] == "456" && r["StartOffset"] == 4.0 && r["EndOffset"] == 7.0 && r["TotalBytes"] == 10.0, "a read of 3 bytes from 4 must give 456, 4 to 7 of 10: %v", r)
	r = t.readProcess(p, args{"OffsetBytes": 10})
	t.want(r["Output"] == "" && r["StartOffset"] == 10.0 && r["EndOffset"] == 10.0, "a read at the end must give nothing: %v", r)
}

func driveTail(t *trial) {
	p := t.start(args{"command": "printf 0123456789"})
	t.all(p)
	for _, options := range []args{{"MaxBytes": 4}, {"MaxBytes": 4, "OffsetBytes": nil}} {
		r := t.readProcess(p, options)
		t.want(r["Output"] == "6789" && r["StartOffset"] == 6.0 && r["EndOffset"] == 10.0, "a read of 4 bytes without an offset must give the last 4: %v", r)
	}
}

func driveWait(t *trial) {
	const wait = 300 * time.Millisecond
	mark := t.mark()
	p := t.start(args{"command": "until [ -e " + mark + " ]; do sleep 0.1; done; printf late; sleep 300"})
	defer t.stop(p)
	begun := time.Now()
	r := t.readProcess(p, args{"OffsetBytes": 0, "Wait": int64(wait)})
	t.want(r["TimedOut"] == true && r["Output"] == "", "a read of a silent process must say TimedOut: %v", r)
	// As it sees the time itself: what the machine takes on top does not matter.
	duration, _ := r["Duration"].(float64)
	t.want(time.Duration(duration) >= wait*9/10, "a read with a Wait of %v must wait that long, not %v", wait, time.Duration(duration))
	t.want(time.Since(begun) >= wait*9/10, "a read with a Wait of %v must wait that long, not %v", wait, time.Since(begun))
	w := t.peer.request("process/read", args{"id": p["id"], "options": args{"OffsetBytes": 0, "Wait": int64(time.Hour)}})
	t.start(args{"argv": []string{"touch", mark}})
	got := t.object("the reply to process/read", t.await(w).data, "Output:string TimedOut:bool")
	t.want(got["Output"] == "late" && got["TimedOut"] == false, "a read must return when there is output: %v", got)
}

func driveStop(t *trial) {
	mark := t.mark()
	p := t.start(args{"command": "(trap '' TERM; sleep 300; : " + mark + ") & sleep 300; : " + mark})
	a := t.record("process/stop", args{"id": p["id"]})
	t.want(a["status"] == "stopped" || a["status"] == "failed", "the reply to process/stop must say that it has ended: %v", a)
	if !canSee {
		return
	}
	t.until("nothing of the stopped group runs", func() bool { return len(running(mark)) == 0 })
}

func driveResize(t *trial) {
	start := t.starting(args{"command": "stty size; read x; stty size", "tty": args{"cols": 91, "rows": 33}})
	r := t.ask("process/start", start)
	if r.failed != "" {
		t.notOffered("a process with a terminal: %s", r.failed)
	}
	p := t.object("the reply to process/start", r.data, "id:string")
	first := t.readProcess(p, args{"OffsetBytes": 0, "Wait": int64(t.Patience / 2), "MinDwell": int64(50 * time.Millisecond)})
	t.want(strings.Contains(text(first["Output"]), "33 91"), "the terminal must have 33 rows and 91 columns from the beginning: %v", first)
	t.record("process/resize", args{"id": p["id"], "cols": 77, "rows": 22})
	t.record("process/write", args{"id": p["id"], "input": "\n"})
	t.want(strings.Contains(t.all(p), "22 77"), "after process/resize the terminal must have 22 rows and 77 columns")
}

func driveEvents(t *trial) {
	for _, test := range []struct{ command, cause string }{{"true", "natural_exit"}, {"sleep 300", "requested_stop"}} {
		p := t.start(args{"command": test.command})
		if test.cause == "requested_stop" {
			t.stop(p)
		}
		var seen []event
		t.until("an event that the process "+text(p["id"])+" has ended", func() bool {
			seen = t.peer.about(text(p["id"]))
			return slices.ContainsFunc(seen, func(e event) bool { return e.Type == "stopped" || e.Type == "failed" })
		})
		t.want(seen[0].Type == "started", "the first event must be started, not %s", seen[0].Type)
		ended := seen[slices.IndexFunc(seen, func(e event) bool { return e.Type == "stopped" || e.Type == "failed" })]
		t.want(ended.Cause == test.cause || ended.Cause == "", "the Cause must be %s, not %s", test.cause, ended.Cause)
		for _, e := range seen {
			known := []string{"started", "updated", "failed", "stopped", "cleaned_up", "recheck_due"}
			t.want(slices.Contains(known, e.Type), "the Type of an event must be one of %v, not %s", known, e.Type)
			w := wrong(e.Process, "id:string status:string exit_code:number")
			t.want(w == "", "the Process of an event: %s", w)
		}
	}
}

func driveCompletion(t *trial) {
	p := t.start(args{"command": "sleep 300"})
	defer t.stop(p)
	for _, method := range []string{"process/input_available", "process/completion_pending"} {
		r := t.ask(method, args{"id": p["id"], "consumer": "check"})
		if r.failed != "" {
			t.notOffered("%s: %s", method, r.failed)
		}
		t.want(kindOf(decoded(r.data)) == "bool", "%s must give true or false, not %.100s", method, r.data)
	}
	for _, method := range []string{"process/completion_mode", "process/completion_delivered", "process/recheck", "process/recheck_delivered"} {
		a := t.record(method, args{"id": p["id"], "mode": "notify", "consumer": "check", "minutes": 5})
		t.want(a["id"] == p["id"], "%s must give the record: %v", method, a)
	}
}
