package check

import (
	"time"
)

func commands() []clause {
	return []clause{
		rule("tool-bash", sectionExecute, "bash", func(t *trial) {
			a := t.command("echo out; echo err >&2")
			w := wrong(a, shapeCommand)
			t.want(w == "", "structured_content of bash: %s", w)
			t.want(a["stdout"] == "out\n" && a["stderr"] == "err\n" && a["exit_code"] == 0.0 && a["timed_out"] == false, "bash must give what the command printed: %v", a)
		}),
		rule("bash-exit-code", sectionExecute, "a command that exits with an error is a normal result", func(t *trial) {
			if t.known.mode == "" {
				t.notOffered("it runs no commands")
			}
			c := t.execute("bash", args{"command": "exit 3"}, t.known.mode)
			t.want(c.refused == "" && c.object["exit_code"] == 3.0, "exit 3 must be a result with exit_code 3: %s %s", c.refused, c.raw)
		}),
		rule("bash-stdin", sectionExecute, "the stdin of a command is at its end", func(t *trial) {
			a := t.commandWith(args{"command": "cat; echo end", "timeout_seconds": max(1, int(t.Patience/(2*time.Second)))})
			t.want(a["stdout"] == "end\n" && a["timed_out"] == false, "cat must find the end of its input at once: %v", a)
		}),
		rule("bash-holder", sectionExecute, "bash returns when the command has ended, whoever holds its pipes", driveHolder),
		rule("bash-timeout", sectionExecute, "a bash over its timeout goes on as a process", driveTimeout),
		rule("bash-cwd", sectionExecute, "a command runs in the root, or in a directory below it", func(t *trial) {
			a := t.command("mkdir -p check-cwd; pwd -P")
			t.want(a["stdout"] == t.peer.resolved+"\n", "a command must run in the root %s: %v", t.peer.resolved, a)
			a = t.commandWith(args{"command": "pwd -P", "cwd": "check-cwd"})
			t.want(a["stdout"] == t.peer.resolved+"/check-cwd\n", "a command with cwd must run there: %v", a)
			t.refusesTool("cwd is outside of the root", "bash", args{"command": "true", "cwd": ".."}, t.known.mode)
		}),
		rule("tool-git", sectionExecute, "git", func(t *trial) {
			if t.known.mode == "" {
				t.notOffered("it runs no commands")
			}
			a := t.shaped("git", t.offers("git", args{"subcommand": "version"}, t.known.mode), shapeCommand)
			t.want(a["exit_code"] == 0.0, "git version must succeed: %v", a)
		}),
		rule("tool-process", sectionExecute, "process", driveProcessTool),
		rule("one-world", sectionExecute, "files and commands are one world", func(t *trial) {
			t.write("check-world.txt", "written\n")
			a := t.command("cat check-world.txt; echo by command > check-world-2.txt")
			t.want(a["stdout"] == "written\n", "a command must see what write_file wrote: %v", a)
			t.want(t.content("check-world-2.txt") == "by command\n", "read_file must see what a command wrote")
		}),
	}
}

// driveHolder leaves somebody behind who holds the pipes of a command until a later
// one lets him go.
func driveHolder(t *trial) {
	t.command("rm -f check-let-go")
	w := t.sendTool("bash", args{"command": "echo out; until [ -e check-let-go ]; do sleep 0.1; done &"}, t.known.mode)
	returned := t.awaited(w)
	t.command("touch check-let-go")
	t.want(returned != nil, "bash must return when the command has ended, and has not in %v", t.Patience)
	c := t.outcome("bash", *returned)
	t.want(c.object["stdout"] == "out\n", "bash must give what the command printed: %s", c.raw)
}

// driveTimeout gives a busy machine more time for the command to print.
func driveTimeout(t *trial) {
	for _, seconds := range []int{1, 4, 16} {
		a := t.commandWith(args{"command": t.marked("echo out; sleep 300", t.marker), "timeout_seconds": seconds})
		t.want(a["timed_out"] == true && kindOf(a["promoted_process_id"]) == "string",
			"after its timeout a command must go on, with timed_out and promoted_process_id: %v", a)
		c := t.execute("process", args{"action": "stop", "process_id": a["promoted_process_id"]}, t.known.mode)
		t.want(c.refused == "", "the process %v must be there to be stopped: %s", a["promoted_process_id"], c.refused)
		if a["stdout"] == "out\n" {
			return
		}
	}
	t.broken("after its timeout bash must give what the command has printed until then")
}

func driveProcessTool(t *trial) {
	a := t.commandWith(args{"command": t.marked("echo out; sleep 300", t.marker), "run_in_background": true})
	id := a["promoted_process_id"]
	t.want(kindOf(id) == "string", "bash with run_in_background must name the process in promoted_process_id: %v", a)
	call := func(shape string, more args) args {
		return t.shaped("process", t.offers("process", more, t.known.mode), shape)
	}
	call("processes:list", args{"action": "list"})
	a = call("process:object output:string start_offset:number end_offset:number total_bytes:number truncated:bool timed_out:bool eof:bool",
		args{"action": "read", "process_id": id, "offset_bytes": 0, "wait_ms": (t.Patience / 2).Milliseconds()})
	t.want(a["output"] == "out\n" && a["end_offset"] == 4.0, "process read must give the output: %v", a)
	call("process:object", args{"action": "stop", "process_id": id})
	t.refusesTool("there is no such process", "process", args{"action": "read", "process_id": "check-unknown"}, t.known.mode)
	t.refusesTool("there is no such action", "process", args{"action": "check-unknown", "process_id": id}, t.known.mode)
}
