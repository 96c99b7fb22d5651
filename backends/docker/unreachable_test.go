package docker

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// patience is more than a person needs to learn that a daemon is not there, on the
// busiest machine, and less than an operating system takes to give up a connection.
const patience = 30 * time.Second

func TestUnreachable(t *testing.T) {
	if answerTimeout >= 3*time.Second {
		t.Error("that a daemon is not there is to be told within 3 s")
	}
	short := privateDir(t)
	nothing := filepath.Join(short, "none.sock")
	dead := filepath.Join(short, "dead.sock")
	l := must(net.ListenUnix("unix", &net.UnixAddr{Name: dead, Net: "unix"}))(t)
	l.SetUnlinkOnClose(false)
	l.Close()
	silent := must(net.Listen("unix", filepath.Join(short, "silent.sock")))(t)
	t.Cleanup(func() { silent.Close() })
	forbidden := filepath.Join(short, "forbidden.sock")
	guarded := must(net.Listen("unix", forbidden))(t)
	t.Cleanup(func() { guarded.Close() })
	if err := os.Chmod(forbidden, 0); err != nil {
		t.Fatal(err)
	}
	greeter := must(net.Listen("unix", filepath.Join(short, "greeter.sock")))(t)
	var greeting sync.WaitGroup
	greeting.Go(func() {
		for {
			conn, err := greeter.Accept()
			if err != nil {
				return
			}
			if n, _ := conn.Read(make([]byte, 1)); n > 0 { // and not only a look whether somebody is here
				_, _ = conn.Write([]byte("SSH-2.0-OpenSSH\r\n"))
			}
			conn.Close()
		}
	})
	t.Cleanup(greeting.Wait)
	t.Cleanup(func() { greeter.Close() })
	const free = "127.0.0.1:1" // a port that was free a moment ago may be somebody's by now

	// Neither of them is a docker daemon.
	website := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) }))
	t.Cleanup(website.Close)
	missing := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(missing.Close)
	// It is up, but has no time to say what it is.
	hung := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/info") {
			<-r.Context().Done()
		}
	}))
	t.Cleanup(hung.Close)

	tests := []struct {
		name, host, fails, hint string
		unprivileged            bool
	}{
		{name: "no socket", host: "unix://" + nothing, fails: "no such file", hint: "start docker"},
		{name: "nobody listens", host: "unix://" + dead, fails: "refused", hint: "not running"},
		{name: "no answer", host: "unix://" + silent.Addr().String(), fails: "did not answer", hint: "docker --host"},
		{name: "no right", host: "unix://" + forbidden, fails: "permission denied", hint: "group docker", unprivileged: true},
		{name: "refused", host: "tcp://" + free, fails: "refused", hint: "docker_host"},
		{name: "no daemon", host: address(website), fails: "does not answer as a docker daemon", hint: "right host"},
		{name: "nothing there", host: address(missing), fails: "does not answer as a docker daemon", hint: "right host"},
		{name: "another protocol", host: "unix://" + greeter.Addr().String(), fails: "malformed HTTP response", hint: "docker --host"},
		{name: "busy", host: address(hung), fails: "did not answer", hint: "right host"},
		// An address that is reserved for documentation answers nothing.
		{name: "no route", host: "tcp://192.0.2.1:2375", fails: "192.0.2.1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.unprivileged && os.Getuid() == 0 {
				t.Skip("root has every right")
			}
			b := newBackend(t, "")
			binding := bindingTo(test.host)
			begun := time.Now()
			h, binding, err := b.host(binding)
			if err == nil {
				h.engine.describing = answerTimeout
				err = h.Create(t.Context(), binding, nil)
			}
			if took := time.Since(begun); took > patience {
				t.Errorf("it took %s", took)
			}
			if !backends.MadeNothing(err) {
				t.Error("it is not said that nothing was made")
			}
			if err == nil || tool.KindOf(err) != tool.BackendUnavailable ||
				!strings.Contains(err.Error(), test.host) || !strings.Contains(err.Error(), test.fails) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want it to name %s and %q", err, test.host, test.fails)
			}
			if !strings.Contains(tool.HintOf(err), test.hint) {
				t.Errorf("the hint is %q, want %q", tool.HintOf(err), test.hint)
			}
			if err := b.Remove(t.Context(), binding); tool.KindOf(err) != tool.BackendUnavailable {
				t.Errorf("removing: %v", err)
			}
			if health := b.Check(t.Context(), binding.Profile); health.OK || len(health.Checks) == 0 || !strings.Contains(health.Checks[0].Detail, test.host) {
				t.Errorf("the check found %+v", health)
			}
		})
	}
	// One that answers is waited for longer than one that does not.
	t.Run("slow", func(t *testing.T) {
		t.Parallel()
		slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Api-Version", "1.41")
			if strings.HasSuffix(r.URL.Path, "/info") {
				select {
				case <-r.Context().Done():
				case <-time.After(answerTimeout + 100*time.Millisecond):
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(`{"ID":"x","OSType":"linux","Architecture":"x86_64"}`))
			}
		}))
		defer slow.Close()
		e := must(newEngine(endpoint{Host: address(slow)}))(t)
		defer e.close()
		if d := must(e.hello(t.Context()))(t); d.ID != "x" {
			t.Errorf("it is %+v", d)
		}
	})
}

// address is where a server listens, as a docker_host.
func address(s *httptest.Server) string { return "tcp://" + s.Listener.Addr().String() }

// A dial that takes too long looks like the end of the caller's context, and is not.
func TestDialTakesTooLong(t *testing.T) {
	const host = "tcp://127.0.0.1:2375"
	e := must(newEngine(endpoint{Host: host}))(t)
	defer e.close()
	e.dial = (&net.Dialer{Deadline: time.Unix(1, 0)}).DialContext
	_, hello := e.hello(t.Context())
	_, container := e.container(t.Context(), "c")
	_, exec := e.exec(t.Context(), "c", []string{"x"})
	for _, err := range []error{hello, container, exec} {
		if tool.KindOf(err) != tool.BackendUnavailable || !strings.Contains(err.Error(), host) || tool.HintOf(err) == "" {
			t.Errorf("got %v (%s)", err, tool.KindOf(err))
		}
	}
}

func TestUnreachableThroughSSH(t *testing.T) {
	// A double for ssh that says what ssh says when it cannot connect.
	dir := t.TempDir()
	write(t, filepath.Join(dir, "ssh"), "#!/bin/sh\necho 'ssh: connect to host box port 22: No route to host' >&2\nexit 255\n")
	if err := os.Chmod(filepath.Join(dir, "ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	b := newBackend(t, "")
	h, binding, err := b.host(bindingTo("ssh://me@box"))
	if err == nil {
		err = h.Create(t.Context(), binding, nil)
	}
	if err == nil || !strings.Contains(err.Error(), "No route to host") || !strings.Contains(err.Error(), "ssh://me@box") {
		t.Errorf("got %v", err)
	}
	if hint := tool.HintOf(err); hint != "try: ssh me@box docker version" {
		t.Errorf("the hint is %q", hint)
	}
}

// Against a double of a daemon: the version spoken is the newest that both know.
func TestNegotiation(t *testing.T) {
	for _, test := range []struct{ daemon, spoken string }{
		{"1.41", "1.41"}, {"1.44", "1.44"}, {"1.51", "1.51"}, {"1.99", "1.51"},
	} {
		t.Run(test.daemon, func(t *testing.T) {
			path := filepath.Join(privateDir(t), "d.sock")
			l := must(net.Listen("unix", path))(t)
			var asked string
			server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Api-Version", test.daemon)
				w.Header().Set("Ostype", "linux")
				w.Header().Set("Content-Type", "application/json")
				if strings.HasSuffix(r.URL.Path, "/info") {
					asked = r.URL.Path
					_, _ = w.Write([]byte(`{"ID":"x","OSType":"linux","Architecture":"aarch64","ServerVersion":"99",` +
						`"OperatingSystem":"Docker Desktop","SecurityOptions":["name=seccomp,profile=default","name=rootless"]}`))
				}
			})}
			served := make(chan error, 1)
			go func() { served <- server.Serve(l) }()
			t.Cleanup(func() { server.Close(); <-served })

			e := must(newEngine(endpoint{Host: "unix://" + path}))(t)
			defer e.close()
			d := must(e.hello(t.Context()))(t)
			if d.API != test.spoken || asked != "/v"+test.spoken+"/info" {
				t.Errorf("spoke %s and asked %s, want %s", d.API, asked, test.spoken)
			}
			if d.Platform != (platform{OS: "linux", Arch: "arm64"}) || !d.Rootless {
				t.Errorf("understood %+v", d)
			}
		})
	}
}

func TestDialIsCancelled(t *testing.T) {
	silent := must(net.Listen("unix", filepath.Join(privateDir(t), "s.sock")))(t)
	defer silent.Close()
	e := must(newEngine(endpoint{Host: "unix://" + silent.Addr().String()}))(t)
	defer e.close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := e.exec(ctx, "c", []string{"x"}); err == nil || !strings.Contains(err.Error(), "deadline") {
		t.Errorf("got %v", err)
	}
}

func bindingTo(host string) backends.Binding {
	return backends.Binding{
		Session: "s", Environment: "caisson-" + strings.Repeat("0", 32), Store: "none",
		Profile: profile.Profile{Name: "p", Backend: profile.Docker, Image: "i", DockerHost: host, Workspace: "/workspace"},
	}
}
