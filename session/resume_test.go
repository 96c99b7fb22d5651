package session_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session"
)

// A session is resumed by its id as it was, whatever the configuration says now.
func TestResume(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "kept", Constraints: session.Constraints{Timeout: time.Second}})
	s.call(v.ID, "write_file", `{"path":"a","content":"b"}`)
	token := s.env(v).b.Secrets.Token
	s.stop()
	if !r.world.has(v.EnvironmentID) {
		t.Fatal("a shutdown removed the environment")
	}

	r.write(r.config, strings.ReplaceAll(defaultConfig, `"image": "a"`, `"image": "another", "cpus": 1`))
	s = r.start()
	if got, err := s.Get(t.Context(), v.ID); err != nil || got.State != session.StateBound {
		t.Errorf("before: %+v, %v", got, err)
	}
	if _, err := s.Tools(t.Context(), v.ID); tool.KindOf(err) != tool.SessionNotFound || !strings.Contains(err.Error(), "not open") {
		t.Errorf("a session that is not open: %v", err)
	}
	got, resumed, err := s.Open(t.Context(), session.OpenRequest{SessionID: v.ID, Workspace: r.folder, Labels: map[string]string{"new": "1"}}, nil)
	if err != nil || !resumed || got.EnvironmentID != v.EnvironmentID || got.Profile != "kept" || got.Labels["new"] != "1" {
		t.Fatalf("got %+v, %t, %v", got, resumed, err)
	}
	b := s.env(got).b
	if !b.Provisioned || b.Profile.Image != "a" || b.Profile.Timeout != time.Second || b.Secrets.Token != token {
		t.Errorf("binding %+v", b)
	}
	if text := s.call(v.ID, "read_file", `{"path":"a"}`).Content[0].String(); !strings.Contains(text, "b") {
		t.Errorf("the file reads %q", text)
	}
	// A new session on the edited profile never reaches the old environment.
	if w := s.open(session.OpenRequest{Workspace: r.folder, Profile: "kept"}); w.EnvironmentID == v.EnvironmentID {
		t.Error("an edited profile has an old environment")
	}
	// Opening it again here changes nothing.
	if again, resumed, err := s.Open(t.Context(), session.OpenRequest{SessionID: v.ID}, nil); err != nil || !resumed || again.State != session.StateReady {
		t.Errorf("again: %+v, %v", again, err)
	}
}

// A session whose binding cannot be written is not resumed, and belongs to no service:
// another may have it.
func TestResumeUnwritten(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "kept"})
	s.stop()

	dir := filepath.Join(r.dir, "state", "sessions", v.ID)
	away := filepath.Join(r.dir, "away")
	var once sync.Once
	r.now = func() time.Time { // which is asked between the reading and the writing
		once.Do(func() {
			if err := os.Rename(dir, away); err != nil {
				t.Error(err)
			}
		})
		return time.Now()
	}
	s = r.start()
	if _, _, err := s.Open(t.Context(), session.OpenRequest{SessionID: v.ID}, nil); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("a binding that cannot be written: %v", err)
	}
	if err := os.Rename(away, dir); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "read_file", Arguments: []byte(`{"path":"a"}`)}); tool.KindOf(err) != tool.SessionNotFound {
		t.Errorf("a call in a session that was not resumed: %v", err)
	}
	r.now = nil
	other := r.start()
	other.open(session.OpenRequest{SessionID: v.ID})
	if _, _, err := s.Open(t.Context(), session.OpenRequest{SessionID: v.ID}, nil); tool.KindOf(err) != tool.SessionBusy {
		t.Errorf("a session of another service: %v", err)
	}
	other.stop()
	s.open(session.OpenRequest{SessionID: v.ID})
}

func TestResumeAsSomethingElse(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "kept", Constraints: session.Constraints{Memory: 32 << 20}})
	refuse := func(s *service) {
		t.Helper()
		for _, ask := range []session.OpenRequest{
			{Profile: "box"},
			{Constraints: session.Constraints{Profile: "box"}},
			{Workspace: t.TempDir()},
			{Constraints: session.Constraints{Network: "host"}},
			{Constraints: session.Constraints{Memory: 16 << 20}},
		} {
			ask.SessionID = v.ID
			_, _, err := s.Open(t.Context(), ask, nil)
			wantKind(t, err, tool.InvalidParams)
		}
		same := session.OpenRequest{SessionID: v.ID, Profile: "kept", Workspace: "file://" + r.folder + "/", Constraints: session.Constraints{Memory: 32 << 20}}
		if _, resumed, err := s.Open(t.Context(), same, nil); err != nil || !resumed {
			t.Errorf("the same: %v", err)
		}
	}
	refuse(s)
	s.stop()
	refuse(r.start())
}

// Two services share a state directory; a session has one owner.
func TestTwoServices(t *testing.T) {
	r := newRig(t)
	a, b := r.start(), r.start()
	v := a.open(session.OpenRequest{Workspace: r.folder, Profile: "kept"})
	_, _, err := b.Open(t.Context(), session.OpenRequest{SessionID: v.ID}, nil)
	wantKind(t, err, tool.SessionBusy)
	if _, err := b.Close(t.Context(), v.ID); tool.KindOf(err) != tool.SessionBusy {
		t.Errorf("close: %v", err)
	}
	if _, err := b.Delete(t.Context(), v.ID, true); tool.KindOf(err) != tool.SessionBusy {
		t.Errorf("delete: %v", err)
	}
	if list, err := b.List(t.Context(), session.Filter{}); err != nil || len(list) != 1 || list[0].State != session.StateBound {
		t.Errorf("list: %+v, %v", list, err)
	}
	a.stop()
	if _, resumed, err := b.Open(t.Context(), session.OpenRequest{SessionID: v.ID}, nil); err != nil || !resumed {
		t.Errorf("after its owner is gone: %v", err)
	}
}

// Two services that make the same session at once make it once.
func TestRaceForOneID(t *testing.T) {
	r := newRig(t)
	services := []*service{r.start(), r.start()}
	errs := make([]error, len(services))
	var all sync.WaitGroup
	for i, s := range services {
		all.Go(func() {
			_, _, errs[i] = s.Open(t.Context(), session.OpenRequest{SessionID: "one", Workspace: r.folder, Profile: "box"}, nil)
		})
	}
	all.Wait()
	i := slices.Index(errs, nil)
	if i < 0 {
		t.Fatalf("got %v", errs)
	}
	wantKind(t, errs[1-i], tool.SessionBusy)
	if n := len(r.world.opened()); n != 1 {
		t.Errorf("%d opens", n)
	}
}

// What is torn or foreign is listed, refused and left alone.
func TestTornBinding(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "kept"})
	s.stop()
	file := filepath.Join(r.dir, "state", "sessions", v.ID, "binding.json")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	torn := string(whole[:len(whole)/2])
	r.write(file, torn)
	s = r.start()
	_, _, err = s.Open(t.Context(), session.OpenRequest{SessionID: v.ID}, nil)
	wantKind(t, err, tool.Internal)
	if !strings.Contains(err.Error(), file) {
		t.Errorf("the file is not named: %v", err)
	}
	if _, err := s.Get(t.Context(), v.ID); tool.KindOf(err) != tool.Internal {
		t.Errorf("get: %v", err)
	}
	if _, err := s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "echo"}); tool.KindOf(err) != tool.Internal || !strings.Contains(err.Error(), file) {
		t.Errorf("a call: %v", err)
	}
	if list, err := s.List(t.Context(), session.Filter{}); err != nil || len(list) != 1 || list[0].State != session.StateFailed || list[0].Err == nil {
		t.Errorf("list: %+v, %v", list, err)
	}
	if _, err := s.Delete(t.Context(), v.ID, false); err == nil {
		t.Error("a torn session was deleted")
	}
	// It may be bound to any environment: none is pruned.
	if found, err := s.Prune(t.Context(), session.PruneRequest{}); err != nil || len(found) != 0 || !r.world.has(v.EnvironmentID) {
		t.Errorf("pruned %v, %v", found, err)
	}
	if now, err := os.ReadFile(file); err != nil || string(now) != torn {
		t.Errorf("the file was changed: %v", err)
	}
}

// A service that died between the creation and its mark creates again; one that
// died after it finds what was created.
func TestCrash(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "kept"})
	s.stop()
	mark := filepath.Join(r.dir, "state", "environments", v.EnvironmentID, "provisioned")
	if err := os.Remove(mark); err != nil {
		t.Fatal(err)
	}
	s = r.start()
	s.open(session.OpenRequest{SessionID: v.ID})
	if b := s.env(v).b; b.Provisioned {
		t.Error("an environment without a mark counts as created")
	}
	if _, err := os.Stat(mark); err != nil {
		t.Error(err)
	}
}

// failed wants the session to be known as failed with the error.
func (s *service) failed(id string, why error) {
	s.t.Helper()
	got, err := s.Get(s.t.Context(), id)
	if err != nil || got.State != session.StateFailed || got.Err == nil || got.Err.Error() != why.Error() || tool.KindOf(got.Err) != tool.KindOf(why) {
		s.t.Errorf("get: %+v, %v; want %v", got, err, why)
	}
	list, err := s.List(s.t.Context(), session.Filter{State: session.StateFailed})
	if err != nil || !slices.ContainsFunc(list, func(l session.Session) bool { return l.ID == id && l.Err != nil && l.Err.Error() == why.Error() }) {
		s.t.Errorf("list: %+v, %v", list, err)
	}
}

func hasHint(err error, hint string) bool {
	e, ok := errors.AsType[*tool.Error](err)
	return ok && e.Hint == hint
}

// A session whose environment comes back is failed no longer; one whose
// environment fails while it is open stays failed after the service.
func TestFailureIsKept(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "kept"})
	s.stop()
	gone := tool.Errorf(tool.EnvironmentLost, "gone").WithHint("look for it")
	r.world.set(func() { r.world.fail = []error{gone} })
	s = r.start()
	_, _, err := s.Open(t.Context(), session.OpenRequest{SessionID: v.ID}, nil)
	wantKind(t, err, tool.EnvironmentLost)
	s.failed(v.ID, gone)
	if got, err := s.Get(t.Context(), v.ID); err != nil || !hasHint(got.Err, "look for it") {
		t.Errorf("the hint is lost: %+v, %v", got, err)
	}
	if got := s.open(session.OpenRequest{SessionID: v.ID}); got.State != session.StateReady || got.Err != nil {
		t.Errorf("it came back: %+v", got)
	}
	s.stop()
	s = r.start()
	if got, err := s.Get(t.Context(), v.ID); err != nil || got.State != session.StateBound || got.Err != nil {
		t.Errorf("and is seen so: %+v, %v", got, err)
	}
	s.open(session.OpenRequest{SessionID: v.ID})
	s.env(v).send(backends.Event{State: &backends.StateChange{State: backends.StateFailed, Err: gone}})
	s.sink.until(t, "the failure", func() bool { return slices.Contains(s.sink.states[v.ID], session.StateFailed) })
	s.stop()
	r.start().failed(v.ID, gone)
}

func TestLostEnvironment(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "kept"})
	w := s.open(session.OpenRequest{Workspace: r.folder, Profile: "mounted"})
	x := s.open(session.OpenRequest{Workspace: r.folder, Profile: "mounted-kept"})
	l := s.open(session.OpenRequest{Workspace: r.folder, Profile: "local"})
	s.stop()
	for _, lost := range []session.Session{v, w, x, l} {
		r.world.destroy(lost.EnvironmentID)
	}
	s = r.start()
	_, _, err := s.Open(t.Context(), session.OpenRequest{SessionID: v.ID}, nil)
	wantKind(t, err, tool.EnvironmentLost)
	if r.world.has(v.EnvironmentID) {
		t.Error("a lost environment became an empty one")
	}
	s.failed(v.ID, err)
	other := r.start()
	other.failed(v.ID, err)
	other.stop()
	// Looking at it, and failing to open it again, change nothing.
	_, _, err = s.Open(t.Context(), session.OpenRequest{SessionID: v.ID}, nil)
	wantKind(t, err, tool.EnvironmentLost)
	s.failed(v.ID, err)
	// It did not stay with us, and can be deleted.
	if _, err := s.Delete(t.Context(), v.ID, false); err != nil {
		t.Errorf("delete: %v", err)
	}
	// Nor does a persistent container, which held more than the mounted folder.
	_, _, err = s.Open(t.Context(), session.OpenRequest{SessionID: x.ID}, nil)
	wantKind(t, err, tool.EnvironmentLost)
	// A local one is its folder. It stays known, so that its worker is ended with it.
	_, _, err = s.Open(t.Context(), session.OpenRequest{SessionID: l.ID}, nil)
	wantKind(t, err, tool.EnvironmentLost)
	if _, err := s.Delete(t.Context(), l.ID, false); err != nil {
		t.Errorf("delete: %v", err)
	}
	if !slices.Contains(r.world.gone, l.EnvironmentID) {
		t.Error("the local environment was forgotten and not removed")
	}
	// What lies on the host is not lost with a container.
	if got := s.open(session.OpenRequest{SessionID: w.ID}); got.State != session.StateReady {
		t.Errorf("got %+v", got)
	}
}
