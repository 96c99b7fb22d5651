package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/confine"
)

var (
	subagent = tool.Actor{ID: "helper", Kind: tool.ActorSubagent}
	sideChat = tool.Actor{ID: "helper", Kind: tool.ActorSideChat}
)

// needApart ends the test on a kernel that cannot keep commands from signalling.
func needApart(t *testing.T) {
	t.Helper()
	if abi, err := confine.ABI(); err != nil || abi < confine.ApartABI {
		t.Skipf("this kernel has Landlock ABI %d (%v), and to keep commands apart needs %d", abi, err, confine.ApartABI)
	}
}

// Records tell who started a process, in the contract's words and in ours, also
// after the worker's end.
func TestOwners(t *testing.T) {
	state := t.TempDir()
	m, _ := newTest(t, func(o *Options) { o.StateDir = state })
	owners := map[string]tool.Actor{}
	for _, a := range []tool.Actor{{}, {ID: "s1"}, subagent, sideChat} {
		r := tool.StartRequest{Command: "true", Actor: a.ID}
		if a.Kind == tool.ActorSideChat {
			r.ActorKind = a.Kind
		}
		p := startRequest(t, m, r)
		want := a
		if a.Kind == "" {
			want = tool.Actor{ID: "s1", Kind: tool.ActorMain}
		}
		owners[p.ID] = want
		mode := tool.Unconfined
		if a.Kind == tool.ActorSideChat {
			mode = tool.ReadOnly
		}
		if p.SandboxMode != mode || (p.OwnerKind == tool.OwnerMainAgent) != (want.Kind == tool.ActorMain) {
			t.Errorf("of %+v: %+v", a, p)
		}
		wait(t, m, p.ID)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	again, _ := newTest(t, func(o *Options) { o.StateDir = state })
	for id, want := range owners {
		if p, err := again.Get(t.Context(), id); err != nil || p.Owner() != want {
			t.Errorf("owner %+v, want %+v, %v", p.Owner(), want, err)
		}
	}
	if _, err := again.Start(t.Context(), tool.StartRequest{Command: "true", ActorKind: tool.ActorSideChat}); tool.KindOf(err) != tool.InvalidParams {
		t.Errorf("a side chat without a name: %v", err)
	}
}

// A side chat writes nothing but a temporary directory of its own, whatever
// mode is asked for.
func TestSideChatsWriteNothing(t *testing.T) {
	m, _ := newTest(t)
	for _, a := range []tool.Actor{sideChat, {ID: "another", Kind: tool.ActorSideChat}} {
		got, err := m.Run(t.Context(), Command{
			Command: "echo $TMPDIR; echo x > $TMPDIR/f && touch proof", Actor: a, Mode: tool.Unconfined,
			Writable: []string{m.o.Root},
		})
		if err != nil || got.ExitCode == 0 || got.Mode != tool.ReadOnly || !got.SandboxDenied {
			t.Errorf("%+v, %v", got, err)
		}
		temp := strings.TrimSpace(string(got.Stdout))
		if _, err := os.Stat(filepath.Join(temp, "f")); err != nil {
			t.Errorf("it cannot write to its temporary directory: %v, %s", err, got.Stderr)
		}
		for _, other := range []Command{{Mode: tool.ReadOnly}, {Mode: tool.ReadOnly, Actor: tool.Actor{ID: "third", Kind: tool.ActorSideChat}}} {
			other.Command = "echo $TMPDIR; test -e $TMPDIR/f || touch " + temp + "/g"
			if got, err := m.Run(t.Context(), other); err != nil || got.ExitCode == 0 || strings.TrimSpace(string(got.Stdout)) == temp {
				t.Errorf("%+v has the directory of %+v: %+v, %v", other.Actor, a, got, err)
			}
		}
	}
	p := startRequest(t, m, tool.StartRequest{Command: "touch proof", Actor: "helper", ActorKind: tool.ActorSideChat, PermissionMode: tool.Unconfined})
	if end := wait(t, m, p.ID); end.ExitCode == 0 {
		t.Errorf("%+v", end)
	}
	if _, err := os.Stat(filepath.Join(m.o.Root, "proof")); err == nil {
		t.Error("it wrote to the workspace")
	}
}

// Nobody's process can be signalled by the commands of a side chat, nor by
// those of another session in a shared environment.
func TestCommandsSignalTheirOwn(t *testing.T) {
	needApart(t)
	shared := func(o *Options) { o.Shared, o.DefaultMode, o.Ceiling = true, tool.Standard, tool.Standard }
	m, _ := newTest(t, shared)
	other, _ := newTest(t, shared, func(o *Options) { o.StateDir, o.Session, o.Root = m.o.StateDir, "s2", m.o.Root })
	chat := startRequest(t, m, tool.StartRequest{Command: "sleep 300", Actor: "chat", ActorKind: tool.ActorSideChat})
	victims := []tool.Process{
		start(t, m, "sleep 300"), chat,
		startRequest(t, m, tool.StartRequest{Command: "sleep 300", PermissionMode: tool.ReadOnly}),
	}
	kill := func(m *Manager, a tool.Actor, pid int) int {
		t.Helper()
		got, err := m.Run(t.Context(), Command{Command: fmt.Sprintf("kill -KILL %d", pid), Actor: a})
		if err != nil {
			t.Fatal(err)
		}
		return got.ExitCode
	}
	for _, p := range append(victims, tool.Process{PID: os.Getpid()}) {
		if kill(m, sideChat, p.PID) == 0 {
			t.Errorf("a side chat killed %+v", p)
		}
		if kill(other, tool.Actor{}, p.PID) == 0 {
			t.Errorf("another session killed %+v", p)
		}
	}
	for _, p := range victims {
		if got, err := m.Get(t.Context(), p.ID); err != nil || got.Status != tool.ProcessRunning {
			t.Errorf("%+v, %v", got, err)
		}
	}
	// Main agent and subagents work on the same things.
	if code := kill(m, subagent, victims[0].PID); code != 0 {
		t.Errorf("a subagent's kill: %d", code)
	}
	if end := wait(t, m, victims[0].ID); end.Signal != "SIGKILL" {
		t.Errorf("%+v", end)
	}
	if _, err := m.Stop(t.Context(), chat.ID); err != nil {
		t.Error(err)
	}
}
