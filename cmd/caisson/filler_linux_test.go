package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/caisson-dev/caisson/backends/docker/dockertest"
)

// TestKilledFiller: the container through which a service puts its worker on a daemon is
// left by one that is killed meanwhile. Every prune of this machine finds it, whichever
// store it looks after, once the service is dead, and not before.
func TestKilledFiller(t *testing.T) {
	image := dockertest.UseShell(t)
	daemon, reached := holdingUploads(t)
	home := t.TempDir()
	config := filepath.Join(home, "config.json")
	profile := members{"backend": "docker", "image": image, "docker_host": daemon}
	text, err := json.Marshal(members{"execution_environments": members{"default": "box", "profiles": members{"box": profile}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	environment := append(os.Environ(), "HOME="+home, "XDG_STATE_HOME=", "XDG_DATA_HOME=", "XDG_CONFIG_HOME=", "CAISSON_CONFIG="+config)
	killed := exec.CommandContext(t.Context(), ownProgram(t), "call", "--profile", "box", "--workspace", "", "bash", `{"command":"true"}`)
	killed.Env, killed.Stderr = environment, t.Output()
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = killed.Wait() // it is killed
	}()
	var container string
	select {
	case container = <-reached:
	case <-ended:
		t.Fatal("it has ended before it put its worker there")
	}
	t.Cleanup(func() {
		_ = exec.Command("docker", "rm", "-f", "-v", container).Run()
	})
	name := strings.TrimPrefix(strings.TrimSpace(dockertest.Docker(t, "inspect", "--format", "{{.Name}}", container)), "/")
	volume, filler := strings.CutSuffix(name, "-fill")
	if !filler {
		t.Fatalf("the container %s is not a filler", name)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("docker", "volume", "rm", volume).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})

	pruned := func(args ...string) bool {
		t.Helper()
		prune := exec.CommandContext(t.Context(), filepath.Join(programDir, "caisson"), append([]string{"prune", "--json", "--backend", "docker"}, args...)...)
		other := t.TempDir()
		prune.Env = append(os.Environ(), "HOME="+other, "XDG_STATE_HOME=", "XDG_DATA_HOME=", "XDG_CONFIG_HOME=", "CAISSON_CONFIG=")
		prune.Stderr = t.Output()
		out, err := prune.Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(out), `"`+name+`"`)
	}
	if pruned() {
		t.Error("the container of a service that lives is pruned")
	}
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
	for i, want := range []bool{true, true, false} {
		var args []string
		if i == 0 {
			args = []string{"--dry-run"}
		}
		if pruned(args...) != want {
			t.Errorf("prune %d has found it: %v", i, !want)
		}
	}
}

// ownProgram is the program with a content of its own, so that no daemon has it yet.
func ownProgram(t *testing.T) string {
	t.Helper()
	program, err := os.ReadFile(filepath.Join(programDir, "caisson"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "caisson")
	// What follows the program in its file does not change what it does.
	if err := os.WriteFile(path, append(program, t.Name()...), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	return path
}

// holdingUploads is this machine's daemon, which takes no uploads: reached gives the
// container that the first was for.
func holdingUploads(t *testing.T) (host string, reached <-chan string) {
	t.Helper()
	socket := strings.TrimPrefix(os.Getenv("DOCKER_HOST"), "unix://")
	if socket == "" {
		socket = "/var/run/docker.sock"
	}
	var d net.Dialer
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, "unix", socket) }}
	relay := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "docker"})
	relay.Transport = transport
	uploads, over := make(chan string, 1), make(chan struct{})
	var first sync.Once
	dir, err := os.MkdirTemp("", "crt") //nolint:usetesting // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:gosec // for one client
		if path, ok := strings.CutSuffix(r.URL.Path, "/archive"); ok && r.Method == http.MethodPut {
			first.Do(func() { uploads <- filepath.Base(path) })
			<-over // its context does not end, since nobody reads what it sends
			return
		}
		relay.ServeHTTP(w, r)
	})}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l) // until it is closed
	}()
	t.Cleanup(func() {
		close(over)
		server.Close()
		<-served
		transport.CloseIdleConnections()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return "unix://" + filepath.Join(dir, "s"), uploads
}
