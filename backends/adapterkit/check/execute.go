package check

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/backends/wire"
)

// called is what came of a call of a tool.
type called struct {
	// refused says why, in an error or in a result with is_error.
	refused string
	raw     json.RawMessage
	object  args // structured_content, nil when there is none
	content []args
}

// call is the data of execute.
func (t *trial) call(name string, a args, mode string) args {
	text, _ := json.Marshal(a) // what JSON has
	data := args{"call": args{"id": "check", "name": name, "arguments": string(text)}, "actor": t.peer.session}
	if mode != "" {
		data["permission_mode"] = mode
	}
	return data
}

// sendTool sends a call and does not wait.
func (t *trial) sendTool(name string, a args, mode string) *waiting {
	return t.peer.request("execute", t.call(name, a, mode))
}

// execute calls a tool.
func (t *trial) execute(name string, a args, mode string) called {
	return t.outcome(name, t.await(t.sendTool(name, a, mode)))
}

// outcome reads a tool result, whatever is wrong with it.
func (t *trial) outcome(name string, r reply) called {
	c := called{refused: r.failed, raw: r.data}
	if r.failed != "" {
		return c
	}
	var result args
	_ = json.Unmarshal(r.data, &result) // what is none is said next
	if wrong := wrongResult(result, len(r.data)); wrong != "" {
		t.note(clauseToolResult, fmt.Sprintf("the result of %s: %s", name, wrong), t.peer)
	}
	c.object, _ = result["structured_content"].(map[string]any)
	for _, part := range list(result["content"]) {
		p, _ := part.(map[string]any)
		c.content = append(c.content, p)
	}
	if result["is_error"] == true {
		c.refused = fmt.Sprintf("is_error: %.200s", r.data)
	}
	return c
}

// Limits of a tool result.
const (
	maxParts  = 128
	maxResult = 3 << 20
)

// wrongResult says what of a tool result of so many bytes is not as it must be.
func wrongResult(a args, size int) string {
	if a == nil {
		return "it must be an object"
	}
	if w := wrong(a, "content?:list structured_content?:object meta?:object is_error?:bool"); w != "" {
		return w
	}
	parts := list(a["content"])
	if len(parts) > maxParts || size > 2*maxResult {
		return "it has more than 128 parts or 3 MiB"
	}
	for _, part := range parts {
		p, _ := part.(map[string]any)
		if w := wrong(p, "type:string text?:string data?:string mime_type?:string uri?:string name?:string"); w != "" {
			return "a part of content: " + w
		}
		if !slices.Contains([]string{"text", "image", "audio", "file", "resource", "resource_link"}, p["type"].(string)) {
			return fmt.Sprintf("a part of content has the type %v", p["type"])
		}
	}
	return ""
}

// offers calls a tool for the first time in a trial: when it is refused, it is not
// offered.
func (t *trial) offers(name string, a args, mode string) called {
	c := t.execute(name, a, mode)
	if c.refused != "" {
		t.notOffered("%s: %.200s", name, t.peer.redact(c.refused))
	}
	return c
}

// tool calls a file tool that must have the result's members.
func (t *trial) tool(name string, a args, shape string) args {
	c := t.offers(name, a, "")
	return t.shaped(name, c, shape)
}

func (t *trial) shaped(name string, c called, shape string) args {
	t.want(c.object != nil, "the result of %s must have structured_content", name)
	w := wrong(c.object, shape)
	t.want(w == "", "structured_content of %s: %s", name, w)
	return c.object
}

// refusesTool calls a tool that must refuse, in an error or a result with is_error.
func (t *trial) refusesTool(why, name string, a args, mode string) {
	c := t.execute(name, a, mode)
	t.want(c.refused != "", "%s must be refused: %s", name, why)
}

// write makes a file, where the adapter writes any.
func (t *trial) write(path, content string) {
	t.offers("write_file", args{"path": path, "content": content}, "")
}

// content is what read_file says of a file; empty when it refuses.
func (t *trial) content(path string) string {
	c := t.execute("read_file", args{"path": path}, "")
	text, _ := c.object["content"].(string)
	return text
}

const shapeCommand = "command:string exit_code:number stdout:string stderr:string stdout_truncated:bool " +
	"stderr_truncated:bool duration_ms:number timed_out:bool signal?:string promoted_process_id?:string"

// command runs a shell line and gives the result.
func (t *trial) command(line string) args { return t.commandWith(args{"command": line}) }

func (t *trial) commandWith(a args) args {
	if t.known.mode == "" {
		t.notOffered("it runs no commands")
	}
	c := t.execute("bash", a, t.known.mode)
	t.want(c.refused == "", "bash must run %v: %s", a, c.refused)
	t.want(c.object != nil, "the result of bash must have structured_content")
	return c.object
}

// mark is one that no other command has.
func (t *trial) mark() string {
	t.peer.mu.Lock()
	defer t.peer.mu.Unlock()
	t.peer.next++
	return fmt.Sprintf("%s-%s-%d-", t.marker, strings.ReplaceAll(t.peer.session, "/", ""), t.peer.next)
}

// marked is a shell line whose shell has the mark in its arguments and stays.
func (t *trial) marked(line, mark string) string { return line + "; : " + mark }

// visible waits until the command with the mark is seen on this machine.
func (t *trial) visible(mark string) {
	if !canSee {
		t.notOffered("processes cannot be looked at on this system")
	}
	tick := time.NewTicker(looking)
	defer tick.Stop()
	timer := time.NewTimer(t.Patience / 2)
	defer timer.Stop()
	for len(running(mark)) == 0 {
		select {
		case <-tick.C:
		case <-timer.C:
			t.notOffered("its commands do not run on this machine, or cannot be seen")
		case <-t.ctx.Done():
			t.broken("interrupted")
		}
	}
}

// start starts a process.
func (t *trial) start(a args) args {
	r := t.ask("process/start", t.starting(a))
	if r.failed != "" {
		t.notOffered("process/start: %.200s", t.peer.redact(r.failed))
	}
	return t.object("the reply to process/start", r.data, "id:string")
}

// starting is the data of a start.
func (t *trial) starting(a args) args {
	t.needs(wire.CapProcessStart)
	mode := t.known.mode
	if mode == "" {
		mode = "standard"
	}
	a = a.with("operation_id", "check-op-"+t.mark()).with("actor", t.peer.session).with("permission_mode", mode)
	if line, ok := a["command"].(string); ok {
		a["command"] = t.marked(line, t.marker)
	}
	return a
}

// startMarked starts a process that stays, by the method or, where there is none,
// by a command in the background.
func (t *trial) startMarked(mark string) {
	if t.announces(wire.CapProcessStart) {
		t.start(args{"command": t.marked("sleep 300", mark)})
		return
	}
	t.commandWith(args{"command": t.marked("sleep 300", mark), "run_in_background": true})
}
