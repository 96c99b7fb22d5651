package session_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session"
	"github.com/caisson-dev/caisson/session/config"
)

// between is a configuration that does something when it is read, which a new
// session does after it has looked for a binding and before it locks one.
type between struct {
	config.Source
	do func()
}

func (b between) Load() (*config.Config, error) {
	b.do()
	return b.Source.Load()
}

// A binding that appears while a session is made is resumed, and never replaced
// when it cannot be read.
func TestBindingAppears(t *testing.T) {
	r := newRig(t)
	made := r.start()
	v := made.open(session.OpenRequest{SessionID: "one", Workspace: r.folder, Profile: "kept"})
	made.call(v.ID, "write_file", `{"path":"a","content":"b"}`)
	made.stop()
	dir := filepath.Join(r.dir, "state", "sessions", "one")
	file := filepath.Join(dir, "binding.json")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, appears string
		kind          tool.Kind
	}{
		{"torn", string(whole[:len(whole)/2]), tool.Internal},
		{"whole", string(whole), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			s := r.startWith(between{config.File(r.config), sync.OnceFunc(func() {
				// The start has swept a session without a binding.
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Error(err)
				}
				r.write(file, row.appears)
			})})
			got, resumed, err := s.Open(t.Context(), session.OpenRequest{SessionID: "one", Workspace: r.folder, Profile: "kept"}, nil)
			if row.kind != "" {
				wantKind(t, err, row.kind)
				if now, err := os.ReadFile(file); err != nil || string(now) != row.appears {
					t.Errorf("the binding was replaced: %q, %v", now, err)
				}
				if err == nil || !strings.Contains(err.Error(), file) {
					t.Errorf("the file is not named: %v", err)
				}
			} else if err != nil || !resumed || got.EnvironmentID != v.EnvironmentID {
				t.Errorf("got %+v, %t, %v", got, resumed, err)
			}
			s.stop()
		})
	}
}

// A binding that cannot be read at the moment in which a session is to be closed
// is not forgotten: only one that is gone is.
func TestBindingTears(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "kept"})
	if _, err := s.Close(t.Context(), v.ID); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(r.dir, "state", "sessions", v.ID)
	file := filepath.Join(dir, "binding.json")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	stop, swapped := make(chan struct{}), make(chan error)
	go func() {
		for {
			for _, content := range [][]byte{whole, whole[:len(whole)/2]} {
				other := filepath.Join(r.dir, "other")
				err := errors.Join(os.WriteFile(other, content, 0o600), os.Rename(other, file))
				select {
				case <-stop:
					swapped <- err
					return
				default:
				}
				if err != nil {
					swapped <- err
					return
				}
			}
		}
	}()
	// Closing it again only looks at it, between two reads of the binding.
	for range 2000 {
		if _, err := s.Close(t.Context(), v.ID); err != nil && tool.KindOf(err) != tool.Internal {
			t.Errorf("got %v", err)
			break
		}
	}
	close(stop)
	if err := <-swapped; err != nil {
		t.Errorf("the session was forgotten: %v", err)
	}
	r.write(file, string(whole))
	if _, err := os.Stat(filepath.Join(dir, "token")); err != nil {
		t.Errorf("the session was forgotten: %v", err)
	}
}
