package backendtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/caisson-dev/caisson/backends/tool"
)

func loadTests() []test {
	return []test{
		{name: "ConcurrentFiles", run: testConcurrentFiles},
		{name: "ConcurrentCommands", needs: needShell, run: testConcurrentCommands},
	}
}

// concurrency is how many calls go on at once.
const concurrency = 32

func testConcurrentFiles(w *world) {
	var group sync.WaitGroup
	for i := range concurrency {
		group.Go(func() {
			name := fmt.Sprintf("dir-%d/file", i)
			content := bytes.Repeat(fmt.Appendf(nil, "line of %d\n", i), 1000*(1+i%8))
			if _, err := w.try("write_file", args{"path": name, "content": string(content)}); err != nil {
				w.Errorf("write %d: %v", i, describe(err))
			}
			for range 4 {
				got, err := w.fs.ReadFile(w.Context(), name, 0, -1)
				if err != nil || !bytes.Equal(got, content) {
					w.Errorf("read %d: %d bytes, want %d, %v", i, len(got), len(content), err)
				}
			}
		})
	}
	group.Wait()
}

func testConcurrentCommands(w *world) {
	var group sync.WaitGroup
	for i := range concurrency {
		group.Go(func() {
			res, err := w.try("bash", args{"command": fmt.Sprintf("echo %d; sleep 0.2; echo %d > out-%d", i, i, i)})
			if err != nil {
				w.Errorf("command %d: %v", i, describe(err))
				return
			}
			var r ran
			if err := json.Unmarshal(res.StructuredContent, &r); err != nil || r.Stdout != fmt.Sprintln(i) || r.ExitCode != 0 {
				w.Errorf("command %d answered %+v, %v", i, r, err)
			}
		})
		group.Go(func() {
			p, err := w.env.Processes().Start(w.Context(), tool.StartRequest{
				OperationID: fmt.Sprintf("op-%d", i), Actor: w.binding.Session, Command: fmt.Sprintf("echo process %d", i),
			})
			if err != nil {
				w.Errorf("process %d: %v", i, describe(err))
				return
			}
			if p.OperationID != fmt.Sprintf("op-%d", i) {
				w.Errorf("process %d got %+v", i, p)
			}
		})
	}
	group.Wait()
	list, err := w.env.Processes().List(w.Context())
	if err != nil || len(list) != concurrency {
		w.Fatalf("listed %d processes, %v", len(list), err)
	}
	for _, p := range list {
		if out := string(w.output(p.ID)); out != "process "+p.OperationID[len("op-"):]+"\n" {
			w.Errorf("%s printed %q", p.OperationID, out)
		}
	}
}
