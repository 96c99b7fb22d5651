package session_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session"
)

// A service that is killed while it creates an environment leaves one that is
// not known to exist. It goes with its session all the same, and when it cannot
// be removed the session stays.
func TestUnfinishedEnvironmentGoesWithItsSession(t *testing.T) {
	for name, end := range map[string]func(*service, string) error{
		"close": func(s *service, id string) error {
			_, err := s.Close(t.Context(), id)
			return err
		},
		"delete": func(s *service, id string) error {
			_, err := s.Delete(t.Context(), id, false)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			s := r.start()
			v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "box"})
			s.stop()
			// As it stood a moment before the creation was noted.
			if err := os.Remove(filepath.Join(r.dir, "state", "environments", v.EnvironmentID, "provisioned")); err != nil {
				t.Fatal(err)
			}
			s = r.start()
			refused := tool.Errorf(tool.BackendUnavailable, "the engine is away")
			r.world.set(func() { r.world.removeErr = refused })
			wantKind(t, end(s, v.ID), tool.BackendUnavailable)
			if _, err := s.Get(t.Context(), v.ID); err != nil {
				t.Errorf("the session is forgotten: %v", err)
			}
			r.world.set(func() { r.world.removeErr = nil })
			if err := end(s, v.ID); err != nil {
				t.Error(err)
			}
			r.world.set(func() {
				if r.world.places[v.EnvironmentID] != nil {
					t.Error("the environment is left")
				}
			})
		})
	}
}

// A service that is killed while it deletes a session has removed the environment
// and forgotten neither. The next deletion forgets both.
func TestRemovedEnvironmentIsForgotten(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "local"})
	if _, err := s.Close(t.Context(), v.ID); err != nil {
		t.Fatal(err)
	}
	record := filepath.Join(r.dir, "state", "environments", v.EnvironmentID)
	if err := os.MkdirAll(record, 0o700); err != nil { // as it stood before the end
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(record, "provisioned"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Delete(t.Context(), v.ID, false); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(record); !os.IsNotExist(err) {
		t.Errorf("the record of the environment: %v", err)
	}
}

// A new session whose opening fails in a shared environment may have a worker
// there, which is ended before the session is forgotten: it would refuse the next
// session of that id. When it cannot be ended the session is kept, and what the
// worker knows of it.
func TestFailedOpeningEndsItsPartOfShared(t *testing.T) {
	for name, cannot := range map[string]error{
		"ended":           nil,
		"cannot be ended": tool.Errorf(tool.BackendUnavailable, "the engine is away"),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			s := r.start()
			v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "shared"})
			r.world.set(func() {
				r.world.fail = []error{tool.Errorf(tool.Cancelled, "after the worker was there")}
				r.world.shutdownErr = cannot
			})
			ask := session.OpenRequest{SessionID: "new", Workspace: r.folder, Profile: "shared"}
			_, _, err := s.Open(t.Context(), ask, nil)
			wantKind(t, err, tool.Cancelled)
			if part := r.world.env(v.EnvironmentID, "new"); part == nil || !part.ended {
				t.Errorf("its part of the environment: %+v", part)
			}
			first := r.world.opened()[1].Secrets.Token
			_, resumed, err := s.Open(t.Context(), ask, nil)
			if err != nil || resumed != (cannot != nil) {
				t.Errorf("again: resumed %t, %v", resumed, err)
			}
			opens := r.world.opened()
			if same := opens[len(opens)-1].Secrets.Token == first; same != (cannot != nil) {
				t.Errorf("it has the same token: %t", same)
			}
			r.world.set(func() { r.world.shutdownErr = nil })
		})
	}
}

// An environment whose creation was never begun, of an override or the session's own,
// keeps no session: it need not be reached to be closed or deleted. One that may have
// been created does, until it is forgotten with force.
func TestNeverMadeKeepsNoSession(t *testing.T) {
	away := tool.Errorf(tool.BackendUnavailable, "no way there")
	for name, c := range map[string]struct {
		err  error
		kept bool
	}{
		"nothing made": {backends.NothingMade(away), false},
		"unknown":      {away, true},
	} {
		for _, end := range []string{"close", "delete"} {
			t.Run(name+"/"+end, func(t *testing.T) {
				r := newDividedRig(t)
				s := r.start()
				v := s.open(session.OpenRequest{Workspace: r.folder})
				r.world.set(func() { r.world.away = map[string]error{"box": c.err} })
				for range 2 { // the second try is as the first
					_, err := s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "bash", Arguments: json.RawMessage(`{}`)})
					wantKind(t, err, tool.BackendUnavailable)
				}
				s.stop() // it is known to the next service as well
				s = r.start()
				var err error
				if end == "close" {
					_, err = s.Close(t.Context(), v.ID)
				} else {
					_, err = s.Delete(t.Context(), v.ID, false)
				}
				if !c.kept {
					if err != nil {
						t.Error(err)
					}
					return
				}
				wantKind(t, err, tool.BackendUnavailable)
				if left, err := s.Delete(t.Context(), v.ID, true); err != nil || left == "" {
					t.Errorf("with force: %q, %v", left, err)
				}
			})
		}
	}
}

// One that may be there from an earlier try is not forgotten for a later one that
// made nothing.
func TestEarlierTryIsRemembered(t *testing.T) {
	r := newDividedRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder})
	away := tool.Errorf(tool.BackendUnavailable, "no way there")
	for _, err := range []error{away, backends.NothingMade(away)} {
		r.world.set(func() { r.world.away = map[string]error{"box": err} })
		_, err := s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "bash", Arguments: json.RawMessage(`{}`)})
		wantKind(t, err, tool.BackendUnavailable)
	}
	_, err := s.Close(t.Context(), v.ID)
	wantKind(t, err, tool.BackendUnavailable)
}
