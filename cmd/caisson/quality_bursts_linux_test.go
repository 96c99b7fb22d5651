package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/caisson-dev/caisson/rpc/protocol"
)

// quickCalls is how many calls a service answers, quickWarm after how many of
// them its memory is first looked at, and quickGrowth what it may take more after
// the last.
const (
	quickCalls  = 10_000
	quickWarm   = 2_000
	quickAtOnce = 16
	quickGrowth = 24 << 20
)

// Ten thousand quick calls have the right answers and leave the memory as it is.
func testQuickCalls(t *testing.T) {
	w := newPlace(t, members{}).serve().open("", "")
	content := func(i int) string { return strings.Repeat(fmt.Sprintf("line of file %d\n", i), 1+i*10) }
	const files = 12
	for i := range files {
		w.call("write_file", members{"path": fmt.Sprintf("q%d", i), "content": content(i)})
	}
	calls := func(n int) {
		t.Helper()
		var group sync.WaitGroup
		for worker := range quickAtOnce {
			group.Go(func() {
				for k := range n / quickAtOnce {
					i := (worker + k) % files
					path := fmt.Sprintf("q%d", i)
					if k%2 == 0 {
						r, err := w.FileRead(w.Context(), protocol.FileReadParams{SessionID: w.session.ID, Path: path})
						if err != nil || string(r.Data) != content(i) {
							t.Errorf("%s: %d bytes, %v", path, len(r.Data), explain(err))
							return
						}
						continue
					}
					r, err := w.ToolCall(w.Context(), protocol.ToolCallParams{
						SessionID: w.session.ID, Name: "read_file", Arguments: protocol.RawObject(fmt.Sprintf(`{"path":%q}`, path)),
					})
					var page struct{ Content string }
					if err := errors.Join(err, json.Unmarshal(r.StructuredContent, &page)); err != nil || page.Content != content(i) {
						t.Errorf("%s: %q, %v", path, page.Content, explain(err))
						return
					}
				}
			})
		}
		group.Wait()
	}
	calls(quickWarm)
	before := memory(t, w.cmd.Process.Pid, "VmRSS")
	calls(quickCalls - quickWarm)
	if grown := memory(t, w.cmd.Process.Pid, "VmRSS") - before; grown > quickGrowth {
		t.Errorf("the service has grown by %d MiB", grown>>20)
	}
}

// unreadOutput is more than a service may keep for a client that does not read.
const unreadOutput = 96 << 20

// A client that stops reading slows nothing, costs a bounded amount of memory, and
// finds one answer to each request, and the output with its gaps marked, when it
// reads again.
func testUnreadClient(t *testing.T) {
	p := newPlace(t, members{})
	s := p.speak()
	request := 0
	ask := func(method string, params members) int {
		t.Helper()
		request++
		raw, err := json.Marshal(members{"jsonrpc": "2.0", "id": request, "method": method, "params": params})
		if err != nil {
			t.Fatal(err)
		}
		s.send(string(raw))
		return request
	}
	ask("initialize", members{"processId": nil, "capabilities": members{"processOutput": true}})
	s.answer(request, nil)
	ask("session/open", members{"sessionId": "unread", "workspace": "file://" + p.folder})
	s.answer(request, nil)
	const megabyte = 1 << 20
	if err := os.WriteFile(filepath.Join(p.folder, "big"), []byte(strings.Repeat("x", megabyte)), 0o600); err != nil {
		t.Fatal(err)
	}
	ask("process/start", members{"sessionId": "unread", "command": fmt.Sprintf("while [ ! -e go ]; do sleep 0.01; done; head -c %d /dev/zero; touch written", unreadOutput)})
	var started protocol.ProcessResult
	s.answer(request, &started)
	ask("process/subscribe", members{"sessionId": "unread", "processId": started.Process.ID, "fromOffset": 0})
	s.answer(request, nil)

	// From here on nobody reads.
	before := memory(t, s.cmd.Process.Pid, "VmRSS")
	if err := os.WriteFile(filepath.Join(p.folder, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	first := request + 1
	const reads = 40
	for range reads {
		ask("fs/readFile", members{"sessionId": "unread", "path": "big"})
	}
	p.until("the process to have written everything", func() bool {
		_, err := os.Lstat(filepath.Join(p.folder, "written"))
		return err == nil
	})
	if grown := memory(t, s.cmd.Process.Pid, "VmHWM") - before; grown > 256<<20 {
		t.Errorf("the service has grown by %d MiB", grown>>20)
	}

	// The whole output, but for what is marked as left out, and every answer once.
	answered, next, gaps := map[int]bool{}, int64(0), int64(0)
	for over := false; !over || len(answered) < reads; {
		m := s.message()
		if m.ID != 0 {
			if m.ID < first || answered[m.ID] {
				t.Fatalf("there is another answer to request %d", m.ID)
			}
			answered[m.ID] = true
			if m.Error != nil {
				if m.Error.Code != protocol.CodeOverloaded {
					t.Errorf("a read is answered with %+v", m.Error)
				}
				continue
			}
			var r protocol.FileReadResult
			if err := json.Unmarshal(m.Result, &r); err != nil || len(r.Data) != megabyte || strings.Trim(string(r.Data), "x") != "" {
				t.Errorf("a read is answered with %d bytes, %v", len(r.Data), err)
			}
			continue
		}
		if m.Method != protocol.MethodProcessOutput {
			continue
		}
		var o protocol.ProcessOutputParams
		if err := json.Unmarshal(m.Params, &o); err != nil || o.Error != nil {
			t.Fatalf("%+v, %v", o.Error, err)
		}
		if o.Offset != next {
			t.Fatalf("output goes on at %d after %d", o.Offset, next)
		}
		next += int64(len(o.Data))
		if o.Gap {
			gaps += o.NextOffset - o.Offset
			next = o.NextOffset
		}
		over = over || o.EOF
	}
	if next != unreadOutput || gaps == 0 {
		t.Errorf("the output ends at %d, with %d bytes left out", next, gaps)
	}
	// All is as it was.
	ask("process/read", members{"sessionId": "unread", "processId": started.Process.ID, "offset": unreadOutput - 5, "encoding": "base64"})
	var tail protocol.ProcessReadResult
	s.answer(request, &tail)
	if got, err := base64.StdEncoding.DecodeString(tail.Data); err != nil || string(got) != "\x00\x00\x00\x00\x00" || !tail.EOF {
		t.Errorf("the end of the output is %q, %v", got, err)
	}
	s.in.Close()
	s.ends(1)
}

// message is what a service sends.
type message struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *protocol.Error `json:"error"`
}

// message reads the next one.
func (s *speaker) message() message {
	s.Helper()
	header, err := textproto.NewReader(s.out).ReadMIMEHeader()
	if err != nil {
		s.Fatalf("read a frame: %v", err)
	}
	n, err := strconv.Atoi(header.Get("Content-Length"))
	if err != nil {
		s.Fatal(err)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(s.out, body); err != nil {
		s.Fatal(err)
	}
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		s.Fatalf("%.200s: %v", body, err)
	}
	return m
}

// answer reads up to the answer to a request, which must be no error, into
// result unless that is nil.
func (s *speaker) answer(id int, result any) {
	s.Helper()
	for {
		m := s.message()
		switch {
		case m.ID != id:
			continue
		case m.Error != nil:
			s.Fatalf("request %d: %v", id, m.Error)
		case result != nil:
			if err := json.Unmarshal(m.Result, result); err != nil {
				s.Fatal(err)
			}
		}
		return
	}
}

// memory is a figure of /proc/PID/status, in bytes.
func memory(t testing.TB, pid int, name string) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "\n"+name+":")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		t.Fatalf("no %s in the status of %d", name, pid)
	}
	n, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}
