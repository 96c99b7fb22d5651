package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/rpc/protocol"
)

// A newer service finds a worker of an older program alive: it attaches, uses what
// that one announces, says what it lacks, and never ends it.
func testOlderWorker(t *testing.T, profile members) {
	p := newPlace(t, members{"it": profile})
	newer := p.program
	p.program = filepath.Join(programDir, olderProgram)
	w := p.serve().open("it", "older")
	w.call("write_file", members{"path": "f", "content": "of the older one"})
	started := w.background("echo $$ > pid; " + counting)
	w.reads(started.ID, "0\n1\n2\n")
	worker := w.sh("echo $PPID")
	w.service.kill()

	p.program = newer
	w = p.serve().open("it", "older")
	if got := w.process(started.ID); got.Status != protocol.ProcessRunning || got.PID != started.PID {
		t.Fatalf("the process is %+v", got)
	}
	if got := w.sh("echo $PPID; cat f"); got != worker+"of the older one" {
		t.Errorf("the worker was %q, and now it is %q", worker, got)
	}
	// Everything that the contract has, in sizes that ours sends another way.
	big := strings.Repeat("a line of a large file\n", 50_000)
	w.call("write_file", members{"path": "big", "content": big})
	if got := w.sh("wc -c < big"); strings.TrimSpace(got) != "1150000" {
		t.Errorf("the large file has %s bytes", got)
	}
	w.call("edit_file", members{"path": "f", "old_text": "older", "new_text": "other"})
	if got := into[struct{ Content string }](w, w.call("read_file", members{"path": "f"})); got.Content != "of the other one" {
		t.Errorf("it reads %q", got.Content)
	}
	w.call("grep", members{"pattern": "large"})
	quick := w.background("echo quick; exit 7")
	if end := w.over(quick.ID); end.ExitCode == nil || *end.ExitCode != 7 {
		t.Errorf("it ends as %+v", end)
	}
	w.reads(quick.ID, "quick\n")
	cat := w.background("cat")
	if _, err := w.ProcessWrite(w.ctx(), protocol.ProcessWriteParams{SessionID: "older", ProcessID: cat.ID, Data: "echo\n"}); err != nil {
		t.Error(explain(err))
	}
	w.reads(cat.ID, "echo\n")
	_, err := w.ProcessCloseStdin(w.ctx(), w.named(cat.ID))
	p.kind(protocol.KindUnsupported, "process/closeStdin", err)
	if end, err := w.ProcessStop(w.ctx(), w.named(started.ID)); err != nil || end.Process.Status != protocol.ProcessExited {
		t.Errorf("stop: %+v, %v", end.Process, explain(err))
	}
	published, err := w.ArtifactPublish(w.ctx(), protocol.ArtifactPublishParams{SessionID: "older", Path: "big"})
	if err != nil || published.Artifact.Size != int64(len(big)) {
		t.Errorf("the artifact is %+v, %v", published.Artifact, explain(err))
	}
	if got := w.sh("echo $PPID"); got != worker {
		t.Errorf("the worker was %q, and now it is %q", worker, got)
	}
	// The end of the session is the worker's, whichever it is.
	if _, err := w.SessionDelete(w.ctx(), protocol.SessionDeleteParams{SessionID: "older"}); err != nil {
		t.Error(explain(err))
	}
	if w.session.Backend == "local" {
		p.until("the worker's end", func() bool { return len(p.workers()) == 0 })
	}
}
