package session_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session"
)

// leaving is a job that leaves these files.
func leaving(v session.Session, files ...string) session.JobRequest {
	r := session.JobRequest{SessionID: v.ID, Job: backends.JobRequest{Argv: []string{"leave"}}}
	for _, f := range files {
		path, content, _ := strings.Cut(f, "=")
		r.Job.Inputs = append(r.Job.Inputs, backends.JobInput{Path: path, Data: []byte(content)})
	}
	return r
}

// TestRunJob: a job is one execution, as its actor and in its mode, and each file
// that it left is an artifact of its own, whatever is in it.
func TestRunJob(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "box"})
	q := leaving(v, "a.txt=same", "d/a.txt=same", "d/b.txt=", "bytes:d/%FF=x", strings.Repeat("n", 300)+"=too long a name")
	q.Job.Actor, q.Job.ID, q.Job.Mode = tool.Actor{ID: "helper", Kind: tool.ActorSubagent}, "j1", tool.ReadOnly
	q.RunID, q.NodeName = "r", "n"
	got, err := s.RunJob(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	var names, paths []string
	uris := map[string]bool{}
	for _, a := range got.Artifacts {
		names, paths = append(names, a.Name), append(paths, a.Path)
		if uris[a.URI] = true; a.Source.Path != a.Path || a.Source.Profile != "box" || a.SessionID != v.ID {
			t.Errorf("the artifact %+v", a)
		}
	}
	if !slices.Equal(names, []string{"a.txt", "d_a.txt", "b.txt", "bytes:%FF"}) || !slices.Equal(paths, []string{"a.txt", "d/a.txt", "d/b.txt", "bytes:d/%FF"}) || len(uris) != 4 {
		t.Errorf("the artifacts %q of %q, %d URIs", names, paths, len(uris))
	}
	if string(got.Stdout) != "done" || got.FilesDropped != 2 {
		t.Errorf("%+v", got)
	}
	if want := []string{"started shell.job", "completed shell.job"}; !slices.Equal(s.sink.executed(), want) {
		t.Errorf("events %v", s.sink.executed())
	}
	x := s.sink.completed[0]
	if x.CallID != "j1" || x.RunID != "r" || x.NodeName != "n" || x.Actor.ID != "helper" || x.Profile != "box" || len(s.sink.published) != 4 {
		t.Errorf("the event %+v, %d published", x, len(s.sink.published))
	}
	asked := r.world.jobs[0].r
	if asked.ID != "j1" || asked.Mode != tool.ReadOnly || asked.Actor.ID != "helper" {
		t.Errorf("asked %+v", asked)
	}

	// In the workspace, a file's source is where it is.
	q = leaving(v, "out/r=x")
	q.Job.CWD = "sub"
	if got, err := s.RunJob(t.Context(), q); err != nil || got.Artifacts[0].Source.Path != "sub/out/r" || got.Artifacts[0].Path != "out/r" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestJobsWhoseFilesAreLost: a job whose files cannot be had is an error, and no
// file waits in the environment.
func TestJobsWhoseFilesAreLost(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "box"})
	_, err := s.RunJob(t.Context(), leaving(v, "a=first", "b=liar", "c=third", "d=fourth"))
	wantKind(t, err, tool.Internal)
	if want := []string{"job/a", "job/b", "job/c", "job/d"}; !slices.Equal(r.world.exported, want) {
		t.Errorf("fetched or let go of: %q", r.world.exported)
	}
	if want := []string{"started shell.job", "failed shell.job internal"}; !slices.Equal(s.sink.executed(), want) {
		t.Errorf("events %v", s.sink.executed())
	}
}

// TestNoJobs: what is no job makes no event.
func TestNoJobs(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "box"})
	for name, change := range map[string]func(*session.JobRequest){
		"neither session nor profile": func(q *session.JobRequest) { q.SessionID = "" },
		"both":                        func(q *session.JobRequest) { q.Profile = "box" },
		"nothing to run":              func(q *session.JobRequest) { q.Job.Argv = nil },
		"an input outside":            func(q *session.JobRequest) { q.Job.Inputs = []backends.JobInput{{Path: "../x"}} },
		"a long id":                   func(q *session.JobRequest) { q.Job.ID = strings.Repeat("x", 300) },
		"an actor that is none":       func(q *session.JobRequest) { q.Job.Actor.Kind = "ghost" },
		"too much":                    func(q *session.JobRequest) { q.Job.Stdin = make([]byte, tool.MaxJobBytes+1) },
	} {
		q := leaving(v)
		change(&q)
		if _, err := s.RunJob(t.Context(), q); tool.KindOf(err) != tool.InvalidParams {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := s.sink.executed(); len(got) != 0 {
		t.Errorf("events %v", got)
	}
}
