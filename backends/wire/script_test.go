package wire

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// A script is a peer that says exactly what a test wants, line by line.
type script struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func newScript(t *testing.T, conn net.Conn) *script {
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(soon))
	return &script{t, conn, bufio.NewReader(conn)}
}

func (s *script) say(lines ...string) {
	s.t.Helper()
	for _, line := range lines {
		if _, err := io.WriteString(s.conn, line+"\n"); err != nil {
			s.t.Fatalf("saying %.100s: %v", line, err)
		}
	}
}

func (s *script) hear() string {
	s.t.Helper()
	line, err := s.r.ReadString('\n')
	if err != nil {
		s.t.Fatalf("hearing: %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

// hears hears as many lines as there are patterns, in any order, and wants each
// pattern in one of them.
func (s *script) hears(patterns ...string) {
	s.t.Helper()
	lines := make([]string, len(patterns))
	for i := range lines {
		lines[i] = s.hear()
	}
	for _, pattern := range patterns {
		found := false
		for i, line := range lines {
			if regexp.MustCompile(pattern).MatchString(line) {
				found, lines[i] = true, ""
				break
			}
		}
		if !found {
			s.t.Fatalf("%s is in none of %q", pattern, lines)
		}
	}
}

// ends wants the connection to have ended.
func (s *script) ends() {
	s.t.Helper()
	if rest, err := io.ReadAll(s.r); errors.Is(err, os.ErrDeadlineExceeded) || len(rest) > 0 {
		s.t.Fatalf("%q, %v; want the end", rest, err)
	}
}

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
			hear: []string{`"id":"1","error":"the host speaks protocol 5`, `"id":"2","error":"initialize before`}},
		{name: "bad data", say: []string{`{"id":"1","method":"initialize","data":{"version":"4"}}`}, hear: []string{`"error":"initialize: `}},
		{name: "no data", say: []string{`{"id":"1","method":"initialize"}`}, hear: []string{`"error":"initialize: the frame has no data"`}},
		{name: "relative root", say: []string{`{"id":"1","method":"initialize","data":{"version":4,"root":"w","session":"s"}}`}, hear: []string{`not an absolute path`}},
		{name: "session", say: []string{`{"id":"1","method":"initialize","data":{"version":4,"root":"/w","session":".."}}`}, hear: []string{`not one path component`}},
		{name: "identity", say: []string{initFrame("1", testToken, `,"identity":"a/b"`)}, hear: []string{`not one path component`}},
		{name: "failed", h: fail, say: []string{initFrame("1", testToken, ""), initFrame("2", testToken, "")},
			hear: []string{`"id":"1","error":"no root"`, `"id":"2","error":"initialize before`}},
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

// dial starts a client and returns the script that is its worker.
func dial(t *testing.T, o ClientOptions) (*Client, *script) {
	host, worker := net.Pipe()
	o.Token = testToken
	c := NewClient(host, o)
	t.Cleanup(func() { c.Close() })
	return c, newScript(t, worker)
}

func TestClientFrames(t *testing.T) {
	c, s := dial(t, ClientOptions{})
	go c.Call(t.Context(), "execute", json.RawMessage("{}"), nil)
	if got, want := s.hear(), `{"id":"1","method":"execute","token":"`+testToken+`","data":{}}`; got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { _, err := c.Call(ctx, "execute", nil, nil); result <- err }()
	s.hears(`"id":"2"`)
	cancel()
	if got, want := s.hear(), `{"id":"2","method":"cancel","token":"`+testToken+`"}`; got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
	s.say(`{"id":"99","data":{}}`, `{"id":"","error":"who?"}`, `{"id":"5","method":"news","data":1}`, `{"id":"2","error":"interrupted"}`)
	wantKind(t, receive(t, result), tool.Cancelled)
	for i, test := range []struct {
		reply, message string
		kind           tool.Kind
	}{
		{`"error":"no such file"`, "no such file", tool.Internal},
		{`"error":"no","detail":{"kind":"denied"}`, "no", tool.Denied},
		{`"error":"no","detail":{"kind":"made up"}`, "no", tool.Internal},
		{`"error":"no","detail":7`, "no", tool.Internal},
		{`"error":"` + strings.Repeat("x", 2*maxMessage) + `"`, strings.Repeat("x", maxMessage) + "…", tool.Internal},
	} {
		go func() { _, err := c.Call(t.Context(), "x", nil, nil); result <- err }()
		s.hear()
		s.say(fmt.Sprintf(`{"id":"%d",%s}`, i+3, test.reply))
		err := receive(t, result)
		wantKind(t, err, test.kind)
		if err.Error() != test.message {
			t.Errorf("%s: %v", test.reply, err)
		}
	}
}

func TestClientHandshake(t *testing.T) {
	for _, test := range []struct {
		name, reply string
		kind        tool.Kind
		retryable   bool
	}{
		{"accepted", `{"id":"1","data":{"version":4,"root":"/w","capabilities":["process.start.v1","new.v9"]}}`, "", false},
		{"another version", `{"id":"1","data":{"version":3,"root":"/w"}}`, tool.ProtocolMismatch, false},
		{"no data", `{"id":"1"}`, tool.ProtocolMismatch, false},
		{"odd data", `{"id":"1","data":[]}`, tool.ProtocolMismatch, false},
		{"refused", `{"id":"1","error":"no root"}`, tool.Internal, false},
		{"text", "sh: caisson: not found", tool.BackendUnavailable, false},
		{"the end", "", tool.BackendUnavailable, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, s := dial(t, ClientOptions{})
			type outcome struct {
				out Initialized
				err error
			}
			result := make(chan outcome, 1)
			go func() {
				out, err := c.Initialize(t.Context(), binding)
				result <- outcome{out, err}
			}()
			s.hears(`"data":\{"version":4,"root":"/workspace","session":"s1","identity":"caisson-1","capabilities":\["caisson.bulk.v1","caisson.errors.v1"\]\}`)
			if test.reply != "" {
				s.say(test.reply)
			}
			if test.kind == tool.BackendUnavailable {
				s.conn.Close()
			}
			got := receive(t, result)
			if test.kind == "" {
				if got.err != nil || got.out.Root != "/w" || !c.Has(CapProcessStart) || c.Has(CapBulk) {
					t.Fatal(got)
				}
				return
			}
			wantKind(t, got.err, test.kind)
			var e *tool.Error
			if errors.As(got.err, &e); e.Retryable != test.retryable {
				t.Errorf("retryable: %v", e.Retryable)
			}
			receive(t, c.Done())
		})
	}
	t.Run("no answer in time", func(t *testing.T) {
		c, s := dial(t, ClientOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		go io.Copy(io.Discard, s.r)
		_, err := c.Initialize(ctx, binding)
		wantKind(t, err, tool.Timeout)
		receive(t, c.Done())
	})
}

func TestClientEndsAtMalformedInput(t *testing.T) {
	for name, say := range map[string]string{
		"text":                   "Segmentation fault",
		"a reply with an odd id": `{"id":1}`,
		"a second reply":         `{"id":"2","data":1,"body":10}` + "\n" + `{"id":"2","data":1}`,
		"too long a body":        `{"id":"2","data":1,"body":1}` + "\n" + `{"id":"2","method":"body","raw":3}` + "\nabc",
		"an event that is none":  `{"id":"","method":"process","data":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			c, s := dial(t, ClientOptions{OnEvent: func(tool.ProcessEvent) {}})
			result := make(chan error, 1)
			go func() { _, err := c.Initialize(t.Context(), binding); result <- err }()
			s.hear()
			s.say(`{"id":"1","data":{"version":4,"root":"/w","capabilities":["caisson.bulk.v1"]}}`)
			if err := receive(t, result); err != nil {
				t.Fatal(err)
			}
			go func() { _, err := c.Call(t.Context(), "x", nil, nil); result <- err }()
			s.hear()
			go io.WriteString(s.conn, say+"\n")
			wantKind(t, receive(t, result), tool.OutcomeUnknown)
			if name == "text" && !strings.Contains(c.Err().Error(), `"Segmentation fault"`) {
				t.Errorf("the line is not quoted: %v", c.Err())
			}
			s.ends()
		})
	}
}

func TestClientCallbacks(t *testing.T) {
	c, s := dial(t, ClientOptions{OnCallback: func(_ context.Context, call ToolCall) (tool.Result, error) {
		return tool.Result{StructuredContent: json.RawMessage(call.Arguments)}, nil
	}})
	go c.Call(t.Context(), MethodRunCode, nil, nil)
	go c.Call(t.Context(), "execute", nil, nil)
	ids := map[bool]string{}
	for range 2 {
		line := s.hear()
		ids[strings.Contains(line, "run_code")] = regexp.MustCompile(`"id":"(\d)"`).FindStringSubmatch(line)[1]
	}
	head := `^\{"id":"a","method":"callback","token":"` + testToken + `","data":\{"id":"a",`
	s.say(`{"id":"a","parent_id":"` + ids[true] + `","method":"tool","data":{"id":"x","name":"n","arguments":"{\"k\":1}"}}`)
	s.hears(head + `"data":\{"structured_content":\{"k":1\}\}\}\}$`)
	for _, parent := range []string{ids[false], "99", ""} {
		s.say(`{"id":"a","parent_id":"` + parent + `","method":"tool","data":{"name":"n","arguments":"{}"}}`)
		s.hears(head + `"error":"the program that calls is not running"\}\}$`)
	}
	s.say(`{"id":"a","parent_id":"` + ids[true] + `","method":"tool","data":[]}`)
	s.hears(head + `"error":"a call that is none`)
	s.say(`{"id":"`+ids[true]+`","data":{}}`, `{"id":"a","parent_id":"`+ids[true]+`","method":"tool","data":{"name":"n","arguments":"{}"}}`)
	s.hears(head + `"error":"the program that calls is not running"\}\}$`)
}

func TestSharedSocketProof(t *testing.T) {
	for _, test := range []struct {
		name, worker string
		ok           bool
	}{{"the same nonce", "n0nce", true}, {"another nonce", "other", false}} {
		t.Run(test.name, func(t *testing.T) {
			host, worker := net.Pipe()
			defer host.Close()
			defer worker.Close()
			answered := make(chan error, 1)
			go func() { answered <- AnswerSocket(t.Context(), worker, test.worker) }()
			if err := CheckSocket(t.Context(), host, "n0nce"); (err == nil) != test.ok {
				t.Error(err)
			}
			if err := receive(t, answered); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("a peer that says nothing", func(t *testing.T) {
		host, worker := net.Pipe()
		defer worker.Close()
		go io.Copy(io.Discard, worker)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := CheckSocket(ctx, host, "n0nce"); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
