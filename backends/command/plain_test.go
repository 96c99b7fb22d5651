package command

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// plainAdapter knows the contract and none of our extensions.
type plainAdapter struct {
	log          string
	capabilities []string

	mu        sync.Mutex
	in        wire.Initialize
	processes []tool.Process
	reads     int
}

// Handle answers a request.
func (a *plainAdapter) Handle(ctx context.Context, r *wire.Request) (wire.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.Method == wire.MethodInitialize {
		if err := r.Decode(&a.in); err != nil {
			return wire.Response{}, err
		}
		raw, _ := json.Marshal(a.in)
		note(a.log, "initialize "+string(raw))
		if a.in.RequireExistingWorkspace && strings.HasSuffix(a.in.Root, "/gone") {
			return wire.Response{}, fmt.Errorf("the workspace is gone")
		}
		return wire.Response{Data: wire.Initialized{Version: 4, Root: a.in.Root, Capabilities: a.capabilities}}, nil
	}
	note(a.log, r.Method)
	switch r.Method {
	case wire.MethodExecute:
		e, arguments, err := r.Execute()
		if err != nil {
			return wire.Response{}, err
		}
		return a.execute(ctx, e, arguments)
	case wire.MethodProcessStart:
		var s tool.StartRequest
		if err := r.Decode(&s); err != nil {
			return wire.Response{}, err
		}
		p := tool.Process{
			ID: fmt.Sprintf("proc-%d", len(a.processes)), OperationID: s.OperationID, OwnerKind: tool.OwnerMainAgent, OwnerID: a.in.Session,
			RootThreadID: a.in.Session, Status: tool.ProcessStopped, Command: s.Command, CWD: a.in.Root, StartedAt: time.Now(), StoppedAt: time.Now(),
		}
		if s.Command == "forget the operation" {
			p.OperationID = ""
		}
		a.processes = append(a.processes, p)
		return wire.Response{Data: p}, nil
	case wire.MethodProcessList:
		return wire.Response{Data: append([]tool.Process{}, a.processes...)}, nil
	case wire.MethodProcessRead:
		// The output grows for a while after the end.
		a.reads = min(a.reads+1, 4)
		text := strings.Repeat("ä", a.reads)
		return wire.Response{Data: wire.ProcessRead{Process: a.processes[0], Output: text, EndOffset: int64(len(text)), TotalBytes: int64(len(text))}}, nil
	case wire.MethodExportRead:
		var x wire.ExportRead
		if err := r.Decode(&x); err != nil {
			return wire.Response{}, err
		}
		content := exported()
		chunk := content[x.Offset:min(int64(len(content)), x.Offset+wire.ExportChunk)]
		return wire.Response{Data: wire.ExportData{Data: chunk, EOF: x.Offset+int64(len(chunk)) == int64(len(content))}}, nil
	case wire.MethodExportClose:
		return wire.Response{Data: struct{}{}}, nil
	}
	return wire.Response{}, wire.UnknownMethod(r.Method)
}

// exported is what its one export holds: two chunks and a piece.
func exported() []byte { return []byte(strings.Repeat("0123456789abcdef", 36<<10)) }

func (a *plainAdapter) execute(ctx context.Context, e wire.Execute, arguments json.RawMessage) (wire.Response, error) {
	var in struct {
		Command    string `json:"command"`
		Background bool   `json:"run_in_background"`
	}
	if err := json.Unmarshal(arguments, &in); err != nil {
		return wire.Response{}, err
	}
	text := func(s string) (wire.Response, error) {
		return wire.Response{Data: tool.Result{Content: []tool.Part{{Type: tool.PartText, Text: s}}}}, nil
	}
	switch {
	case in.Background:
		return wire.Response{}, fmt.Errorf("this adapter has no processes")
	case in.Command == "die":
		fmt.Fprintln(os.Stderr, "panic: out of luck")
		os.Exit(7)
	case in.Command == "wait":
		note(a.log, "waits")
		<-ctx.Done()
		return wire.Response{}, ctx.Err()
	case e.Call.Name == "present_artifact":
		return text(fmt.Sprintf(`{"execution_export":"token","name":"x","size":%d}`, len(exported())))
	case e.Call.Name == "read_file":
		dir, _ := os.Getwd()
		raw, _ := json.Marshal(map[string]any{"dir": dir, "argv": os.Args, "own": os.Environ(), "given": a.in.Environment})
		return text(string(raw))
	}
	return text("answered " + in.Command)
}
