package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/backends/wire"
)

func programs() []clause {
	return []clause{
		rule("run-code", sectionRunCode, "a program's reply has Logs, and a program that fails says so in Error", func(t *trial) {
			t.runsCode()
			r := t.ask("run_code", t.program("this is no program ((", nil))
			t.want(r.failed == "", "a program that cannot run must say so in a normal reply, not in an error: %s", r.failed)
			a := t.object("the reply to run_code", r.data, "Logs?:list Error:string")
			t.want(text(a["Error"]) != "", "a program that cannot run must say so in Error, in a normal reply: %v", a)
		}),
		rule("run-code-callback", sectionRunCode, "a tool that a program calls is asked of the host, under the program's id", driveCallback),
	}
}

// runsCode ends the trial unless programs can be run.
func (t *trial) runsCode() {
	r := t.ask("run_code", t.program("1", nil))
	if r.failed != "" {
		t.notOffered("run_code: %.200s", r.failed)
	}
	t.object("the reply to run_code", r.data, "Logs?:list Error?:string")
}

func (t *trial) program(code string, tools []args) args {
	if tools == nil {
		tools = []args{}
	}
	return args{"program": args{"code": code, "tools": tools}, "timeout_ms": t.Patience.Milliseconds(), "actor": t.peer.session, "permission_mode": "standard"}
}

// driveCallback runs a call that reads the same in most languages.
func driveCallback(t *trial) {
	t.runsCode()
	w := t.peer.request("run_code", t.program(`check_tool({"path": "x"})`, []args{{"name": "check_tool", "description": "", "input_schema": args{"type": "object"}}}))
	var asked frame
	t.until("a frame that asks for the tool, or the end of the program", func() bool {
		t.peer.mu.Lock()
		defer t.peer.mu.Unlock()
		if len(t.peer.callbacks) > 0 {
			asked = t.peer.callbacks[0]
		}
		return asked.ID != nil || len(w.replies) > 0
	})
	if asked.ID == nil {
		t.notOffered("the program called no tool: %.200s", t.await(w).data)
	}
	t.want(asked.ParentID == w.id, "parent_id must be that of the run_code, %s, not %q", w.id, asked.ParentID)
	t.want(*asked.ID != "" && *asked.ID != w.id, "the id must be a fresh one, not %q", *asked.ID)
	call := t.object("the data of the callback", asked.Data, "name:string arguments:string")
	t.want(call["name"] == "check_tool", "the tool must be check_tool: %v", call)
	t.peer.silence(*asked.ID, t.clause.Name)
	t.peer.send(args{"id": *asked.ID, "method": "callback", "data": args{"id": *asked.ID, "data": args{"content": []args{{"type": "text", "text": "from the host"}}}}})
	r := t.await(w)
	t.want(r.failed == "" && strings.Contains(string(r.data), "from the host"), "the program must get what the host answered: %s %s", r.failed, r.data)
}

func extensions() []clause {
	return []clause{
		rule("tools-list", sectionExtensions, "tools/list names tools with their schema", func(t *trial) {
			t.needs(wire.CapTools)
			a := t.object("the reply to tools/list", t.must("tools/list", args{}), "tools?:list")
			for _, v := range list(a["tools"]) {
				described, _ := v.(map[string]any)
				w := wrong(described, "name:string description:string input_schema?:object annotations?:object")
				t.want(w == "", "a tool: %s", w)
			}
		}),
		rule("error-detail", sectionExtensions, "an error has its detail", func(t *trial) {
			t.needs(wire.CapErrors)
			t.told(wire.CapErrors)
			r := t.ask("check/unknown", args{})
			if r.failed == "" {
				r = t.ask("execute", t.call("check_unknown", args{}, ""))
			}
			t.object("the detail of an error", r.detail, "kind:string hint?:string path?:string retryable?:bool")
		}).unprepared(),
		rule("close-stdin", sectionExtensions, "process/close_stdin ends a process's input", func(t *trial) {
			t.needs(wire.CapProcess)
			p := t.start(args{"command": "cat; echo end"})
			t.record("process/close_stdin", args{"id": p["id"]})
			t.want(t.all(p) == "end\n", "the process must find the end of its input")
		}),
		rule("signal", sectionExtensions, "process/signal sends a signal, and the record says which one ended it", func(t *trial) {
			t.needs(wire.CapProcess)
			p := t.start(args{"argv": []string{"sleep", "300"}})
			t.record("process/signal", args{"id": p["id"], "signal": "SIGTERM"})
			t.all(p)
			a := t.record("process/get", args{"id": p["id"]})
			t.want(a["signal"] == "SIGTERM", "signal must be SIGTERM: %v", a)
			t.refuses("there is no such signal", "process/signal", args{"id": p["id"], "signal": "SIGNONE"})
		}),
		rule("output-closed", sectionExtensions, "output_closed and total_bytes, and an updated event when it becomes true", func(t *trial) {
			t.needs(wire.CapProcess)
			p := t.start(args{"command": "echo out"})
			t.until("an event with output_closed", func() bool {
				return slices.ContainsFunc(t.peer.about(text(p["id"])), func(e event) bool { return e.Process["output_closed"] == true })
			})
			a := t.record("process/get", args{"id": p["id"]})
			t.want(a["output_closed"] == true && a["total_bytes"] == 4.0, "the record must say output_closed and total_bytes 4: %v", a)
		}),
		rule("output-limit", sectionExtensions, "max_output_bytes bounds what a command returns", func(t *trial) {
			t.needs(wire.CapLimits)
			if t.known.mode == "" {
				t.notOffered("it runs no commands")
			}
			const most = 4096
			data := t.call("bash", args{"command": "head -c 100000 /dev/zero | tr '\\0' x"}, t.known.mode).with("max_output_bytes", most)
			c := t.outcome("bash", t.ask("execute", data))
			t.want(c.refused == "" && len(text(c.object["stdout"])) <= most && c.object["stdout_truncated"] == true,
				"stdout must have at most %d bytes and be stdout_truncated; it has %d: %s", most, len(text(c.object["stdout"])), c.refused)
		}),
		rule("side-chat", sectionExtensions, "a side chat is read_only whatever the frame says", func(t *trial) {
			t.needs(wire.CapActors)
			t.write("check-side.txt", "before\n")
			if c := t.execute("write_file", args{"path": "check-side-2.txt", "content": "x"}, "read_only"); c.refused == "" {
				t.notOffered("read_only writes anyway")
			}
			data := t.call("write_file", args{"path": "check-side.txt", "content": "after\n"}, "").with("actor_kind", "side_chat").with("actor", "side")
			t.ask("execute", data)
			t.want(t.content("check-side.txt") == "before\n", "a side chat must not write")
		}),
		rule(clauseBulk, sectionExtensions, "bodies of raw bytes", driveBulk).unprepared(),
		rule("files", sectionExtensions, "fs/* stat, list, write and read", driveFS).unprepared().given(clauseBulk),
		rule("shutdown", sectionExtensions, "shutdown stops, removes the workspace when told, replies and exits", func(t *trial) {
			t.needs(wire.CapShutdown)
			t.write("check-shutdown.txt", "x\n")
			t.must("shutdown", args{"remove": true})
			t.ends(t.peer, "after its reply to shutdown")
			t.want(!t.known.local || !t.peer.rootIsHere(), "the workspace must be removed")
		}).apart(),
	}
}

// told opens an adapter that is told what the host understands.
func (t *trial) told(capabilities ...string) {
	t.peer = t.open()
	r := t.ask("initialize", t.peer.binding().with("capabilities", capabilities))
	t.want(r.failed == "", "initialize with capabilities of the host failed: %s", r.failed)
}

func driveBulk(t *trial) {
	t.needs(wire.CapBulk)
	t.told(wire.CapBulk)
	content := strings.Repeat("0123456789abcdef", 17<<10) // 272 KiB
	data := t.call("write_file", args{}, "")
	data["call"].(args)["arguments"] = ""
	c := t.outcome("write_file", t.sendBody("execute", data, `{"path":"check-bulk.txt","content":"`+content+`"}`))
	t.want(c.refused == "", "an execute whose arguments are a body must work: %s", c.refused)
	c = t.offers("present_artifact", args{"path": "check-bulk.txt"}, "")
	t.want(len(c.content) == 1, "present_artifact must give one text part")
	offer := t.object("the text of present_artifact", []byte(text(c.content[0]["text"])), "execution_export:string")
	r := t.ask("export/stream", args{"token": offer["execution_export"]})
	t.want(r.failed == "" && string(r.body) == content, "export/stream must give the %d bytes as a body, not %d: %s", len(content), len(r.body), r.failed)
	t.must("export/close", args{"token": offer["execution_export"]})
}

// sendBody sends a request with a body, and waits for the reply.
func (t *trial) sendBody(method string, data args, content string) reply {
	p := t.peer
	p.mu.Lock()
	p.next++
	n := p.next
	p.mu.Unlock()
	id := fmt.Sprintf("check-body-%s-%d", t.clause.Name, n)
	w := p.expect(id, method)
	p.send(args{"id": id, "method": method, "data": data, "body": len(content)})
	for len(content) > 0 {
		piece := content[:min(len(content), 256<<10)]
		p.sendPiece(id, piece)
		content = content[len(piece):]
	}
	return t.await(w)
}

func driveFS(t *trial) {
	t.needs(wire.CapFS)
	t.needs(wire.CapBulk)
	t.told(wire.CapBulk, wire.CapFS)
	const content = "\x00raw\xff\n"
	r := t.sendBody("fs/write_file", args{"path": "check-fs.bin"}, content)
	t.want(r.failed == "", "fs/write_file failed: %s", r.failed)
	t.object("the reply to fs/stat", t.must("fs/stat", args{"path": "check-fs.bin"}), "name:string size:number")
	a := t.object("the reply to fs/read_directory", t.must("fs/read_directory", args{"path": ""}), "entries:list")
	t.want(hasRecord(list(a["entries"]), "name", "check-fs.bin"), "fs/read_directory must have the file: %v", a)
	r = t.ask("fs/read_file", args{"path": "check-fs.bin", "offset": 1, "length": 4})
	t.want(r.failed == "" && string(r.body) == content[1:5], "fs/read_file of 4 bytes from 1 must give them as a body, not %q: %s", r.body, r.failed)
	t.refuses("it is outside of the root", "fs/stat", args{"path": "../x"})
}
