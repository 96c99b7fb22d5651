package session_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session"
)

// divided opens a session with environments on local, box and kept, all of them in use.
func divided(t *testing.T) (r *rig, s *service, id string, identities map[string]string) {
	t.Helper()
	r = newDividedRig(t)
	r.write(r.config, strings.Replace(dividedConfig, `"git.*": "full"`, `"git.*": "kept"`, 1))
	s = r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder})
	for _, name := range []string{"bash", "git"} {
		s.call(v.ID, name, `{}`)
	}
	identities = map[string]string{}
	for _, b := range r.world.opened() {
		identities[b.Profile.Name] = b.Environment
	}
	return r, s, v.ID, identities
}

// Of a session with several environments, one that cannot be reached keeps none of the
// others. The error names it, and closing again does what is left and nothing else.
func TestCloseWithOneAway(t *testing.T) {
	for _, away := range []string{"box", "kept", "local"} {
		t.Run(away, func(t *testing.T) {
			r, s, id, identities := divided(t)
			unreachable := tool.Errorf(tool.BackendUnavailable, "no way there").WithHint("Look at the cable.")
			r.world.set(func() { r.world.away = map[string]error{away: unreachable} })
			for range 2 {
				_, err := s.Close(t.Context(), id)
				wantKind(t, err, tool.BackendUnavailable)
				wantPlace(t, err, away, identities[away], "no way there", "1 of the 4 environments")
			}
			for name, want := range map[string]bool{"local": away == "local", "box": away == "box", "kept": true} {
				if got := r.world.has(identities[name]); got != want {
					t.Errorf("%s is there: %t", name, got)
				}
				if e := r.world.last(identities[name]); name != away && want && !e.ended {
					t.Errorf("the session's part of %s was not ended", name)
				}
			}
			if v, err := s.Get(t.Context(), id); err != nil || v.State != session.StateFailed || v.Err == nil {
				t.Errorf("it is %+v, %v", v, err)
			}
			// Later, and by another service.
			s.stop()
			s = r.start()
			opens := len(r.world.opened())
			r.world.set(func() { r.world.away = nil })
			if v, err := s.Close(t.Context(), id); err != nil || v.State != session.StateClosed {
				t.Fatalf("closed %+v, %v", v, err)
			}
			for _, b := range r.world.opened()[opens:] {
				if b.Profile.Name != away {
					t.Errorf("%s was opened again, to end what was ended", b.Profile.Name)
				}
			}
			if r.world.has(identities["box"]) || !r.world.has(identities["kept"]) {
				t.Error("box is left, or kept is not")
			}
		})
	}
}

// What was ended before the session came back is used again, and then ended again.
func TestEndedIsUsedAgain(t *testing.T) {
	r, s, id, identities := divided(t)
	for range 2 {
		s.call(id, "git", `{}`)
		if _, err := s.Close(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		s.stop()
		s = r.start()
		s.open(session.OpenRequest{SessionID: id})
		s.call(id, "git", `{}`)
		s.stop()
		s = r.start()
		if _, err := s.Close(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if e := r.world.last(identities["kept"]); !e.ended {
			t.Error("what came back was not ended")
		}
		s.open(session.OpenRequest{SessionID: id})
	}
}

// A deletion keeps the record of what cannot be removed, and of nothing else. With force
// it is forgotten, which is told, and a prune finds it.
func TestDeleteWithOneAway(t *testing.T) {
	for _, away := range []string{"box", "kept"} {
		t.Run(away, func(t *testing.T) {
			r, s, id, identities := divided(t)
			r.world.set(func() {
				r.world.away = map[string]error{away: tool.Errorf(tool.BackendUnavailable, "no way there").WithHint("look for one")}
			})
			for range 2 {
				left, err := s.Delete(t.Context(), id, false)
				wantKind(t, err, tool.BackendUnavailable)
				wantPlace(t, err, away, identities[away], "no way there", "look for one. The session is kept: delete it again")
				if left != "" {
					t.Errorf("left %q", left)
				}
			}
			for name, identity := range identities {
				if got := r.world.has(identity); got != (name == away) {
					t.Errorf("%s is there: %t", name, got)
				}
				_, err := os.Stat(filepath.Join(r.dir, "state", "environments", identity))
				if recorded := err == nil; recorded != (name == away) {
					t.Errorf("%s is recorded: %t", name, recorded)
				}
			}
			left, err := s.Delete(t.Context(), id, true)
			if err != nil || !strings.Contains(left, identities[away]) || strings.Count(left, "may still exist") != 1 {
				t.Errorf("left %q, %v", left, err)
			}
			for _, dir := range []string{"sessions", "environments"} {
				if entries, err := os.ReadDir(filepath.Join(r.dir, "state", dir)); err != nil || len(entries) != 0 {
					t.Errorf("%s: %v, %v", dir, entries, err)
				}
			}
			r.world.set(func() { r.world.away = nil })
			if found, err := s.Prune(t.Context(), session.PruneRequest{}); err != nil || len(found) != 1 || found[0].Environment != identities[away] {
				t.Errorf("pruned %v, %v", found, err)
			}
		})
	}
}

// On a full disk a session with several environments is deleted all the same, when all
// of them can be removed; else it stays, and what is left of it is removed later.
func TestDividedDeletedOnFullDisk(t *testing.T) {
	for _, away := range []string{"", "local"} {
		t.Run("away "+away, func(t *testing.T) {
			r := newDividedRig(t)
			// A full disk is known by the words of its error, which have the path in them.
			r.dir = filepath.Join(r.dir, syscall.ENOSPC.Error())
			if err := os.Mkdir(r.dir, 0o700); err != nil {
				t.Fatal(err)
			}
			s := r.start()
			v := s.open(session.OpenRequest{Workspace: r.folder})
			s.call(v.ID, "bash", `{}`)
			if away != "" {
				r.world.set(func() {
					r.world.away = map[string]error{away: tool.Errorf(tool.BackendUnavailable, "no way there")}
				})
			}
			binding := filepath.Join(r.dir, "state", "sessions", v.ID, "binding.json")
			aside := filepath.Join(r.dir, "aside")
			if err := errors.Join(os.Rename(binding, aside), os.Mkdir(binding, 0o700)); err != nil {
				t.Fatal(err)
			}
			_, err := s.Delete(t.Context(), v.ID, false)
			if away != "" {
				wantKind(t, err, tool.BackendUnavailable)
				if err := errors.Join(os.Remove(binding), os.Rename(aside, binding)); err != nil {
					t.Fatalf("the session was forgotten: %v", err)
				}
				r.world.set(func() { r.world.away = nil })
				_, err = s.Delete(t.Context(), v.ID, false)
			}
			if err != nil {
				t.Error(err)
			}
			for _, dir := range []string{"sessions", "environments"} {
				if entries, err := os.ReadDir(filepath.Join(r.dir, "state", dir)); err != nil || len(entries) != 0 {
					t.Errorf("%s: %v, %v", dir, entries, err)
				}
			}
			if n := len(r.world.places); n != 0 {
				t.Errorf("%d environments are left", n)
			}
		})
	}
}

// wantPlace fails unless the error is about the environment, in these words.
func wantPlace(t *testing.T, err error, profile string, words ...string) {
	t.Helper()
	at, ok := errors.AsType[*session.PlaceError](err)
	if !ok || at.Profile != profile {
		t.Errorf("it is not about %s: %v", profile, err)
	}
	text := err.Error()
	if e, ok := errors.AsType[*tool.Error](err); ok {
		text += "\n" + e.Hint
	}
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("it does not say %q: %s", w, text)
		}
	}
}
