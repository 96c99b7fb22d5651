package backendtest

import (
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// testLacks asks for what the environment does not have: the answer names it,
// and nothing else suffers.
func testLacks(t *testing.T, h Harness) {
	t.Run("Shell", func(t *testing.T) {
		if h.Lacks.Shell == "" {
			t.Log("it has a shell")
			return
		}
		w := newWorld(t, h)
		w.open()
		_, err := w.try("bash", args{"command": "true"})
		w.refusal("bash", err, "shell", tool.Unsupported)
		_, err = w.env.Processes().Start(w.Context(), tool.StartRequest{OperationID: random(8), Actor: w.binding.Session, Command: "true"})
		w.refusal("process/start", err, "shell", tool.Unsupported)
		w.call("write_file", args{"path": "f", "content": "works"})
		w.holds("f", []byte("works"))
	})
	t.Run("Git", func(t *testing.T) {
		if h.Lacks.Git == "" {
			t.Log("it has git")
			return
		}
		w := newWorld(t, h)
		w.open()
		res, err := w.try("git", args{"subcommand": "status"})
		if err == nil && !res.IsError {
			w.Errorf("git worked: %s", text(res))
		} else if err != nil {
			w.refusal("git", err, "git", tool.Unsupported)
		}
	})
	t.Run("Jobs", func(t *testing.T) {
		if h.Lacks.Jobs == "" {
			t.Log("it runs jobs")
			return
		}
		w := newWorld(t, h)
		w.open()
		if _, ok := w.env.(backends.JobRunner); !ok {
			return
		}
		_, err := w.tryJob(w.Context(), backends.JobRequest{Argv: []string{"true"}})
		w.refusal("job/run", err, "job", tool.Unsupported)
	})
	t.Run("Packs", func(t *testing.T) {
		if h.Lacks.Packs == "" {
			t.Log("it has tool packs")
			return
		}
		lacksPacks(newWorld(t, h))
	})
	t.Run("Landlock", func(t *testing.T) {
		if h.Lacks.Landlock == "" {
			t.Log("it has Landlock")
			return
		}
		w := newWorldWith(t, h, tool.Standard, tool.Unconfined)
		w.open()
		if h.Lacks.Shell == "" {
			_, err := w.try("bash", args{"command": "touch PROOF"})
			w.refusal("a confined command", err, "landlock", tool.Unsupported)
		}
		if w.exists("PROOF") {
			w.Error("a command ran unconfined")
		}
		w.call("write_file", args{"path": "f", "content": "works"})
	})
	t.Run("Shared", func(t *testing.T) {
		if h.Lacks.Shared == "" {
			t.Log("it can be shared")
			return
		}
		raw := jsonish(`{"backend":"` + h.Profile(t, tool.Standard, tool.Standard).Backend + `","shared":true}`)
		if p, err := profile.Parse("shared", raw, profile.Defaults{}); err == nil || !strings.Contains(err.Error(), "shared") {
			t.Errorf("a profile that asks for it: %+v, %v", p, err)
		}
	})
	t.Run("Reattach", func(t *testing.T) {
		if h.Lacks.Reattach == "" {
			t.Log("it can be reattached to")
			return
		}
		w := newWorld(t, h)
		w.open()
		env := w.env
		w.env = nil
		if err := env.Detach(w.Context()); err != nil {
			w.Fatal(describe(err))
		}
		w.lost(h.Backend(t))
	})
}
