package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/rpc/protocol"
)

// A job that fills the disk gets the system's own error, and what it came to is told.
// What finds no room is no artifact, which is said with the disk; of nothing there is a
// half, and nothing of the job is left.
func testFullDiskOfJobs(t *testing.T) {
	p := newPlace(t, members{})
	state, data := filepath.Dir(p.state()), filepath.Join(p.home, "data")
	p.mount(state, "4m")
	p.mount(data, "1m")
	w := p.serve().open("", "")
	run := func(source string, inputs map[string]protocol.InputFile) (protocol.JobRunResult, error) {
		defer p.nothingOfJobs(state, data)
		return w.JobRun(w.ctx(), protocol.JobRunParams{
			SessionID: w.session.ID, Script: &protocol.Script{Interpreter: "sh", Source: source}, InputFiles: inputs,
		})
	}
	check := func(what string, got protocol.JobRunResult, err error, stdout, full string, dropped int, names ...string) {
		t.Helper()
		var have []string
		for _, a := range got.Artifacts {
			have = append(have, a.Name)
		}
		if err != nil || got.Stdout != stdout || got.FilesDropped != dropped || strings.Join(have, " ") != strings.Join(names, " ") {
			t.Errorf("%s: %+v, %v", what, got, explain(err))
		}
		if full != "" && !strings.Contains(got.Stderr, "caisson: files that the job left and that were not collected for this reason: "+full) {
			t.Errorf("%s: it says %q", what, got.Stderr)
		}
	}
	got, err := run("echo small > a; head -c 50000000 /dev/zero > big; echo status $?", nil)
	check("it fills the disk", got, err, "status 1\n", "2; no space is left on the disk of "+state, 2)
	if !strings.Contains(got.Stderr, "No space left on device") {
		t.Errorf("the program was told %q", got.Stderr)
	}
	got, err = run("echo small > a; head -c 2500000 /dev/zero > big; echo status $?", nil)
	check("no room for a copy", got, err, "status 0\n", "1; no space is left on the disk of "+state, 1, "a")

	big := strings.Repeat("x", 5<<20)
	_, err = run("wc -c in", map[string]protocol.InputFile{"in": {Text: &big}})
	e := answerOf(err)
	if e == nil || e.Kind() != protocol.KindInternal || !strings.Contains(e.Message, "no space is left on the disk of "+state) {
		t.Fatalf("no room for an input: %v", explain(err))
	}
	if info, err := os.Stat(e.Data.Path); err != nil || !info.IsDir() || !strings.Contains(e.Data.Hint, "df "+e.Data.Path) {
		t.Errorf("it names a disk by %q, %v", e.Data.Path, err)
	}

	got, err = run("head -c 700000 /dev/urandom > a; head -c 700000 /dev/urandom > b; echo small > c", nil)
	check("no room for artifacts", got, err, "", "1; no space is left on the disk of "+data, 1, "a", "c")
	list, err := w.ArtifactList(w.ctx(), protocol.ArtifactListParams{SessionID: w.session.ID})
	if err != nil {
		t.Fatal(explain(err))
	}
	for _, a := range list.Artifacts {
		read, err := w.ArtifactRead(w.ctx(), protocol.ArtifactReadParams{ID: a.ID})
		if err != nil || int64(len(read.Data)) != a.Size {
			t.Errorf("%s has %d bytes of %d, %v", a.Name, len(read.Data), a.Size, explain(err))
		}
	}
}

// nothingOfJobs fails when a job has left something beside its artifacts.
func (p *place) nothingOfJobs(dirs ...string) {
	p.Helper()
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				info, err := d.Info()
				if err != nil {
					return err
				}
				if strings.Contains(path, "/jobs/") || strings.Contains(path, "/exports/") || strings.Contains(strings.TrimPrefix(path, dir), "tmp") {
					p.Errorf("it left %s, %d bytes", path, info.Size())
				}
			}
			return err
		})
		if err != nil {
			p.Error(err)
		}
	}
}
