package backendtest

import (
	"context"
	"errors"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

func lifeTests() []test {
	return []test{
		{name: "Check", closed: true, run: testCheck},
		{name: "ReattachFindsTheProcess", needs: needShell | needReattach, run: testReattach},
		{name: "DetachedCallsFail", run: testDetached},
		{name: "ShutdownEndsProcesses", needs: needShell, run: testShutdown},
		{name: "RemoveLeavesNothing", run: testRemove},
		{name: "GoneIsLost", run: testGone},
	}
}

func testCheck(w *world) {
	w.removed = true // nothing was made
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	health := w.backend.Check(ctx, w.binding.Profile)
	if !health.OK || len(health.Checks) == 0 {
		w.Errorf("%+v", health)
	}
	for _, c := range health.Checks {
		if c.Name == "" || c.Detail == "" || !c.OK && c.Hint == "" {
			w.Errorf("a check without words: %+v", c)
		}
	}
}

// testReattach lets go of the environment and opens it with another value of
// the backend, as the next service would: the process counts on, and the
// output goes on where it was read up to.
func testReattach(w *world) {
	p := w.start(tool.StartRequest{Command: "echo $$ > pid; " + counter})
	offset := w.counts(p.ID, 0, 20)
	w.write("kept", []byte("kept"))
	if err := w.env.Detach(w.Context()); err != nil {
		w.Fatalf("detach: %v", describe(err))
	}
	w.env = nil

	w.backend = w.h.Backend(w.T)
	w.binding.Secrets.Environment = nil // cannot be taken again: as first given
	w.open()
	again, err := w.env.Processes().Get(w.Context(), p.ID)
	if err != nil {
		w.Fatalf("the process after the reattach: %v", describe(err))
	}
	if again.Status != tool.ProcessRunning || again.PID != p.PID || again.OperationID != p.OperationID {
		w.Errorf("before %+v\nafter %+v", p, again)
	}
	offset = w.counts(p.ID, offset, 40)
	w.holds("kept", []byte("kept"))
	if out := w.sh("echo $" + secretName); out != secret+"\n" {
		w.Errorf("the variable reads %q after the reattach", out)
	}
	w.stop(p.ID)
	w.dead("pid")
	if end := w.readAt(p.ID, offset); len(end.Output) > 0 {
		w.counts(p.ID, offset, end.EndOffset-offset)
	}
}

func testDetached(w *world) {
	s := w.env.Events().Subscribe()
	defer s.Close()
	env := w.env
	w.env = nil
	if err := env.Detach(w.Context()); err != nil {
		w.Fatal(describe(err))
	}
	if err := env.Detach(w.Context()); err != nil {
		w.Errorf("detached twice: %v", describe(err))
	}
	if _, err := env.Call(w.Context(), tool.Request{ID: "late", Name: "list_files", Arguments: jsonish("{}")}); err == nil {
		w.Error("a call on a detached environment worked")
	}
	for {
		ctx, cancel := context.WithTimeout(w.Context(), patience)
		_, err := s.Next(ctx)
		cancel()
		if err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				w.Error("a subscriber still waits after the detach")
			}
			break
		}
	}
}

func testShutdown(w *world) {
	for _, name := range []string{"p", "q"} {
		p := w.start(tool.StartRequest{Command: "trap '' TERM HUP; echo $$ > " + name + "; (trap '' TERM; echo ready; sleep 300); sleep 300"})
		w.readAt(p.ID, 0)
	}
	w.sh("sleep 300 & echo $! > grandchild")
	// The processes are looked for by Leftovers, in the world's cleanup.
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	w.shutdown(ctx)
}

func testRemove(w *world) {
	w.write("f", []byte("x"))
	if w.h.Lacks.Shell == "" {
		w.start(tool.StartRequest{Command: counter})
	}
	env := w.env
	w.env = nil
	if err := errors.Join(env.Shutdown(w.Context()), env.Detach(w.Context())); err != nil {
		w.Fatal(describe(err))
	}
	w.remove(w.Context())
	if err := w.backend.Remove(w.Context(), w.binding); err != nil {
		w.Errorf("removed twice: %v", describe(err))
	}
	// What never was can be removed too.
	never := newWorldWith(w.T, w.h, w.mode, w.mode)
	never.remove(w.Context())
}

func testGone(w *world) {
	w.write("f", []byte("precious"))
	env := w.env
	w.env = nil
	if err := errors.Join(env.Shutdown(w.Context()), env.Detach(w.Context())); err != nil {
		w.Fatal(describe(err))
	}
	w.h.Vanish(w.T, w.binding)
	w.lost(w.h.Backend(w.T))
}

// lost checks that opening the provisioned environment says that it is lost
// and makes no other one.
func (w *world) lost(b backends.Backend) {
	w.Helper()
	env, err := w.tryOpen(b)
	if err == nil {
		w.use(env)
		w.Errorf("what is gone was opened; it holds %v", ignore(w.fs.Stat(w.Context(), "f")))
	}
	w.refusal("open of what is gone", err, "", tool.EnvironmentLost)
}
