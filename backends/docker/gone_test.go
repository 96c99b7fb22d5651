package docker

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// A call in a session whose daemon has gone learns so soon, and the session
// works again when the daemon is back.
func TestDaemonGoesAway(t *testing.T) {
	way := newRoad(t)
	b := newBackend(t, far(t))
	binding := newBinding(t, b, bare(t))
	binding.Profile.DockerHost = way.host
	binding.RuntimeDir = "" // no socket beside the engine's
	env := opened(t, b, binding)
	call(t, env, "write_file", map[string]any{"path": "f", "content": "kept\n"})
	way.cut()
	read := tool.Request{Name: "read_file", Arguments: json.RawMessage(`{"path":"f"}`)}
	for range 2 { // the first may be the one that notices
		begun := time.Now()
		_, err := env.Call(t.Context(), read)
		if took := time.Since(begun); took > patience {
			t.Errorf("it took %s", took)
		}
		if tool.KindOf(err) != tool.BackendUnavailable || !strings.Contains(err.Error(), way.host) || tool.HintOf(err) == "" {
			t.Errorf("got %v (%s)", err, tool.HintOf(err))
		}
	}
	way.mend()
	for deadline := time.Now().Add(removalTimeout); ; {
		result, err := env.Call(t.Context(), read)
		if err == nil {
			if got := resultOf(t, result)["content"]; got != "kept\n" {
				t.Errorf("it reads %q", got)
			}
			return
		}
		if tool.KindOf(err) != tool.BackendUnavailable || time.Now().After(deadline) {
			t.Fatalf("with the daemon back: %v", err)
		}
	}
}

// What to do about a lost container depends on what the profile says already.
func TestLostContainerSaysWhatToDo(t *testing.T) {
	b := newBackend(t, echo(t))
	for _, persistent := range []bool{false, true} {
		binding := newBinding(t, b, bare(t))
		binding.Profile.Persistent = persistent
		h, binding := created(t, b, binding)
		if err := h.Remove(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
		err := h.Attach(t.Context(), binding)
		if advised := strings.Contains(tool.HintOf(err), "persistent: true"); tool.KindOf(err) != tool.EnvironmentLost || advised == persistent {
			t.Errorf("persistent %v: %v (%s)", persistent, err, tool.HintOf(err))
		}
	}
}

// A persistent container that cannot be started again says what to do, as one
// does that cannot be started at first.
func TestRestartSaysWhatToDo(t *testing.T) {
	b := newBackend(t, echo(t))
	binding := newBinding(t, b, bare(t))
	folder := filepath.Join(privateDir(t), "mounted")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	binding.Profile.Persistent = true
	binding.Profile.Mounts = []profile.Mount{{Source: folder, Target: "/mounted"}}
	h, binding := created(t, b, binding)
	found := must(h.engine.container(t.Context(), binding.Environment))(t)
	if err := h.engine.api.ContainerKill(t.Context(), found.ID, "KILL"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(removalTimeout); found.Running; {
		if time.Now().After(deadline) {
			t.Fatal("it does not end")
		}
		found = must(h.engine.container(t.Context(), binding.Environment))(t)
	}
	if err := h.Attach(t.Context(), binding); err == nil || tool.HintOf(err) == "" || tool.KindOf(err) != tool.BackendUnavailable {
		t.Errorf("got %v (%s)", err, tool.HintOf(err))
	}
}

// An image that a registry does not have is not asked for again; one that it
// could not give just now is.
func TestPullIsRetried(t *testing.T) {
	b := newBackend(t, echo(t))
	for status, want := range map[int]bool{http.StatusNotFound: false, http.StatusServiceUnavailable: true} {
		registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
			w.Header().Set("Content-Type", "application/json")
			if r.URL.Path == "/v2/" {
				_, _ = w.Write([]byte("{}"))
				return
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(`{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown","detail":{"Tag":"1"}}]}`))
		}))
		t.Cleanup(registry.Close)
		binding := newBinding(t, b, fmt.Sprintf("%s/none:%d", registry.Listener.Addr(), status))
		binding.Profile.Pull = "missing"
		h, binding, err := b.host(binding)
		if err != nil {
			t.Fatal(err)
		}
		err = h.Create(t.Context(), binding, nil)
		failure, ok := errors.AsType[*tool.Error](err)
		if !ok || failure.Kind != tool.BackendUnavailable || failure.Retryable != want || !strings.Contains(failure.Hint, "docker pull") {
			t.Errorf("%d: %v (%+v)", status, err, failure)
		}
	}
}
