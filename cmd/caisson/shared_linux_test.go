package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/docker/dockertest"
	"github.com/caisson-dev/caisson/rpc/client"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// household is what services of one user share: configuration, state, sockets
// and an opened folder.
type household struct {
	*testing.T
	env    []string
	folder string
}

func newHousehold(t *testing.T, config string) *household {
	t.Helper()
	home, folder := t.TempDir(), t.TempDir()
	runtimeDir, err := os.MkdirTemp("", "crt") //nolint:usetesting // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(runtimeDir); err != nil {
			t.Error(err)
		}
	})
	file := filepath.Join(home, "config.json")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return &household{T: t, folder: folder, env: append(os.Environ(), "HOME="+home, "XDG_RUNTIME_DIR="+runtimeDir,
		"XDG_STATE_HOME="+filepath.Join(home, "state"), "XDG_DATA_HOME="+filepath.Join(home, "data"), "CAISSON_CONFIG="+file)}
}

// resident is one service of a household with its client.
type resident struct {
	*household
	*client.Client
}

func (h *household) serve() *resident {
	h.Helper()
	cmd := exec.Command(filepath.Join(programDir, "caisson"), "serve")
	cmd.Env = h.env
	c, err := client.Start(cmd, client.Options{})
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { c.Close() })
	if _, err := c.Initialize(h.Context(), protocol.InitializeParams{}); err != nil {
		h.Fatal(err)
	}
	return &resident{h, c}
}

func (r *resident) open(profile, id string) protocol.Session {
	r.Helper()
	uri := "file://" + r.folder
	s, err := r.SessionOpen(r.household.Context(), protocol.SessionOpenParams{SessionID: id, Workspace: &uri, Profile: profile})
	if err != nil {
		r.Fatal(err)
	}
	return s.Session
}

// tool calls a tool as an actor, nil for the main agent.
func (r *resident) tool(session string, actor *protocol.Actor, name string, arguments map[string]any) (string, error) {
	r.Helper()
	raw, err := json.Marshal(arguments)
	if err != nil {
		r.Fatal(err)
	}
	res, err := r.ToolCall(r.household.Context(), protocol.ToolCallParams{SessionID: session, Name: name, Arguments: raw, Actor: actor})
	if err != nil {
		return "", err
	}
	if res.IsError {
		return "", errors.New(string(res.StructuredContent))
	}
	return string(res.StructuredContent), nil
}

func (r *resident) start(session string, actor *protocol.Actor) protocol.Process {
	r.Helper()
	p, err := r.ProcessStart(r.household.Context(), protocol.ProcessStartParams{SessionID: session, Command: "echo up; sleep 300", Actor: actor})
	if err != nil {
		r.Fatal(err)
	}
	return p.Process
}

func (r *resident) running(session, process string) bool {
	r.Helper()
	p, err := r.ProcessGet(r.household.Context(), protocol.ProcessParams{SessionID: session, ProcessID: process})
	if err != nil {
		r.Fatal(err)
	}
	return p.Process.Status == protocol.ProcessRunning
}

// wantError fails unless err is the service's, of the kind.
func wantError(t *testing.T, what string, err error, kind protocol.Kind) {
	t.Helper()
	var e *protocol.Error
	if !errors.As(err, &e) || e.Data.Kind != kind {
		t.Errorf("%s: %v, want %s", what, err, kind)
	}
}

const sharedConfig = `{"execution_environments": {"profiles": {
	"team": {"backend": "docker", "image": %q, "shared": true, "lifetime_seconds": 120},
	"box": {"backend": "docker", "image": %q, "lifetime_seconds": 120}
}}}`

// TestActors: sub-agents and side chats of one session, as an editor has them.
func TestActors(t *testing.T) {
	profiles := map[string]func(t *testing.T) string{
		"local": func(*testing.T) string { return `{}` },
		"box": func(t *testing.T) string {
			image := dockertest.UseShell(t)
			return fmt.Sprintf(sharedConfig, image, image)
		},
	}
	for profile, config := range profiles {
		t.Run(profile, func(t *testing.T) {
			r := newHousehold(t, config(t)).serve()
			s := r.open(profile, "s1")
			main := protocol.Actor{ID: "s1", Kind: protocol.ActorMain}
			helper := protocol.Actor{ID: "helper", Kind: protocol.ActorSubagent}
			chat := protocol.Actor{ID: "chat", Kind: protocol.ActorSideChat}
			processes := map[string]protocol.Actor{
				r.start(s.ID, nil).ID: main, r.start(s.ID, &helper).ID: helper, r.start(s.ID, &chat).ID: chat,
			}
			list, err := r.ProcessList(t.Context(), protocol.SessionParams{SessionID: s.ID})
			if err != nil || len(list.Processes) != len(processes) {
				t.Fatalf("%+v, %v", list, err)
			}
			for _, p := range list.Processes {
				if owner := processes[p.ID]; p.Owner.Kind != owner.Kind || p.Owner.ID != owner.ID {
					t.Errorf("owner %+v, want %+v", p.Owner, owner)
				}
			}
			if _, err := r.tool(s.ID, &helper, "write_file", map[string]any{"path": "f", "content": "the helper's"}); err != nil {
				t.Fatal(err)
			}
			if text, err := r.tool(s.ID, &chat, "read_file", map[string]any{"path": "f"}); err != nil || !strings.Contains(text, "the helper's") {
				t.Errorf("a side chat reads %q, %v", text, err)
			}

			_, err = r.tool(s.ID, &chat, "write_file", map[string]any{"path": "f", "content": "x"})
			wantError(t, "write_file", err, protocol.KindDenied)
			_, err = r.tool(s.ID, &chat, "edit_file", map[string]any{"path": "f", "old_text": "the", "new_text": "x"})
			wantError(t, "edit_file", err, protocol.KindDenied)
			if text, err := r.tool(s.ID, &chat, "bash", map[string]any{"command": "rm f; touch proof"}); err != nil || !strings.Contains(text, `"sandbox_denied":true`) {
				t.Errorf("bash: %s, %v", text, err)
			}
			for id, owner := range processes {
				for _, action := range []string{"write", "stop"} {
					_, err := r.tool(s.ID, &chat, "process", map[string]any{"action": action, "process_id": id, "input": "x"})
					if owner == chat {
						if err != nil {
							t.Errorf("%s of its own process: %v", action, err)
						}
						continue
					}
					wantError(t, action+" of a process of "+string(owner.Kind), err, protocol.KindDenied)
				}
				if r.running(s.ID, id) == (owner == chat) {
					t.Errorf("the process of %s runs: %t", owner.Kind, owner == chat)
				}
			}
			if text, err := r.tool(s.ID, nil, "read_file", map[string]any{"path": "f"}); err != nil || !strings.Contains(text, "the helper's") {
				t.Errorf("the file reads %q, %v", text, err)
			}
			if _, err := r.tool(s.ID, nil, "read_file", map[string]any{"path": "proof"}); err == nil {
				t.Error("a side chat wrote")
			}
			if _, err := r.SessionDelete(t.Context(), protocol.SessionDeleteParams{SessionID: s.ID}); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSharedContainer: two services and a fork in one container, to the last
// one's end.
func TestSharedContainer(t *testing.T) {
	image := dockertest.UseShell(t)
	h := newHousehold(t, fmt.Sprintf(sharedConfig, image, image))
	one, two := h.serve(), h.serve()
	v := one.open("team", "v")
	w := two.open("team", "w")
	if !v.Shared || v.EnvironmentID != w.EnvironmentID {
		t.Fatalf("%+v\n%+v", v, w)
	}
	t.Cleanup(func() {
		if there(t, v.EnvironmentID) {
			dockertest.Docker(t, "rm", "--force", "--volumes", v.EnvironmentID)
			t.Error("the container was left")
		}
	})
	if _, err := one.tool("v", nil, "write_file", map[string]any{"path": "f", "content": "of one"}); err != nil {
		t.Fatal(err)
	}
	if text, err := two.tool("w", nil, "bash", map[string]any{"command": "cat f"}); err != nil || !strings.Contains(text, "of one") {
		t.Errorf("the other reads %s, %v", text, err)
	}
	p, q := one.start("v", nil), two.start("w", nil)
	_, err := two.ProcessStop(t.Context(), protocol.ProcessParams{SessionID: "w", ProcessID: p.ID})
	wantError(t, "a stop of another session's process", err, protocol.KindProcessNotFound)

	// The first service dies; the other does not notice, and its own session
	// comes back to what it had.
	f, err := two.SessionFork(t.Context(), protocol.SessionForkParams{SessionID: "v", NewSessionID: "f"})
	if err != nil || f.Session.EnvironmentID != v.EnvironmentID || f.Session.ParentID != "v" {
		t.Fatalf("%+v, %v", f, err)
	}
	if err := one.Close(); err != nil {
		t.Error(err)
	}
	if !two.running("w", q.ID) {
		t.Error("the other service's process ended")
	}
	three := h.serve()
	three.open("", "v")
	if !three.running("v", p.ID) {
		t.Error("its process ended with the service")
	}

	// It is kept as long as a session is bound to it.
	if _, err := three.SessionDelete(t.Context(), protocol.SessionDeleteParams{SessionID: "v"}); err != nil {
		t.Error(err)
	}
	if !two.running("w", q.ID) {
		t.Error("a delete ended another session's process")
	}
	if _, err := two.SessionClose(t.Context(), protocol.SessionParams{SessionID: "w"}); err != nil {
		t.Error(err)
	}
	if text, err := two.tool("f", nil, "read_file", map[string]any{"path": "f"}); err != nil || !strings.Contains(text, "of one") {
		t.Errorf("the fork reads %s, %v", text, err)
	}
	// One that was closed comes back while another is there.
	three.open("", "w")
	for _, r := range []struct {
		*resident
		id string
	}{{three, "w"}, {two, "f"}} {
		if !there(t, v.EnvironmentID) {
			t.Error("the container went before its last session")
		}
		if _, err := r.SessionClose(t.Context(), protocol.SessionParams{SessionID: r.id}); err != nil {
			t.Error(err)
		}
	}
	if there(t, v.EnvironmentID) {
		t.Error("the container outlives its last session")
	}
	_, err = two.SessionOpen(t.Context(), protocol.SessionOpenParams{SessionID: "w"})
	wantError(t, "a session whose environment went with the last one", err, protocol.KindEnvironmentLost)
	for _, id := range []string{"w", "f"} {
		if _, err := two.SessionDelete(t.Context(), protocol.SessionDeleteParams{SessionID: id}); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(two.Close(), three.Close()); err != nil {
		t.Error(err)
	}
}

// there reports whether the daemon has a container of the name.
func there(t *testing.T, name string) bool {
	t.Helper()
	out, err := exec.Command("docker", "ps", "--all", "--quiet", "--filter", "name="+name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return len(out) > 0
}
