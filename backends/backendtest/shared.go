package backendtest

import (
	"context"
	"fmt"
	"path"
	"strings"
	"sync"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

func sharedTests() []test {
	return []test{
		{name: "Actors", needs: needShell, run: testActors},
		{name: "SideChatsWriteNothing", needs: needShell | needLandlock, run: testSideChats},
		{name: "SharedFiles", needs: needShared, closed: true, run: testSharedFiles},
		{name: "SharedSuccessor", needs: needShared, closed: true, run: testSharedSuccessor},
		{name: "SharedProcesses", needs: needShared | needShell, closed: true, run: testSharedProcesses},
		{name: "SharedForgotten", needs: needShared | needShell, closed: true, run: testSharedForgotten},
		{name: "SharedSignals", needs: needShared | needShell | needLandlock, closed: true, run: testSharedSignals},
	}
}

// as is a call of a tool by an actor.
func as(a tool.Actor, name string) tool.Request { return tool.Request{Name: name, Actor: a} }

// testActors: sub-agents and side chats are in their session's environment, and
// what they start is theirs by name.
func testActors(w *world) {
	helper := tool.Actor{ID: "helper", Kind: tool.ActorSubagent}
	chat := tool.Actor{ID: "helper", Kind: tool.ActorSideChat}
	if _, err := w.request(w.Context(), as(helper, "write_file"), args{"path": "f", "content": "the helper's\n"}); err != nil {
		w.Fatal(describe(err))
	}
	w.holds("f", []byte("the helper's\n"))
	owners := map[string]tool.Actor{w.start(tool.StartRequest{Command: "exit 0"}).ID: {ID: w.binding.Session, Kind: tool.ActorMain}}
	for _, a := range []tool.Actor{helper, chat} {
		res, err := w.request(w.Context(), as(a, "read_file"), args{"path": "f"})
		if err != nil || !strings.Contains(string(res.StructuredContent), "the helper's") {
			w.Errorf("%s reads %s, %v", a.Kind, brief(res.StructuredContent), describe(err))
		}
		r := tool.StartRequest{OperationID: random(8), Command: "exit 0", Actor: a.ID}
		if a.Kind == tool.ActorSideChat {
			if w.h.Lacks.Landlock != "" {
				continue // what would confine it is not there
			}
			r.ActorKind = a.Kind
		}
		p, err := w.env.Processes().Start(w.Context(), r)
		if err != nil {
			w.Fatal(describe(err))
		}
		owners[p.ID] = a
		res, err = w.request(w.Context(), as(a, "bash"), args{"command": "exit 0", "run_in_background": true})
		if err != nil {
			w.Fatal(describe(err))
		}
		owners[decode[ran](w, res).Promoted] = a
	}
	list, err := w.env.Processes().List(w.Context())
	if err != nil || len(list) != len(owners) {
		w.Fatalf("%d processes, want %d, %v", len(list), len(owners), describe(err))
	}
	for _, p := range list {
		if p.Owner() != owners[p.ID] {
			w.Errorf("the owner of %s is %+v, want %+v", p.ID, p.Owner(), owners[p.ID])
		}
		if (p.OwnerKind == tool.OwnerMainAgent) != (p.OwnerID == w.binding.Session) || p.RootThreadID != w.binding.Session {
			w.Errorf("the record %+v", p)
		}
	}
}

// testSideChats tries everything by which a side chat could change something.
func testSideChats(w *world) {
	chat := tool.Actor{ID: "chat", Kind: tool.ActorSideChat}
	w.write("f", []byte("kept"))
	counting := w.start(tool.StartRequest{Command: "cat; " + counter})
	for name, a := range map[string]args{
		"write_file": {"path": "PROOF", "content": "x"},
		"edit_file":  {"path": "f", "old_text": "kept", "new_text": "changed"},
	} {
		for _, mode := range []tool.Mode{"", tool.Standard} {
			w.refusedRequest(tool.Request{Name: name, Actor: chat, Mode: mode}, a, tool.Denied)
		}
	}
	for _, action := range []string{"write", "stop"} {
		w.refusedRequest(as(chat, "process"), args{"action": action, "process_id": counting.ID, "input": "x"}, tool.Denied)
	}
	for _, line := range []string{"touch PROOF", "echo changed > f", "rm f", "mv f g"} {
		res, err := w.request(w.Context(), as(chat, "bash"), args{"command": line})
		if err != nil {
			w.Fatal(describe(err))
		}
		if r := decode[ran](w, res); r.ExitCode == 0 {
			w.Errorf("%s: %+v", line, r)
		}
	}
	p, err := w.env.Processes().Start(w.Context(), tool.StartRequest{
		OperationID: random(8), Command: "touch PROOF; cat", Actor: chat.ID, ActorKind: chat.Kind, PermissionMode: w.mode,
	})
	if err != nil {
		w.Fatal(describe(err))
	}
	// Its own, which has no wider rights, it may steer.
	steer := func(action string) {
		w.Helper()
		res, err := w.request(w.Context(), as(chat, "process"), args{"action": action, "process_id": p.ID, "input": "mine\n"})
		if err != nil || res.IsError {
			w.Errorf("%s of its own process: %v, %s", action, describe(err), text(res))
		}
	}
	steer("write")
	var seen string
	w.until("its input", func() bool {
		seen += string(w.readAt(p.ID, int64(len(seen))).Output)
		return strings.Contains(seen, "mine\n")
	})
	steer("stop")
	w.ended(p.ID)
	if w.apart() {
		res, err := w.request(w.Context(), as(chat, "bash"), args{"command": fmt.Sprintf("kill -KILL %d", counting.PID)})
		if err != nil || decode[ran](w, res).ExitCode == 0 {
			w.Errorf("it killed a process: %v, %s", describe(err), brief(res.StructuredContent))
		}
	}
	if w.exists("PROOF") {
		w.Error("it wrote")
	}
	w.holds("f", []byte("kept"))
	if got, err := w.env.Processes().Get(w.Context(), counting.ID); err != nil || got.Status != tool.ProcessRunning {
		w.Errorf("the main agent's process: %+v, %v", got, describe(err))
	}
	w.stop(counting.ID)
}

// apart reports whether the environment's kernel can keep commands from
// signalling those of others: Linux 6.12 and newer.
func (w *world) apart() bool {
	var major, minor int
	if _, err := fmt.Sscanf(w.sh("uname -r"), "%d.%d", &major, &minor); err != nil {
		w.Fatal(err)
	}
	return major > 6 || major == 6 && minor >= 12
}

// pair opens a shared environment and, as another service would with another
// session, a second time. The second world ends before the first.
func pair(w *world) *world {
	w.Helper()
	w.binding.Profile.Shared = true
	w.open()
	other := w.beside()
	other.open()
	return other
}

// beside is another session, of another service, that shares w's environment.
func (w *world) beside() *world {
	w.Helper()
	other := &world{T: w.T, h: w.h, mode: w.mode, backend: w.h.Backend(w.T), binding: w.binding}
	other.binding.Session = "suite-" + random(6)
	other.binding.Secrets.Token = random(32)
	other.removed = true // the first one's
	w.Cleanup(other.part)
	return other
}

// part ends one session's part of a shared environment.
func (w *world) part() {
	if w.env == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.Context()), patience)
	defer cancel()
	w.shutdown(ctx)
	if err := w.env.Detach(ctx); err != nil {
		w.Errorf("detach: %v", describe(err))
	}
	w.env = nil
}

// testSharedFiles: both sessions see what the other one writes, as long as
// they are there and afterwards.
func testSharedFiles(one *world) {
	two := pair(one)
	if one.env.Info().Root != two.env.Info().Root || one.env.Info().Environment != two.env.Info().Environment {
		one.Errorf("%+v and %+v", one.env.Info(), two.env.Info())
	}
	one.call("write_file", args{"path": "d/first", "content": "one"})
	two.holds("d/first", []byte("one"))
	two.call("edit_file", args{"path": "d/first", "old_text": "one", "new_text": "two"})
	one.holds("d/first", []byte("two"))
	var both sync.WaitGroup
	for i, w := range []*world{one, two} {
		both.Go(func() {
			for n := range 20 {
				if _, err := w.try("write_file", args{"path": fmt.Sprintf("many/%d-%d", i, n), "content": "x"}); err != nil {
					w.Error(describe(err))
				}
			}
		})
	}
	both.Wait()
	for _, w := range []*world{one, two} {
		if list, err := w.fs.ReadDirectory(w.Context(), "many"); err != nil || len(list) != 40 {
			w.Errorf("%d files, %v", len(list), describe(err))
		}
	}
	two.part()
	one.holds("d/first", []byte("two"))
	third := one.beside()
	third.open()
	third.holds("d/first", []byte("two"))
}

// testSharedSuccessor: when an environment went and another session has made it
// anew, those that were in it do not go on in the new one.
func testSharedSuccessor(one *world) {
	two := pair(one)
	one.write("f", []byte("precious"))
	one.h.Vanish(one.T, one.binding)
	third := one.beside()
	third.binding.Provisioned = false
	third.open()
	for _, w := range []*world{one, two} {
		w.shut = true // there is nothing left to end
		for range 2 {
			_, err := w.try("write_file", args{"path": "PROOF", "content": "x"})
			if kind := tool.KindOf(err); kind != tool.EnvironmentLost && kind != tool.OutcomeUnknown {
				w.Errorf("a call in the environment that is gone: %v", describe(err))
			}
		}
	}
	if third.exists("f") || third.exists("PROOF") {
		third.Error("the new environment is not empty")
	}
}

// testSharedProcesses: each session has processes of its own, which no other
// one sees or controls, and which its end alone ends.
func testSharedProcesses(one *world) {
	two := pair(one)
	events := two.env.Events().Subscribe()
	defer events.Close()
	p := one.start(tool.StartRequest{OperationID: "the-same", Command: "echo $$ > pid; " + counter})
	offset := one.counts(p.ID, 0, 20)
	q := two.start(tool.StartRequest{OperationID: "the-same", Command: counter})
	if q.ID == p.ID {
		two.Fatal("the operation of another session gave its process")
	}
	if e := two.next(events); e.Process.ID != q.ID {
		two.Errorf("an event of another session's process %s", e.Process.ID)
	}
	theirs := two.env.Processes()
	if list, err := theirs.List(two.Context()); err != nil || len(list) != 1 || list[0].ID != q.ID {
		two.Errorf("listed %+v, %v", list, describe(err))
	}
	for what, err := range map[string]error{
		"get":    ignore(theirs.Get(two.Context(), p.ID)),
		"read":   ignore(theirs.Read(two.Context(), p.ID, tool.ReadOptions{})),
		"write":  ignore(theirs.Write(two.Context(), p.ID, []byte("x"))),
		"close":  ignore(theirs.CloseStdin(two.Context(), p.ID)),
		"resize": ignore(theirs.Resize(two.Context(), p.ID, tool.TTY{Cols: 1, Rows: 1})),
		"signal": ignore(theirs.Signal(two.Context(), p.ID, "SIGKILL")),
		"stop":   ignore(theirs.Stop(two.Context(), p.ID)),
	} {
		if tool.KindOf(err) != tool.ProcessNotFound {
			two.Errorf("%s of another session's process: %v", what, describe(err))
		}
	}
	for _, action := range []string{"read", "write", "stop"} {
		two.refused("process", args{"action": action, "process_id": p.ID, "input": "x"}, tool.ProcessNotFound)
	}

	// The second session is let go of and comes back to its own.
	if err := two.env.Detach(two.Context()); err != nil {
		two.Fatal(describe(err))
	}
	two.env, two.backend = nil, two.h.Backend(two.T)
	if two.h.Lacks.Reattach == "" {
		two.open()
		if got, err := two.env.Processes().Get(two.Context(), q.ID); err != nil || got.Status != tool.ProcessRunning || got.PID != q.PID {
			two.Errorf("after the reattach: %+v, %v", got, describe(err))
		}
		// Then it ends, which the first one does not notice.
		two.sh("sleep 300 & echo $! > grandchild")
		two.part()
		one.dead("grandchild")
	}
	offset = one.counts(p.ID, offset, 20)

	// What it had is on disk, for it alone.
	two.backend, two.shut = two.h.Backend(two.T), false
	two.open()
	if list, err := two.env.Processes().List(two.Context()); err != nil || len(list) != 1 || list[0].ID != q.ID || two.h.Lacks.Reattach == "" && !list[0].Status.Terminal() {
		two.Errorf("it comes back to %+v, %v", list, describe(err))
	}
	one.counts(p.ID, offset, 20)
	one.stop(p.ID)
	one.dead("pid")
}

// testSharedForgotten: an environment that goes on keeps nothing of a session that it
// was told to forget, whose worker had ended before; and all of another one's.
func testSharedForgotten(one *world) {
	two := pair(one)
	keep := func(w *world) string {
		w.Helper()
		w.stop(w.start(tool.StartRequest{Command: "echo kept; exec sleep 300"}).ID)
		return strings.TrimSpace(w.sh(`touch "$TMPDIR/kept" && echo "$TMPDIR"`))
	}
	kept, forgotten := keep(one), keep(two)
	if kept == forgotten {
		one.Fatalf("both have the temporary directory %s", kept)
	}
	two.part()
	two.backend, two.shut = two.h.Backend(two.T), true
	two.open()
	forgetter, ok := two.env.(backends.Forgetter)
	if !ok {
		two.Fatal("it cannot forget")
	}
	if err := forgetter.Forget(two.Context()); err != nil {
		two.Fatal(describe(err))
	}
	if got := one.sh(fmt.Sprintf("ls -d '%s' '%s/kept' 2>/dev/null || true", path.Dir(forgotten), kept)); strings.TrimSpace(got) != kept+"/kept" {
		one.Errorf("there are %q", got)
	}
	if list, err := one.env.Processes().List(one.Context()); err != nil || len(list) != 1 {
		one.Errorf("%d processes, %v", len(list), describe(err))
	}
	// It may come back, to nothing.
	two.part()
	two.backend, two.shut = two.h.Backend(two.T), false
	two.open()
	if list, err := two.env.Processes().List(two.Context()); err != nil || len(list) != 0 {
		two.Errorf("%d processes, %v", len(list), describe(err))
	}
}

// testSharedSignals: where the kernel can see to it, a command cannot signal
// what other sessions run, nor their workers; and it never reaches those.
func testSharedSignals(one *world) {
	two := pair(one)
	p := one.start(tool.StartRequest{Command: "echo $PPID > worker; " + counter})
	offset := one.counts(p.ID, 0, 4)
	worker := strings.TrimSpace(string(one.read("worker")))
	if two.apart() {
		for what, pid := range map[string]string{"its process": fmt.Sprint(p.PID), "its group": fmt.Sprint(-p.PGID), "its worker": worker} {
			if r := two.bash("kill -KILL " + pid); r.ExitCode == 0 {
				two.Errorf("%s was killed: %+v", what, r)
			}
		}
		// Its own it can.
		if r := two.bash("sleep 300 & kill -KILL $!"); r.ExitCode != 0 {
			two.Errorf("its own: %+v", r)
		}
	}
	one.counts(p.ID, offset, 20)
	// Memory and variables of the other's are closed to it as well.
	for _, file := range []string{"environ", "mem"} {
		if r := two.bash("head -c 1 " + path.Join("/proc", fmt.Sprint(p.PID), file)); r.ExitCode == 0 {
			two.Errorf("it reads %s of another session's process", file)
		}
	}
}
