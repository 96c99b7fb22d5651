package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// serve starts a worker and returns the script that is its host.
func serve(t *testing.T, h Handler, o ServerOptions) (*script, <-chan error) {
	host, worker := net.Pipe()
	served, returned := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(returned)
		served <- Serve(context.Background(), worker, h, o)
	}()
	t.Cleanup(func() {
		host.Close()
		receive(t, returned)
	})
	s := newScript(t, host)
	return s, served
}

func initFrame(id, token, more string) string {
	return fmt.Sprintf(`{"id":%q,"method":"initialize","token":%q,"data":{"version":4,"root":"/workspace","session":"s1"%s}}`, id, token, more)
}

func TestServerHandshake(t *testing.T) {
	fail := handlers{MethodInitialize: func(context.Context, *Request) (Response, error) { return Response{}, errors.New("no root") }}
	other := strings.Repeat("0f", 32)
	for _, test := range []struct {
		name   string
		h      Handler
		socket bool
		say    []string
		hear   []string
	}{
		{name: "nothing before initialize", say: []string{`{"id":"1","method":"execute"}`, initFrame("2", testToken, "")},
			hear: []string{`^\{"id":"1","error":"execute before initialize`, `^\{"id":"2","data":\{"version":4`}},
		{name: "another version", say: []string{`{"id":"1","method":"initialize","data":{"version":5,"root":"/w","session":"s"}}`, initFrame("2", testToken, "")},
			hear: []string{`"id":"1","error":"the host speaks protocol 5`, `"id":"2","error":"initialize after initialize has failed`}},
		{name: "bad data", say: []string{`{"id":"1","method":"initialize","data":{"version":"4"}}`}, hear: []string{`"error":"initialize: `}},
		{name: "no data", say: []string{`{"id":"1","method":"initialize"}`}, hear: []string{`"error":"initialize: the frame has no data"`}},
		{name: "relative root", say: []string{`{"id":"1","method":"initialize","data":{"version":4,"root":"w","session":"s"}}`}, hear: []string{`not an absolute path`}},
		{name: "session", say: []string{`{"id":"1","method":"initialize","data":{"version":4,"root":"/w","session":".."}}`}, hear: []string{`not one path component`}},
		{name: "identity", say: []string{initFrame("1", testToken, `,"identity":"a/b"`)}, hear: []string{`not one path component`}},
		{name: "failed", h: fail, say: []string{initFrame("1", testToken, ""), initFrame("2", testToken, "")},
			hear: []string{`"id":"1","error":"no root"`, `"id":"2","error":"initialize after initialize has failed`}},
		{name: "repeated", say: []string{initFrame("1", testToken, ""), initFrame("2", testToken, ""), `{"id":"3","method":"x","token":"` + testToken + `"}`},
			hear: []string{`"id":"1","data"`, `"id":"2","data"`, `"id":"3","error":"unknown method`}},
		{name: "another token", say: []string{initFrame("1", testToken, ""), initFrame("2", other, ""), `{"id":"3","method":"x"}`, `{"id":"4","method":"x","token":"` + testToken[1:] + `"}`},
			hear: []string{`"id":"1","data"`, `"id":"2","error":"the token`, `"id":"3","error":"the token`, `"id":"4","error":"the token`}},
		{name: "stdio without a token", say: []string{initFrame("1", "", ""), `{"id":"3","method":"x"}`}, hear: []string{`"id":"1","data"`, `"id":"3","error":"unknown method`}},
		{name: "a socket without a token", socket: true, say: []string{initFrame("1", "", "")}, hear: []string{`a token of at least 32`}},
		{name: "a socket with a short token", socket: true, say: []string{initFrame("1", testToken[:31], "")}, hear: []string{`a token of at least 32`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.h == nil {
				test.h = handlers{}
			}
			s, _ := serve(t, test.h, ServerOptions{Token: NewToken(test.socket)})
			for i := range test.say {
				s.say(test.say[i])
				s.hears(test.hear[i])
			}
		})
	}
}

func TestTokenHoldsForEveryConnection(t *testing.T) {
	token := NewToken(true)
	fail := handlers{MethodInitialize: func(context.Context, *Request) (Response, error) { return Response{}, errors.New("no root") }}
	other := strings.Repeat("0f", 32)
	s, _ := serve(t, fail, ServerOptions{Token: token})
	s.say(initFrame("1", other, ""))
	s.hears("no root") // fixes nothing
	s, _ = serve(t, handlers{}, ServerOptions{Token: token})
	s.say(initFrame("1", testToken, ""))
	s.hears(`"data"`)
	s, _ = serve(t, handlers{}, ServerOptions{Token: token})
	s.say(initFrame("1", other, ""))
	s.hears("the token")
	s, _ = serve(t, handlers{}, ServerOptions{Token: token})
	s.say(initFrame("1", testToken, ""))
	s.hears(`"data"`)
}

func TestServerFrames(t *testing.T) {
	block := make(chan struct{})
	defer close(block)
	h := handlers{
		"block": func(ctx context.Context, _ *Request) (Response, error) {
			select {
			case <-ctx.Done():
				return Response{}, ctx.Err()
			case <-block:
				return Response{}, nil
			}
		},
		"echo": func(_ context.Context, r *Request) (Response, error) {
			if r.HostHas(CapBulk) {
				return Response{Body: r.Body}, nil
			}
			return Response{Data: r.Data}, nil
		},
		"body": func(context.Context, *Request) (Response, error) { return Response{Body: []byte("x")}, nil },
	}
	plain := func(t *testing.T) *script {
		s, _ := serve(t, h, ServerOptions{})
		s.say(initFrame("0", "", ""))
		s.hears(`"data"`)
		return s
	}
	bulk := func(t *testing.T) *script {
		s, _ := serve(t, h, ServerOptions{})
		s.say(initFrame("0", "", `,"capabilities":["caisson.bulk.v1","caisson.errors.v1"]`))
		s.hears(`"data"`)
		return s
	}
	t.Run("a missing id", func(t *testing.T) {
		s := plain(t)
		s.say(`{"method":"echo"}`, `{"id":"","method":"echo"}`, `{"id":"1"}`)
		s.hears(`^\{"id":"","error":"a request without an id"\}$`, `"id":"","error"`, `"id":"1","error":"a request without a method"`)
	})
	t.Run("an id in flight", func(t *testing.T) {
		s := plain(t)
		s.say(`{"id":"1","method":"block"}`, `{"id":"1","method":"echo"}`)
		s.hears(`"id":"1","error":"a request with the id \\"1\\" is still running"`)
		s.say(`{"id":"1","method":"cancel"}`, `{"id":"77","method":"cancel"}`)
		s.hears(`^\{"id":"1","error":"context canceled"\}$`)
		s.say(`{"id":"1","method":"echo","data":{"again":1}}`)
		s.hears(`^\{"id":"1","data":\{"again":1\}\}$`)
	})
	t.Run("unknown members", func(t *testing.T) {
		s := plain(t)
		s.say(`{"id":"1","method":"echo","raw":5,"body":9,"x":[],"data":[1]}`, `{"id":"2","method":"echo","data":null}`)
		s.hears(`^\{"id":"1","data":\[1\]\}$`, `^\{"id":"2","data":null\}$`)
	})
	t.Run("no bodies to who knows none", func(t *testing.T) {
		s := plain(t)
		s.say(`{"id":"1","method":"body"}`, `{"id":"2","method":"nothing"}`)
		s.hears(`^\{"id":"2","error":"unknown method \\"nothing\\""\}$`)
	})
	t.Run("details to who knows them", func(t *testing.T) {
		s := bulk(t)
		s.say(`{"id":"2","method":"nothing"}`)
		s.hears(`"detail":\{"kind":"unsupported"\}\}$`)
	})
	t.Run("a body between other frames", func(t *testing.T) {
		s := bulk(t)
		s.say(`{"id":"1","method":"echo","body":6}`, `{"id":"1","method":"body","raw":2}`+"\nab"+`{"id":"2","method":"nothing"}`)
		s.hears(`"id":"2","error"`)
		s.say(`{"id":"9","method":"body","raw":3}`+"\nxyz"+`{"id":"1","method":"body","raw":4}`, "cde")
		s.hears(`^\{"id":"1","data":null,"body":6\}$`)
		s.hears(`^\{"id":"1","method":"body","raw":6\}$`)
		if got := s.hear(); got != "abcde" {
			t.Errorf("the body is %q", got)
		}
	})
	t.Run("a body that is cut off", func(t *testing.T) {
		s := bulk(t)
		s.say(`{"id":"1","method":"echo","body":6}`, `{"id":"1","method":"body","error":"disk gone"}`)
		s.hears(`"id":"1","error":"the host did not send the whole body: disk gone"`)
		s.say(`{"id":"1","method":"echo","body":6}`, `{"id":"1","method":"cancel"}`)
		s.hears(`"id":"1","error":"context canceled"`)
		s.say(`{"id":"1","method":"body","raw":6}` + "\nlate\n")
		s.say(`{"id":"1","method":"echo"}`)
		s.hears(`"id":"1","data"`)
	})
	t.Run("a body that is too long", func(t *testing.T) {
		s := bulk(t)
		s.say(fmt.Sprintf(`{"id":"1","method":"echo","body":%d}`, MaxBody+1))
		s.hears(`"id":"1","error":"a body of`)
	})
}

func TestServerEndsAtMalformedInput(t *testing.T) {
	for name, say := range map[string]string{
		"no JSON":            "hello " + testToken,
		"an empty line":      "",
		"a number for an id": `{"id":7,"method":"x"}`,
		"too much of a body": `{"id":"1","method":"echo","body":1}` + "\n" + `{"id":"1","method":"body","raw":2}` + "\nab",
		"an empty piece":     `{"id":"1","method":"echo","body":1}` + "\n" + `{"id":"1","method":"body"}`,
		"too much raw":       `{"id":"1","method":"body","raw":9999999}`,
	} {
		t.Run(name, func(t *testing.T) {
			started, ended := make(chan struct{}), make(chan struct{})
			s, served := serve(t, handlers{"wait": func(ctx context.Context, _ *Request) (Response, error) {
				close(started)
				<-ctx.Done()
				close(ended)
				return Response{}, ctx.Err()
			}}, ServerOptions{})
			s.say(initFrame("0", "", `,"capabilities":["caisson.bulk.v1"]`))
			s.hears(`"data"`)
			s.say(`{"id":"w","method":"wait"}`)
			receive(t, started)
			go io.Copy(io.Discard, s.r)
			s.say(say)
			receive(t, ended)
			err := receive(t, served)
			var bad *FrameError
			if !errors.As(err, &bad) || strings.Contains(err.Error(), testToken) {
				t.Errorf("Serve: %v", err)
			}
			_ = s.conn.Close()
		})
	}
}

// Cleanup must not wait for a read that cannot be interrupted, nor for a host
// that does not read.
func TestServerEndsWhateverItsStreamDoes(t *testing.T) {
	in, host := io.Pipe()
	t.Cleanup(func() { host.Close() })
	rw := &stubborn{Reader: in, fail: make(chan struct{}), wrote: make(chan struct{}, 1)}
	served := make(chan error, 1)
	started, ended := make(chan struct{}), make(chan struct{})
	go func() {
		served <- Serve(context.Background(), rw, handlers{"wait": func(ctx context.Context, _ *Request) (Response, error) {
			close(started)
			<-ctx.Done()
			close(ended)
			return Response{}, ctx.Err()
		}}, ServerOptions{})
	}()
	fmt.Fprintln(host, initFrame("0", "", ""))
	receive(t, rw.wrote)
	fmt.Fprintln(host, `{"id":"1","method":"wait"}`)
	receive(t, started)
	close(rw.fail)
	fmt.Fprintln(host, `{"id":"2","method":"nothing"}`) // its answer cannot be written
	receive(t, ended)
	if err := receive(t, served); err == nil {
		t.Error("a failed write is no error")
	}
}

// stubborn is a stream whose Close interrupts nothing and whose writes fail once
// they may.
type stubborn struct {
	io.Reader
	fail  chan struct{}
	wrote chan struct{} // gets an element for a write
}

func (s *stubborn) Write(p []byte) (int, error) {
	select {
	case <-s.fail:
		return 0, io.ErrClosedPipe
	default:
		wake(s.wrote)
		return len(p), nil
	}
}

func (s *stubborn) Close() error { return nil }

// Serve returns only when every handler has: what it cleans up afterwards must
// not be in use any more.
func TestServerWaitsForHandlers(t *testing.T) {
	host, worker := net.Pipe()
	started, cancelled, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
	server := NewServer(worker, handlers{"wait": func(ctx context.Context, _ *Request) (Response, error) {
		close(started)
		<-ctx.Done()
		close(cancelled)
		<-release
		return Response{}, nil
	}}, ServerOptions{})
	server.flushGrace = 0
	served := make(chan error, 1)
	go func() { served <- server.Serve(context.Background()) }()
	s := newScript(t, host)
	s.say(initFrame("0", "", ""))
	s.hear()
	s.say(`{"id":"1","method":"wait"}`)
	receive(t, started)
	host.Close()
	receive(t, cancelled)
	select {
	case <-served:
		t.Error("Serve returned while a handler ran")
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	receive(t, served)
}

func TestServerEndsWithItsContext(t *testing.T) {
	host, worker := net.Pipe()
	defer host.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, worker, handlers{}, ServerOptions{}) }()
	why := errors.New("idle for too long")
	cancel(why)
	if err := receive(t, served); !errors.Is(err, why) {
		t.Error(err)
	}
}

func TestEventsThatPileUpEndTheConnection(t *testing.T) {
	host, worker := net.Pipe()
	server := NewServer(worker, handlers{}, ServerOptions{})
	served := make(chan error, 1)
	go func() { served <- server.Serve(context.Background()) }()
	s := newScript(t, host)
	server.Emit(tool.ProcessEvent{Type: "early"})
	s.say(initFrame("0", "", ""))
	s.hears(`^\{"id":"0","data"`)
	for range 2*maxEvents + 2 {
		server.Emit(tool.ProcessEvent{Type: tool.EventUpdated})
	}
	if err := receive(t, served); !errors.Is(err, errPileUp) {
		t.Error(err)
	}
}
