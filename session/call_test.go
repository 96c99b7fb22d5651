package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session"
)

// request makes a call of the double that answers what it was asked.
func (s *service) request(c session.CallRequest) (tool.Request, error) {
	s.t.Helper()
	c.Name = "request"
	v, err := s.Call(s.t.Context(), c)
	var asked tool.Request
	if err == nil {
		if err := json.Unmarshal(v.StructuredContent, &asked); err != nil {
			s.t.Fatal(err)
		}
	}
	return asked, err
}

func TestCall(t *testing.T) {
	s := newRig(t).start()
	v := s.open(session.OpenRequest{})
	result := s.call(v.ID, "write_file", `{"path":"a","content":"text"}`)
	if result.CallID == "" || result.Backend != "local" || result.Profile != "local" {
		t.Errorf("got %+v", result)
	}
	got := s.call(v.ID, "read_file", ` {"path":"a"} `)
	if len(got.Content) != 1 || got.Content[0].Type != tool.PartText || got.Content[0].String() != tool.View("read_file", got.StructuredContent) {
		t.Errorf("the text view is missing: %+v", got)
	}
	failed := s.call(v.ID, "read_file", `{"path":"none"}`)
	if !failed.IsError || len(failed.Content) != 1 {
		t.Errorf("got %+v", failed)
	}
	_, err := s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "fail", Arguments: []byte(`{"kind":"environmentLost"}`), RunID: "r", NodeName: "n", CallID: "c"})
	wantKind(t, err, tool.EnvironmentLost)
	want := []string{
		"started write_file", "completed write_file", "started read_file", "completed read_file",
		"started read_file", "completed read_file", "started fail", "failed fail environmentLost",
	}
	if got := s.sink.executed(); !slices.Equal(got, want) {
		t.Errorf("events %v", got)
	}
	x := s.sink.failures[0]
	if x.SessionID != v.ID || x.CallID != "c" || x.RunID != "r" || x.NodeName != "n" || x.Actor != (tool.Actor{ID: v.ID, Kind: tool.ActorMain}) || x.StartedAt.IsZero() {
		t.Errorf("event %+v", x)
	}
}

func TestTools(t *testing.T) {
	s := newRig(t).start()
	v := s.open(session.OpenRequest{})
	list, err := s.Tools(t.Context(), v.ID)
	if err != nil || len(list) != 4 || list[0].Name != "read_file" || list[0].Profile != "local" {
		t.Errorf("got %+v, %v", list, err)
	}
}

// A request that is no call has no events.
func TestBadCalls(t *testing.T) {
	s := newRig(t).start()
	v := s.open(session.OpenRequest{})
	for name, c := range map[string]session.CallRequest{
		"no name":        {},
		"a list":         {Name: "request", Arguments: []byte("[]")},
		"a long id":      {Name: "request", CallID: strings.Repeat("x", 257)},
		"unknown actor":  {Name: "request", Actor: tool.Actor{Kind: "robot"}},
		"nameless actor": {Name: "request", Actor: tool.Actor{Kind: tool.ActorSubagent}},
		"an impostor":    {Name: "request", Actor: tool.Actor{Kind: tool.ActorSideChat, ID: v.ID}},
		"a long name":    {Name: "request", Actor: tool.Actor{Kind: tool.ActorSubagent, ID: strings.Repeat("x", 257)}},
	} {
		c.SessionID = v.ID
		_, err := s.Call(t.Context(), c)
		t.Run(name, func(t *testing.T) { wantKind(t, err, tool.InvalidParams) })
	}
	_, err := s.Call(t.Context(), session.CallRequest{SessionID: "none", Name: "request"})
	wantKind(t, err, tool.SessionNotFound)
	if got := s.sink.executed(); len(got) != 0 {
		t.Errorf("events %v", got)
	}
}

func TestModes(t *testing.T) {
	r := newRig(t)
	r.write(r.config, `{"execution_environments": {"profiles": {
		"open": {"backend": "docker", "image": "a", "max_permission_mode": "unconfined"},
		"closed": {"backend": "docker", "image": "a", "max_permission_mode": "read_only"}}}}`)
	s := r.start()
	local := s.open(session.OpenRequest{})
	open := s.open(session.OpenRequest{Workspace: r.folder, Profile: "open"})
	closed := s.open(session.OpenRequest{Workspace: r.folder, Profile: "closed"})
	bounded := s.open(session.OpenRequest{Constraints: session.Constraints{Filesystem: "read_only"}})
	sub, side := tool.Actor{ID: "x", Kind: tool.ActorSubagent}, tool.Actor{ID: "y", Kind: tool.ActorSideChat}
	readOnly := session.Constraints{Filesystem: "read_only"}
	tests := []struct {
		name string
		v    session.Session
		c    session.CallRequest
		want tool.Mode
		kind tool.Kind
	}{
		{"the default", local, session.CallRequest{}, tool.Standard, ""},
		{"narrower", local, session.CallRequest{Mode: tool.ReadOnly}, tool.ReadOnly, ""},
		{"above the ceiling", local, session.CallRequest{Mode: tool.Unconfined}, "", tool.Denied},
		{"within a higher ceiling", open, session.CallRequest{Mode: tool.Unconfined}, tool.Unconfined, ""},
		{"the default below a higher ceiling", open, session.CallRequest{}, tool.Standard, ""},
		{"a low ceiling", closed, session.CallRequest{}, tool.ReadOnly, ""},
		{"above a low ceiling", closed, session.CallRequest{Mode: tool.Standard}, "", tool.Denied},
		{"a constrained session", bounded, session.CallRequest{}, tool.ReadOnly, ""},
		{"above a constrained session", bounded, session.CallRequest{Mode: tool.Standard}, "", tool.Denied},
		{"a sub-agent", local, session.CallRequest{Actor: sub}, tool.Standard, ""},
		{"a side chat", local, session.CallRequest{Actor: side}, tool.ReadOnly, ""},
		{"a side chat that asks for more", open, session.CallRequest{Actor: side, Mode: tool.Unconfined}, tool.ReadOnly, ""},
		{"a constraint", local, session.CallRequest{Constraints: readOnly}, tool.ReadOnly, ""},
		{"no mode", local, session.CallRequest{Mode: "root"}, "", tool.InvalidParams},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.c.SessionID = tt.v.ID
			before := len(s.sink.executed())
			got, err := s.request(tt.c)
			if tt.kind != "" {
				wantKind(t, err, tt.kind)
				if events := s.sink.executed()[before:]; len(events) != 2 || events[1] != "failed request "+string(tt.kind) {
					t.Errorf("events %v", events)
				}
				return
			}
			if err != nil || got.Mode != tt.want {
				t.Errorf("mode %q, %v", got.Mode, err)
			}
			actor := tt.c.Actor.ID
			if actor == "" {
				actor = tt.v.ID
			}
			if got.Actor.ID != actor {
				t.Errorf("actor %+v", got.Actor)
			}
		})
	}
	// Who may only read gets no tool that writes files by itself.
	for _, c := range []session.CallRequest{
		{SessionID: local.ID, Actor: side}, {SessionID: local.ID, Constraints: readOnly}, {SessionID: local.ID, Mode: tool.ReadOnly}, {SessionID: closed.ID},
	} {
		c.Name, c.Arguments = "write_file", []byte(`{"path":"a","content":"b"}`)
		_, err := s.Call(t.Context(), c)
		wantKind(t, err, tool.Denied)
		c.Name = "read_file"
		if _, err := s.Call(t.Context(), c); err != nil {
			t.Error(err)
		}
	}
	if n := len(s.env(local).at.files); n != 0 {
		t.Errorf("%d files were written", n)
	}
	_, err := s.WriteFile(t.Context(), bounded.ID, "a", nil)
	wantKind(t, err, tool.Denied)
}

func TestConstraintsOfCalls(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "box", Constraints: session.Constraints{MaxOutputBytes: 500}})
	got, err := s.request(session.CallRequest{SessionID: v.ID})
	if err != nil || got.Timeout != time.Minute || got.MaxOutputBytes != 500 {
		t.Errorf("got %+v, %v", got, err)
	}
	got, err = s.request(session.CallRequest{SessionID: v.ID, Constraints: session.Constraints{Timeout: time.Second, MaxOutputBytes: 10, Scope: "tools"}})
	if err != nil || got.Timeout != time.Second || got.MaxOutputBytes != 10 {
		t.Errorf("got %+v, %v", got, err)
	}
	got, err = s.request(session.CallRequest{SessionID: v.ID, Constraints: session.Constraints{Timeout: time.Hour, MaxOutputBytes: 1 << 20}})
	if err != nil || got.Timeout != time.Minute || got.MaxOutputBytes != 500 {
		t.Errorf("got %+v, %v", got, err)
	}
	yes := true
	for _, c := range []session.Constraints{
		{Network: "none"}, {Memory: 1}, {CPUs: 1}, {CPUTime: 1}, {Image: "b"}, {TmpfsNoexec: &yes}, {Profile: "box"}, {Scope: "jobs", Timeout: 1},
	} {
		_, err := s.request(session.CallRequest{SessionID: v.ID, Constraints: c})
		wantKind(t, err, tool.Unsupported)
	}
}

// A limit is exact, whoever set it. Only a command that gives up waiting by itself by
// then has a moment more, since it goes on after that and what it wrote is the answer.
func TestTimeOfCalls(t *testing.T) {
	r := newRig(t)
	r.write(r.config, `{"execution_environments": {"profiles": {"long": {"backend": "docker", "image": "a", "timeout": "5m"}}}}`)
	s := r.start()
	type c = session.Constraints
	const grace = 5 * time.Second
	for name, test := range map[string]struct {
		session, call   c
		tool, arguments string
		want            time.Duration
	}{
		"the profile's":                      {c{}, c{}, "read_file", `{}`, 5 * time.Minute},
		"the session's":                      {c{Timeout: time.Second}, c{}, "read_file", `{}`, time.Second},
		"the session's for tools":            {c{Timeout: time.Second, Scope: "tools"}, c{}, "read_file", `{}`, time.Second},
		"the call's":                         {c{Timeout: time.Minute}, c{Timeout: time.Second}, "write_file", `{}`, time.Second},
		"above the session's":                {c{Timeout: time.Second}, c{Timeout: time.Minute}, "write_file", `{}`, time.Second},
		"a command":                          {c{}, c{}, "bash", `{}`, 5*time.Minute + grace},
		"of git":                             {c{}, c{}, "git", `{}`, 5*time.Minute + grace},
		"longer than the session's":          {c{Timeout: time.Second}, c{}, "bash", `{}`, time.Second},
		"longer by itself":                   {c{Timeout: 2 * time.Second}, c{}, "bash", `{"timeout_seconds": 3}`, 2 * time.Second},
		"as long as the session's":           {c{Timeout: 2 * time.Second}, c{}, "bash", `{"timeout_seconds": 2}`, 2*time.Second + grace},
		"as long as the call's":              {c{}, c{Timeout: 2 * time.Second}, "bash", `{"timeout_seconds": 2}`, 2*time.Second + grace},
		"of git, which says nothing of time": {c{Timeout: 2 * time.Second}, c{}, "git", `{"timeout_seconds": 1}`, 2 * time.Second},
		"no number":                          {c{Timeout: time.Second}, c{}, "bash", `{"timeout_seconds": "1"}`, time.Second},
	} {
		v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "long", Constraints: test.session})
		if _, err := s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: test.tool, Arguments: []byte(test.arguments), Constraints: test.call}); err != nil {
			t.Fatal(name, err)
		}
		if got := r.world.lastTimeout(); got != test.want {
			t.Errorf("%s: it has %v", name, got)
		}
	}
}

func TestParseConstraints(t *testing.T) {
	yes := true
	good := map[string]session.Constraints{
		``:     {},
		`null`: {},
		`{}`:   {},
		`{"timeout":"30s","maxOutputBytes":10,"filesystem":"read_only","scope":"all"}`: {Timeout: 30 * time.Second, MaxOutputBytes: 10, Filesystem: "read_only", Scope: "all"},
		`{"timeout":1.5,"memory":"1g","cpus":0.5,"cpuTime":60,"network":"none"}`:       {Timeout: 1500 * time.Millisecond, Memory: 1 << 30, CPUs: 0.5, CPUTime: time.Minute, Network: "none"},
		`{"memory":1024,"image":"a","profile":"p","timeout":null}`:                     {Memory: 1024, Image: "a", Profile: "p"},
	}
	for text, want := range good {
		if got, err := session.ParseConstraints("constraints", json.RawMessage(text)); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	if got, err := session.ParseConstraints("constraints", []byte(`{"tmpfsNoexec":true}`)); err != nil || got.TmpfsNoexec == nil || *got.TmpfsNoexec != yes {
		t.Errorf("%+v, %v", got, err)
	}
	for text, path := range map[string]string{
		`[]`: "constraints", `{"timeuot":1}`: "constraints.timeuot", `{"timeout":"x"}`: "constraints.timeout", `{"timeout":0}`: "constraints.timeout",
		`{"maxOutputBytes":0}`: "constraints.maxOutputBytes", `{"maxOutputBytes":1.5}`: "constraints.maxOutputBytes", `{"memory":"x"}`: "constraints.memory", `{"cpus":-1}`: "constraints.cpus",
		`{"filesystem":"none"}`: "constraints.filesystem", `{"scope":"x"}`: "constraints.scope", `{"image":""}`: "constraints.image", `{"tmpfsNoexec":1}`: "constraints.tmpfsNoexec",
	} {
		_, err := session.ParseConstraints("constraints", json.RawMessage(text))
		wantKind(t, err, tool.InvalidParams)
		var e *tool.Error
		if errors.As(err, &e) && e.Path != path {
			t.Errorf("%s: path %q", text, e.Path)
		}
	}
}

// A cancelled call has exactly one terminal event, as one has whose session is
// closed or whose service ends.
func TestEndsOfCalls(t *testing.T) {
	wait := func(ctx context.Context, s *service, v session.Session) <-chan error {
		done, waiting := make(chan error, 1), make(chan struct{})
		s.rig.world.set(func() { s.rig.world.waiting = waiting })
		go func() {
			_, err := s.Call(ctx, session.CallRequest{SessionID: v.ID, Name: "wait", CallID: "w"})
			done <- err
		}()
		<-waiting
		return done
	}
	t.Run("cancelled", func(t *testing.T) {
		s := newRig(t).start()
		v := s.open(session.OpenRequest{})
		ctx, cancel := context.WithCancel(t.Context())
		done := wait(ctx, s, v)
		_, err := s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "request", CallID: "w"})
		wantKind(t, err, tool.InvalidParams) // the id is in use
		cancel()
		wantKind(t, <-done, tool.Cancelled)
		if got := s.sink.executed(); !slices.Equal(got, []string{"started wait", "failed wait cancelled"}) {
			t.Errorf("events %v", got)
		}
	})
	t.Run("closed", func(t *testing.T) {
		s := newRig(t).start()
		v := s.open(session.OpenRequest{})
		done := wait(t.Context(), s, v)
		if _, err := s.Close(t.Context(), v.ID); err != nil {
			t.Fatal(err)
		}
		wantKind(t, <-done, tool.Cancelled)
		if got := s.sink.executed(); !slices.Equal(got, []string{"started wait", "failed wait cancelled"}) {
			t.Errorf("events %v", got)
		}
	})
	t.Run("shut down", func(t *testing.T) {
		s := newRig(t).start()
		v := s.open(session.OpenRequest{})
		done := wait(t.Context(), s, v)
		sink := s.sink
		s.stop()
		wantKind(t, <-done, tool.OutcomeUnknown)
		if got := sink.executed(); !slices.Equal(got, []string{"started wait", "failed wait outcomeUnknown"}) {
			t.Errorf("events %v", got)
		}
	})
}

func TestFiles(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{})
	if _, err := s.WriteFile(t.Context(), v.ID, "a", []byte("content")); err != nil {
		t.Fatal(err)
	}
	if info, err := s.Stat(t.Context(), v.ID, "a"); err != nil || info.Size != 7 {
		t.Errorf("stat: %+v, %v", info, err)
	}
	if data, err := s.ReadFile(t.Context(), v.ID, "a", 2, 3); err != nil || string(data) != "nte" {
		t.Errorf("read: %q, %v", data, err)
	}
	if data, err := s.ReadFile(t.Context(), v.ID, "a", 0, -1); err != nil || string(data) != "content" {
		t.Errorf("read: %q, %v", data, err)
	}
	if list, err := s.ReadDirectory(t.Context(), v.ID, ""); err != nil || len(list) != 1 {
		t.Errorf("list: %v, %v", list, err)
	}
	_, err := s.ReadFile(t.Context(), v.ID, "a", -1, 3)
	wantKind(t, err, tool.InvalidParams)
	_, err = s.WriteFile(t.Context(), v.ID, "a", make([]byte, 16<<20+1))
	wantKind(t, err, tool.InvalidParams)
	if len(s.sink.executed()) != 0 {
		t.Error("files for people count as calls")
	}
	r.world.noFiles = true
	w := s.open(session.OpenRequest{})
	_, err = s.Stat(t.Context(), w.ID, "a")
	wantKind(t, err, tool.Unsupported)
}

func TestPresent(t *testing.T) {
	s := newRig(t).start()
	v := s.open(session.OpenRequest{})
	s.call(v.ID, "write_file", `{"path":"out/report.md","content":"# Title"}`)
	result := s.call(v.ID, "present_artifact", `{"path":"out/report.md"}`)
	if len(s.sink.published) != 1 {
		t.Fatalf("published %v", s.sink.published)
	}
	a := s.sink.published[0]
	if a.Name != "report.md" || a.SessionID != v.ID || a.Size != 7 || a.Source.Path != "out/report.md" || a.Source.Profile != "local" || s.sink.previews[0].Text != "# Title" {
		t.Errorf("artifact %+v, preview %+v", a, s.sink.previews[0])
	}
	link := result.Content[1]
	if link.Type != tool.PartResourceLink || link.URI != a.URI || link.Name != a.Name || len(link.Artifact) == 0 || strings.Contains(result.Content[0].String(), "execution_export") {
		t.Errorf("result %+v", result)
	}
	// Immutable whatever becomes of the file.
	s.call(v.ID, "write_file", `{"path":"out/report.md","content":"other"}`)
	if data, _, err := s.store.Read(a.ID, 0, 100); err != nil || string(data) != "# Title" {
		t.Errorf("read %q, %v", data, err)
	}
	b, preview, err := s.PublishArtifact(t.Context(), v.ID, "out/report.md")
	if err != nil || b.ID == a.ID || preview.Text != "other" || len(s.sink.published) != 2 {
		t.Errorf("published by path: %+v, %+v, %v", b, preview, err)
	}

	s.call(v.ID, "write_file", `{"path":"big","content":"huge"}`)
	_, err = s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "present_artifact", Arguments: []byte(`{"path":"big"}`)})
	wantKind(t, err, tool.ArtifactTooLarge)
	s.call(v.ID, "write_file", `{"path":"liar","content":"liar"}`)
	_, _, err = s.PublishArtifact(t.Context(), v.ID, "liar")
	wantKind(t, err, tool.Internal)
	_, _, err = s.PublishArtifact(t.Context(), v.ID, "none")
	wantKind(t, err, tool.ArtifactNotFound)
	if missing := s.call(v.ID, "present_artifact", `{"path":"none"}`); !missing.IsError {
		t.Errorf("got %+v", missing)
	}
}
