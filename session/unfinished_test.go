package session_test

import (
	"os"
	"path/filepath"
	"testing"

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
