package docker

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// A connection that a request was using when the engine was closed is closed
// with the request, even when somebody has tried to make another since.
func TestConnectionsEndAfterClose(t *testing.T) {
	path := filepath.Join(privateDir(t), "d.sock")
	l := must(net.Listen("unix", path))(t)
	asked, answer := make(chan struct{}), make(chan struct{})
	closed := make(chan struct{}, 8)
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/_ping" { // by which the library asks for the version
				close(asked)
				<-answer
			}
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Api-Version", "1.41")
			_, _ = w.Write([]byte(`{"Id": "c"}`))
		}),
		ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateClosed {
				closed <- struct{}{}
			}
		},
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() { server.Close(); <-served })

	e := must(newEngine(endpoint{Host: "unix://" + path}))(t)
	first := make(chan error, 1)
	go func() {
		_, err := e.container(t.Context(), "c")
		first <- err
	}()
	<-asked
	if err := e.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.container(t.Context(), "c"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a request after the close: %v", err)
	}
	close(answer)
	if err := <-first; err != nil {
		t.Errorf("the request that was under way: %v", err)
	}
	select {
	case <-closed:
	case <-time.After(10 * time.Second): // less than an idle connection is kept
		t.Error("the connection is still open")
	}
}

// A connection that is there only after the engine was closed is closed too: nobody
// would do so later.
func TestLateConnection(t *testing.T) {
	e := must(newEngine(endpoint{Host: "unix://" + filepath.Join(privateDir(t), "d.sock")}))(t)
	ours, theirs := net.Pipe()
	defer theirs.Close()
	dialling, dialled := make(chan struct{}), make(chan struct{})
	e.dial = func(context.Context, string, string) (net.Conn, error) {
		close(dialling)
		<-dialled
		return ours, nil
	}
	failed := make(chan error, 1)
	go func() {
		_, err := e.connect(t.Context(), "unix", "d.sock")
		failed <- err
	}()
	<-dialling
	if err := e.close(); err != nil {
		t.Fatal(err)
	}
	close(dialled)
	if err := <-failed; !errors.Is(err, net.ErrClosed) {
		t.Errorf("the dial: %v", err)
	}
	if _, err := theirs.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection is still open: %v", err)
	}
}

// A backend that was closed makes no connection that nobody would close.
func TestClosedBackend(t *testing.T) {
	b := New(Options{Getenv: func(string) string { return "" }})
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	binding := backends.Binding{Environment: "caisson-1", Profile: profile.Profile{Backend: profile.Docker}}
	_, opened := b.Open(t.Context(), binding, nil)
	for what, err := range map[string]error{"remove": b.Remove(t.Context(), binding), "open": opened} {
		if !errors.Is(err, net.ErrClosed) || tool.KindOf(err) != tool.BackendUnavailable {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// What its caller ends is no daemon that cannot be reached: it has the kind of
// the cause, and nobody says that it did nothing.
func TestRequestIsEnded(t *testing.T) {
	path := filepath.Join(privateDir(t), "d.sock")
	l := must(net.Listen("unix", path))(t)
	asked := make(chan struct{}, 8)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Api-Version", "1.41")
		if r.Method == http.MethodDelete {
			asked <- struct{}{}
			<-r.Context().Done()
			return
		}
		_, _ = w.Write([]byte(`{}`))
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() { server.Close(); <-served })
	e := must(newEngine(endpoint{Host: "unix://" + path}))(t)
	defer e.close()
	ctx, stop := context.WithCancelCause(t.Context())
	go func() {
		<-asked
		stop(tool.Errorf(tool.Cancelled, "the service is shutting down"))
	}()
	err := e.removeVolume(ctx, "v")
	if !errors.Is(err, context.Canceled) || tool.KindOf(err) != tool.Cancelled {
		t.Errorf("got %v of kind %q", err, tool.KindOf(err))
	}
}

// A removal that takes too long is not the end of what its caller asked for: it says
// what there is to do, and may be tried again.
func TestSlowRemoval(t *testing.T) {
	path := filepath.Join(privateDir(t), "d.sock")
	l := must(net.Listen("unix", path))(t)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Api-Version", "1.41")
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusConflict)
		}
		_, _ = w.Write([]byte(`{"message": "removal of container c is already in progress"}`))
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() { server.Close(); <-served })
	e := must(newEngine(endpoint{Host: "unix://" + path}))(t)
	defer e.close()
	err := removeWithin(t.Context(), e, "c", 2*pollInterval)
	var failure *tool.Error
	if !errors.As(err, &failure) || failure.Kind != tool.BackendUnavailable || !failure.Retryable || !strings.Contains(failure.Hint, "docker rm -f -v c") {
		t.Errorf("got %v of kind %q", err, tool.KindOf(err))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := removeWithin(ctx, e, "c", time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
