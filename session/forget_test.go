package session_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session"
)

// An environment that others keep forgets a session that is deleted, however long ago
// its part of it was ended, and no session that is only closed, nor before that its
// processes were ended.
func TestDeleteForgets(t *testing.T) {
	for _, closed := range []bool{false, true} {
		r := newRig(t)
		s := r.start()
		v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "both"})
		w := s.open(session.OpenRequest{Workspace: r.folder, Profile: "both"})
		p := s.launch(session.StartProcess{SessionID: v.ID, Command: "a"})
		if closed {
			if _, err := s.Close(t.Context(), v.ID); err != nil {
				t.Fatal(err)
			}
			if len(r.world.forgotten) != 0 {
				t.Errorf("closing it has %v forgotten", r.world.forgotten)
			}
		}
		if _, err := s.Delete(t.Context(), v.ID, false); err != nil {
			t.Error(err)
		}
		if got := r.world.forgotten; !slices.Equal(got, []string{v.ID}) {
			t.Errorf("closed before %t: forgotten %v, want %s", closed, got, v.ID)
		}
		if got := r.world.places[w.EnvironmentID].processes[p.ID]; !got.Status.Terminal() {
			t.Errorf("its process is %s", got.Status)
		}
		// What goes with its last session need not forget it.
		if _, err := s.Delete(t.Context(), w.ID, false); err != nil || r.world.has(w.EnvironmentID) || len(r.world.forgotten) != 1 {
			t.Errorf("%v, there %t, forgotten %v", err, r.world.has(w.EnvironmentID), r.world.forgotten)
		}
	}
}

// What cannot be forgotten, or cannot be reached for that while something of the session
// may run there, keeps the session, until it is deleted with force. An environment that
// cannot forget is only ended.
func TestDeleteCannotForget(t *testing.T) {
	away := map[string]error{"both": tool.Errorf(tool.BackendUnavailable, "no way there")}
	stuck := tool.Errorf(tool.Internal, "forget the session: a directory is stuck")
	for name, test := range map[string]struct {
		closed bool // before it is deleted
		set    func(w *world)
		says   string
	}{
		"a directory that resists":      {false, func(w *world) { w.forgetErr = stuck }, "is stuck"},
		"after it was closed":           {true, func(w *world) { w.forgetErr = stuck }, "is stuck"},
		"a machine that is not reached": {false, func(w *world) { w.away = away }, "no way there"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			s := r.start()
			v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "both"})
			w := s.open(session.OpenRequest{Workspace: r.folder, Profile: "both"})
			if test.closed {
				if _, err := s.Close(t.Context(), v.ID); err != nil {
					t.Fatal(err)
				}
			}
			r.world.set(func() { test.set(r.world) })
			_, err := s.Delete(t.Context(), v.ID, false)
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("deleted: %v", err)
			}
			if got, err := s.Get(t.Context(), v.ID); err != nil || got.State != session.StateFailed && !test.closed {
				t.Errorf("it is %+v, %v", got, err)
			}
			left, err := s.Delete(t.Context(), v.ID, true)
			if err != nil || !strings.Contains(left, test.says) {
				t.Errorf("with force: %q, %v", left, err)
			}
			_, err = s.Get(t.Context(), v.ID)
			wantKind(t, err, tool.SessionNotFound)
			if !r.world.has(w.EnvironmentID) {
				t.Error("the other's environment went with it")
			}
		})
	}
	r := newRig(t)
	r.world.noFiles = true // nor does it forget
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "shared"})
	s.open(session.OpenRequest{Workspace: r.folder, Profile: "shared"})
	env := s.env(v)
	if _, err := s.Delete(t.Context(), v.ID, false); err != nil || !env.ended {
		t.Errorf("ended %t, %v", env.ended, err)
	}
}

// An environment that stays and where nothing of the session runs, since its part was
// ended or the environment stopped, keeps nobody from deleting the session, and is not
// started for that; what it keeps is told.
func TestDeleteWhatHasEnded(t *testing.T) {
	away := map[string]error{"both": tool.Errorf(tool.BackendUnavailable, "no way there")}
	stopped := map[string]error{"both": tool.Errorf(tool.BackendUnavailable, "it is %w", backends.ErrStopped)}
	for name, test := range map[string]struct {
		closed bool // before it is deleted
		open   bool // in this service until then
		away   map[string]error
		says   string
	}{
		"closed, not reached":   {true, false, away, "no way there"},
		"closed, stopped":       {true, false, stopped, "it is stopped"},
		"only left and stopped": {false, false, stopped, "it is stopped"},
		"in use and stopped":    {false, true, stopped, "it is stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			s := r.start()
			v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "both"})
			w := s.open(session.OpenRequest{Workspace: r.folder, Profile: "both"})
			if test.closed {
				if _, err := s.Close(t.Context(), v.ID); err != nil {
					t.Fatal(err)
				}
			}
			if !test.open {
				s.stop()
				s = r.start()
			}
			r.world.set(func() { r.world.away = test.away })
			opened := len(r.world.opened())
			left, err := s.Delete(t.Context(), v.ID, false)
			if err != nil || !strings.Contains(left, w.EnvironmentID) || !strings.Contains(left, test.says) {
				t.Errorf("deleted: %q, %v", left, err)
			}
			_, err = s.Get(t.Context(), v.ID)
			wantKind(t, err, tool.SessionNotFound)
			if !r.world.has(w.EnvironmentID) {
				t.Error("the other's environment went with it")
			}
			for _, b := range r.world.opened()[opened:] {
				if !b.OnlyRunning {
					t.Error("it would be started")
				}
			}
		})
	}
	// Closing it needs no stopped environment either.
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "both"})
	s.stop()
	s = r.start()
	r.world.set(func() { r.world.away = stopped })
	if got, err := s.Close(t.Context(), v.ID); err != nil || got.State != session.StateClosed {
		t.Errorf("closed: %+v, %v", got, err)
	}
}

// A session is reached without its packs, which may be what is wrong with it, when it
// is only to be ended.
func TestEndedWithoutPacks(t *testing.T) {
	r, _ := newPacksRig(t)
	text, err := os.ReadFile(r.config)
	if err != nil {
		t.Fatal(err)
	}
	r.write(r.config, strings.Replace(string(text), `"image": "a"`, `"image": "a", "shared": true`, 1))
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder})
	s.open(session.OpenRequest{Workspace: r.folder})
	if _, err := s.Close(t.Context(), v.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Delete(t.Context(), v.ID, false); err != nil {
		t.Error(err)
	}
	all := r.world.opened()
	if first, last := all[0], all[len(all)-1]; len(first.Packs) == 0 || last.Session != v.ID || len(last.Packs) != 0 || len(all) != 3 {
		t.Errorf("opened %d times, at last as %+v", len(all), last)
	}
}
