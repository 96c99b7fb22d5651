//go:build linux

package worker_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

func execute(t *testing.T, c *wire.Client, name string, arguments any) tool.Result {
	t.Helper()
	b, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	return call[tool.Result](t, c, wire.MethodExecute,
		wire.Execute{Call: wire.ToolCall{Name: name, Arguments: string(b)}, Actor: "s1"})
}

func TestFiles(t *testing.T) {
	o := options(t)
	start(t, o)
	root := t.TempDir()
	c := connect(t, o, root)
	content := bytes.Repeat([]byte("\x00\xffline\r\n"), 300_000)
	reply, err := c.Call(t.Context(), wire.MethodWriteFile, wire.FilePath{Path: "big"}, content)
	if err != nil {
		t.Fatal(err)
	}
	var info wire.FileInfo
	if err := reply.Decode(&info); err != nil || info.Size != int64(len(content)) || info.Type != "file" {
		t.Errorf("written %+v, %v", info, err)
	}
	if got := call[wire.FileInfo](t, c, wire.MethodStat, wire.FilePath{Path: "big"}); got.Size != info.Size || got.Name != "big" {
		t.Errorf("stat %+v", got)
	}
	reply, err = c.Call(t.Context(), wire.MethodReadFile, wire.FileRange{Path: "big", Offset: 7, Length: -1}, nil)
	if err != nil || !bytes.Equal(reply.Body, content[7:]) {
		t.Errorf("read %d bytes, %v", len(reply.Body), err)
	}
	list := call[wire.Directory](t, c, wire.MethodReadDirectory, wire.FilePath{})
	if len(list.Entries) != 1 || list.Entries[0].Name != "big" {
		t.Errorf("listed %+v", list)
	}
	_, err = c.Call(t.Context(), wire.MethodStat, wire.FilePath{Path: "../x"}, nil)
	wantKind(t, "stat outside", err, tool.PathOutsideRoot, "outside")
	if _, err := c.Call(t.Context(), wire.MethodWriteFile, wire.FilePath{Path: "empty"}, nil); err != nil {
		t.Errorf("an empty file: %v", err)
	}
}

// A side chat is read_only whatever its frames say, and owns what it starts.
func TestActors(t *testing.T) {
	o := options(t)
	start(t, o)
	root := t.TempDir()
	c := connect(t, o, root)
	run := func(actor string, kind tool.ActorKind, name, arguments string) (tool.Result, error) {
		reply, err := c.Call(t.Context(), wire.MethodExecute, wire.Execute{
			Call: wire.ToolCall{Name: name, Arguments: arguments}, Actor: actor, ActorKind: kind, PermissionMode: tool.Standard,
		}, nil)
		if err != nil {
			return tool.Result{}, err
		}
		var r tool.Result
		return r, reply.Decode(&r)
	}
	_, err := run("chat", tool.ActorSideChat, "write_file", `{"path":"proof","content":"x"}`)
	wantKind(t, "write_file of a side chat", err, tool.Denied, "read_only")
	if _, err := run("chat", tool.ActorSideChat, "bash", `{"command":"touch proof"}`); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(root, "proof")); err == nil {
		t.Error("a side chat wrote")
	}
	owners := map[string]tool.Actor{}
	for _, a := range []tool.Actor{{ID: "s1", Kind: tool.ActorMain}, {ID: "a", Kind: tool.ActorSubagent}, {ID: "a", Kind: tool.ActorSideChat}} {
		in := tool.StartRequest{OperationID: string(a.Kind), Command: "exit 0", Actor: a.ID, PermissionMode: tool.Standard}
		if a.Kind == tool.ActorSideChat {
			in.ActorKind = a.Kind
		}
		p := call[tool.Process](t, c, wire.MethodProcessStart, in)
		owners[p.ID] = a
		if (p.SandboxMode == tool.ReadOnly) != (a.Kind == tool.ActorSideChat) {
			t.Errorf("%+v runs in %s", a, p.SandboxMode)
		}
	}
	for _, p := range call[[]tool.Process](t, c, wire.MethodProcessList, nil) {
		if p.Owner() != owners[p.ID] {
			t.Errorf("owner %+v, want %+v", p.Owner(), owners[p.ID])
		}
	}
	for what, a := range map[string]tool.Actor{
		"a kind that is none":        {ID: "a", Kind: "king"},
		"a main agent by kind":       {ID: "a", Kind: tool.ActorMain},
		"a side chat as the session": {ID: "s1", Kind: tool.ActorSideChat},
	} {
		_, err := run(a.ID, a.Kind, "list_files", "{}")
		wantKind(t, what, err, tool.InvalidParams, "")
		_, err = c.Call(t.Context(), wire.MethodProcessStart, tool.StartRequest{OperationID: "x", Command: "true", Actor: a.ID, ActorKind: a.Kind}, nil)
		wantKind(t, "a start of "+what, err, tool.InvalidParams, "")
	}
}

// Arguments may come beside the frame, but not twice.
func TestExecuteBody(t *testing.T) {
	o := options(t)
	start(t, o)
	root := t.TempDir()
	c := connect(t, o, root)
	text := strings.Repeat("\"quoted\"\n", 200_000)
	arguments, err := json.Marshal(map[string]string{"path": "f", "content": text})
	if err != nil {
		t.Fatal(err)
	}
	write := wire.Execute{Call: wire.ToolCall{Name: "write_file"}, Actor: "s1"}
	if _, err := c.Call(t.Context(), wire.MethodExecute, write, arguments); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(root, "f")); err != nil || string(b) != text {
		t.Errorf("the file has %d bytes, %v", len(b), err)
	}
	write.Call.Arguments = "{}"
	_, err = c.Call(t.Context(), wire.MethodExecute, write, arguments)
	wantKind(t, "arguments twice", err, tool.InvalidParams, "twice")
	write = wire.Execute{Call: wire.ToolCall{Name: "no_such_tool", Arguments: "{}"}, Actor: "s1"}
	_, err = c.Call(t.Context(), wire.MethodExecute, write, nil)
	wantKind(t, "an unknown tool", err, tool.ToolNotFound, "no_such_tool")
	_, err = c.Call(t.Context(), "process/dance", nil, nil)
	wantKind(t, "an unknown method", err, tool.Unsupported, "process/dance")
	_, err = c.Call(t.Context(), wire.MethodProcessGet, wire.ProcessRequest{}, nil)
	wantKind(t, "no process named", err, tool.InvalidParams, "no process")
}

func TestExports(t *testing.T) {
	o := options(t)
	start(t, o)
	root := t.TempDir()
	c := connect(t, o, root)
	content := bytes.Repeat([]byte("0123456789abcdef"), 40_000)
	file := filepath.Join(root, "f")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	res := execute(t, c, "present_artifact", map[string]string{"path": "f"})
	var made struct {
		Token string `json:"execution_export"`
		Name  string `json:"name"`
		Size  int64  `json:"size"`
	}
	if len(res.Content) != 1 {
		t.Fatalf("%+v", res)
	}
	if err := json.Unmarshal([]byte(res.Content[0].Text), &made); err != nil || made.Name != "f" || made.Size != int64(len(content)) {
		t.Fatalf("%s, %v", res.Content[0].Text, err)
	}
	if err := os.WriteFile(file, []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	size, stream, err := c.Stream(t.Context(), wire.MethodExportStream, wire.Export{Token: made.Token})
	if err != nil {
		t.Fatal(err)
	}
	streamed, err := io.ReadAll(stream)
	if err != nil || size != made.Size || !bytes.Equal(streamed, content) {
		t.Errorf("streamed %d of %d bytes, %v", len(streamed), size, err)
	}
	if err := stream.Close(); err != nil {
		t.Error(err)
	}
	// The same in the pieces of the contract.
	var read []byte
	for eof := false; !eof; {
		piece := call[wire.ExportData](t, c, wire.MethodExportRead, wire.ExportRead{Token: made.Token, Offset: int64(len(read))})
		if len(piece.Data) == 0 && !piece.EOF || len(piece.Data) > wire.ExportChunk {
			t.Fatalf("a piece of %d bytes, end %v", len(piece.Data), piece.EOF)
		}
		read, eof = append(read, piece.Data...), piece.EOF
	}
	if !bytes.Equal(read, content) {
		t.Errorf("read %d bytes", len(read))
	}
	call[struct{}](t, c, wire.MethodExportClose, wire.Export{Token: made.Token})
	_, err = c.Call(t.Context(), wire.MethodExportRead, wire.ExportRead{Token: made.Token}, nil)
	wantKind(t, "a closed export", err, tool.ArtifactNotFound, "")
}

// A host that knows the contract alone gets its letters: names, casing, text.
func TestContract(t *testing.T) {
	o := options(t)
	start(t, o)
	conn := dial(t, o.Listen)
	defer conn.Close()
	h := &rawHost{t: t, conn: conn, lines: bufio.NewReader(conn)}
	got := h.call("initialize", fmt.Sprintf(`{"version":4,"root":%q,"session":"s1","unknown":1}`, t.TempDir()))
	if got["version"] != 4.0 {
		t.Errorf("initialize: %v", got)
	}
	p := h.call("process/start", `{"operation_id":"op","command":"printf 'a\\377b'; read x","actor":"agent-7","permission_mode":""}`)
	for _, member := range []string{"id", "operation_id", "owner_kind", "owner_id", "root_thread_id", "lifecycle", "status",
		"pid", "pgid", "command", "cwd", "started_at", "updated_at", "stopped_at", "exit_code"} {
		if _, ok := p[member]; !ok {
			t.Errorf("a process has no %s: %v", member, p)
		}
	}
	if p["owner_kind"] != "subagent" || p["root_thread_id"] != "s1" || p["exit_code"] != -1.0 || p["operation_id"] != "op" {
		t.Errorf("the process is %v", p)
	}
	id := p["id"].(string)
	read := h.call("process/read", fmt.Sprintf(`{"id":%q,"options":{"MaxBytes":100,"OffsetBytes":0,"Wait":10000000000,"MinDwell":300000000}}`, id))
	members := slices.Sorted(maps.Keys(read))
	if want := []string{"Duration", "EndOffset", "Output", "Process", "StartOffset", "TimedOut", "TotalBytes", "Truncated"}; !slices.Equal(members, want) {
		t.Errorf("process/read answers %q, want %q", members, want)
	}
	if read["Output"] != "a\uFFFDb" || read["EndOffset"] != 3.0 {
		t.Errorf("process/read: %v", read)
	}
	read = h.call("process/read", fmt.Sprintf(`{"id":%q,"options":{"OffsetBytes":0,"Encoding":"base64"}}`, id))
	if want := base64.StdEncoding.EncodeToString([]byte("a\xffb")); read["Output"] != want || read["Encoding"] != "base64" {
		t.Errorf("process/read in base64: %v", read)
	}
	for _, method := range []string{"process/get", "process/completion_delivered", "process/recheck", "process/recheck_delivered", "process/stop"} {
		if got := h.call(method, fmt.Sprintf(`{"id":%q,"minutes":1,"consumer":"c"}`, id)); got["id"] != id {
			t.Errorf("%s: %v", method, got)
		}
	}
	if got := h.call("process/completion_mode", fmt.Sprintf(`{"id":%q,"mode":"quiet"}`, id)); got["completion_mode"] != "quiet" {
		t.Errorf("process/completion_mode: %v", got)
	}
	if got := h.call("process/cleanup", `{}`); len(got["Cleaned"].([]any)) != 1 {
		t.Errorf("process/cleanup: %v", got)
	}
	if got := h.error("fs/read_file", `{"path":"x","offset":0,"length":-1}`); !strings.Contains(got, wire.CapBulk) {
		t.Errorf("a body for a host without bodies: %q", got)
	}
	if got := h.error("nonsense", `{}`); !strings.Contains(got, "nonsense") {
		t.Errorf("an unknown method: %q", got)
	}
	if h.events["started"] != 1 || h.events["stopped"]+h.events["failed"] != 1 {
		t.Errorf("events %v", h.events)
	}
}

// rawHost speaks the protocol by the letter, one request at a time.
type rawHost struct {
	t      *testing.T
	conn   net.Conn
	lines  *bufio.Reader
	next   int
	events map[string]int
}

func (h *rawHost) request(method, data string) map[string]any {
	h.t.Helper()
	h.next++
	id := fmt.Sprint(h.next)
	fmt.Fprintf(h.conn, `{"id":%q,"method":%q,"token":%q,"data":%s}`+"\n", id, method, token, data)
	for {
		line, err := h.lines.ReadBytes('\n')
		if err != nil {
			h.t.Fatalf("%s: %v", method, err)
		}
		var frame map[string]any
		if err := json.Unmarshal(line, &frame); err != nil {
			h.t.Fatalf("%s: %v in %s", method, err, line)
		}
		if frame["id"] == id {
			return frame
		}
		if frame["id"] != "" || frame["method"] != "process" {
			h.t.Fatalf("%s: %s", method, line)
		}
		if h.events == nil {
			h.events = map[string]int{}
		}
		h.events[frame["data"].(map[string]any)["Type"].(string)]++
	}
}

func (h *rawHost) call(method, data string) map[string]any {
	h.t.Helper()
	frame := h.request(method, data)
	if frame["error"] != nil {
		h.t.Fatalf("%s: %v", method, frame["error"])
	}
	return frame["data"].(map[string]any)
}

func (h *rawHost) error(method, data string) string {
	h.t.Helper()
	frame := h.request(method, data)
	text, ok := frame["error"].(string)
	if !ok {
		h.t.Fatalf("%s: %v", method, frame)
	}
	if frame["detail"] != nil {
		h.t.Errorf("%s: a detail for a host that knows none: %v", method, frame)
	}
	return text
}
