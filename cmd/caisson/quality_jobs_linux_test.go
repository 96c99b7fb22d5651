package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/rpc/protocol"
)

// A job with 5 inputs that leaves 20 files gives 20 artifacts, whose content can be
// read; one that is killed gives what it had printed, and says so. Nothing of
// either stays but the artifacts.
func testJobs(w *work) {
	text := func(s string) protocol.InputFile { return protocol.InputFile{Text: &s} }
	inputs := map[string]protocol.InputFile{"prog.sh": text("#!/bin/sh\ncat \"$@\"\n"), "b/0.bin": {Base64: []byte{0, 255}}}
	for i := range 3 {
		inputs[fmt.Sprintf("in/%d.txt", i)] = text(fmt.Sprintf("input %d\n", i))
	}
	got, err := w.JobRun(w.ctx(), protocol.JobRunParams{
		SessionID: w.session.ID, InputFiles: inputs,
		Script: &protocol.Script{Interpreter: "sh", Source: `./prog.sh in/*.txt; pwd >&2
			i=0; while [ $i -lt 19 ]; do mkdir -p out/$i && echo "output $i" > out/$i/result; i=$((i+1)); done
			cp b/0.bin copy.bin; echo changed >> in/0.txt; ln -s /etc/passwd stolen; exit 4`},
	})
	if err != nil {
		w.Fatal(explain(err))
	}
	if got.Stdout != "input 0\ninput 1\ninput 2\n" || got.ExitCode != 4 || len(got.Artifacts) != 20 || got.FilesDropped != 0 {
		w.Errorf("5 inputs and 20 outputs gave %d artifacts: %q %q %d", len(got.Artifacts), got.Stdout, got.Stderr, got.ExitCode)
	}
	for _, a := range got.Artifacts {
		read, err := w.ArtifactRead(w.ctx(), protocol.ArtifactReadParams{ID: a.ID})
		if err != nil {
			w.Fatal(explain(err))
		}
		want := "\x00\xff"
		if i, ok := strings.CutPrefix(a.Source.Path, "out/"); ok {
			want = "output " + strings.TrimSuffix(i, "/result") + "\n"
		}
		if string(read.Data) != want {
			w.Errorf("the artifact of %s is %q", a.Source.Path, read.Data)
		}
	}
	list, err := w.ArtifactList(w.ctx(), protocol.ArtifactListParams{SessionID: w.session.ID})
	if err != nil || !slices.ContainsFunc(list.Artifacts, func(a protocol.Artifact) bool { return a.URI == got.Artifacts[19].URI }) {
		w.Errorf("the list has %d artifacts, %v", len(list.Artifacts), err)
	}
	if dir := strings.TrimSpace(got.Stderr); dir == w.session.Root || w.bash("test -e "+dir).ExitCode == 0 {
		w.Errorf("the job's directory %s is still there", dir)
	}

	w.sh("rm -f job.pids")
	got, err = w.JobRun(w.ctx(), protocol.JobRunParams{
		SessionID: w.session.ID, Argv: []string{"sh", "-c", "echo printed; echo $$ >> job.pids; sleep 1000 & echo $! >> job.pids; echo kept > job.kept; wait"},
		CWD: ".", Collect: []string{"job.kept"}, Constraints: &protocol.Constraints{Timeout: protocol.Duration(time.Second + w.moment())},
	})
	if err != nil {
		w.Fatal(explain(err))
	}
	if !got.TimedOut || got.Stdout != "printed\n" || got.Signal != "SIGKILL" || len(got.Artifacts) != 1 {
		w.Errorf("a job that was out of time: %+v", got)
	}
	w.until("the end of its processes", func() bool {
		return w.bash(`for p in $(cat job.pids); do grep -q 'State:.[^Z]' /proc/$p/status 2>/dev/null && exit 1; done; true`).ExitCode == 0
	})
}
