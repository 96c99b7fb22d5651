package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

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
		{"an echo", `{"id":"1","method":"initialize","token":"` + testToken + `","data":{}}`, tool.BackendUnavailable, false},
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
			if errors.As(got.err, &e); e.Retryable != test.retryable || strings.Contains(e.Message, testToken) || test.name == "another version" && !strings.Contains(e.Hint, "speaks protocol 4") {
				t.Errorf("%+v", e)
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

// shyStream takes no request before it is closed: its peer has to say first that
// it is there.
type shyStream struct {
	io.Reader
	closed chan struct{}
}

func (s shyStream) Write([]byte) (int, error) {
	<-s.closed
	return 0, fs.ErrClosed
}

func (s shyStream) Close() error {
	close(s.closed)
	return nil
}

// What a peer printed says why there is no handshake, also when the request could
// not even be sent.
func TestClientHandshakeBeforeTheMark(t *testing.T) {
	c := NewClient(shyStream{strings.NewReader("sh: caisson: not found\n"), make(chan struct{})}, ClientOptions{Mark: "M4rk"})
	t.Cleanup(func() { c.Close() })
	_, err := c.Initialize(t.Context(), binding)
	wantKind(t, err, tool.BackendUnavailable)
	var e *tool.Error
	if errors.As(err, &e); e.Retryable || !strings.Contains(err.Error(), "sh: caisson: not found") {
		t.Errorf("%v (retryable: %v)", err, e.Retryable)
	}
}

// What its stream knows of the end counts more than what it printed.
func TestClientHandshakeRefused(t *testing.T) {
	told := &tool.Error{Kind: tool.BackendUnavailable, Message: "no room", Hint: "make room", Retryable: true}
	for hint, told := range map[string]*tool.Error{"make room": told, "see whether": {Kind: told.Kind, Message: told.Message, Retryable: true}} {
		output := io.MultiReader(strings.NewReader("a word of the runtime\n"), iotest.ErrReader(told))
		c := NewClient(shyStream{output, make(chan struct{})}, ClientOptions{Mark: "M4rk"})
		t.Cleanup(func() { c.Close() })
		_, err := c.Initialize(t.Context(), binding)
		wantKind(t, err, tool.BackendUnavailable)
		var e *tool.Error
		if errors.As(err, &e); !e.Retryable || !strings.HasPrefix(e.Hint, hint) || !strings.Contains(err.Error(), "a word of the runtime") {
			t.Errorf("%v (retryable: %v, hint: %s)", err, e.Retryable, e.Hint)
		}
	}
}

// deafStream is a peer that has ended: it takes nothing, and what it said is only
// read when a write has failed.
type deafStream struct {
	said   io.Reader
	failed chan struct{}
}

func (s deafStream) Read(p []byte) (int, error) {
	<-s.failed
	return s.said.Read(p)
}

func (s deafStream) Write([]byte) (int, error) {
	close(s.failed)
	return 0, syscall.EPIPE
}

func (deafStream) Close() error { return nil }

// A peer that ended while it was written to is quoted: that it does not listen is
// not the reason.
func TestClientHearsLastWords(t *testing.T) {
	c := NewClient(deafStream{strings.NewReader("usage: something else\n"), make(chan struct{})}, ClientOptions{})
	t.Cleanup(func() { c.Close() })
	_, err := c.Initialize(t.Context(), binding)
	wantKind(t, err, tool.BackendUnavailable)
	if !strings.Contains(err.Error(), "usage: something else") {
		t.Errorf("%v", err)
	}
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

// A peer that takes nothing loses the connection, and the call that was waiting
// to be sent did nothing.
func TestClientWhosePeerDoesNotRead(t *testing.T) {
	c, s := dial(t, ClientOptions{CancelGrace: 30 * time.Millisecond})
	waiting := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		c.writer.lock <- struct{}{} // somebody else is writing
		cancel()
		_, err := c.Call(ctx, "second", nil, nil)
		waiting <- err
	}()
	err := receive(t, waiting)
	wantKind(t, err, tool.Cancelled)
	if !errors.Is(err, ErrNotSent) {
		t.Error(err)
	}
	<-c.writer.lock
	_, err = c.Call(t.Context(), "first", nil, nil)
	wantKind(t, err, tool.BackendUnavailable)
	if !errors.Is(err, ErrNotSent) || !errors.Is(c.Err(), errStalled) {
		t.Errorf("%v; the connection: %v", err, c.Err())
	}
	s.ends()
}

// A body is given up when the worker has answered before it was there.
func TestBodyThatIsNotWanted(t *testing.T) {
	c, s := dial(t, ClientOptions{})
	result := make(chan error, 1)
	go func() { _, err := c.Call(t.Context(), "x", nil, make([]byte, 2*BodyWindow)); result <- err }()
	s.hears(`"id":"1","method":"x","token":"` + testToken + `","body":8388608\}`)
	go io.Copy(io.Discard, s.r)
	s.say(`{"id":"1","error":"too much for me"}`)
	if err := receive(t, result); err == nil || err.Error() != "too much for me" {
		t.Error(err)
	}
	if c.Err() != nil {
		t.Error(c.Err())
	}
}

// A program that is over has no calls running any more.
func TestCallbackOutlivesNoProgram(t *testing.T) {
	inside, ended := make(chan struct{}), make(chan struct{})
	c, s := dial(t, ClientOptions{OnCallback: func(ctx context.Context, _ ToolCall) (tool.Result, error) {
		close(inside)
		<-ctx.Done()
		close(ended)
		return tool.Result{}, ctx.Err()
	}})
	result := make(chan error, 1)
	go func() { _, err := c.Call(t.Context(), MethodRunCode, nil, nil); result <- err }()
	s.hear()
	s.say(`{"id":"a","parent_id":"1","method":"tool","data":{"name":"n","arguments":"{}"}}`)
	receive(t, inside)
	s.say(`{"id":"1","data":{}}`)
	receive(t, ended)
	if err := receive(t, result); err != nil {
		t.Error(err)
	}
	s.hears(`"id":"a","error":"context canceled"`)
}

func TestTooManyCallbacks(t *testing.T) {
	block := make(chan struct{})
	c, s := dial(t, ClientOptions{OnCallback: func(context.Context, ToolCall) (tool.Result, error) {
		<-block
		return tool.Result{}, nil
	}})
	result := make(chan error, 1)
	go func() { _, err := c.Call(t.Context(), MethodRunCode, nil, nil); result <- err }()
	s.hear()
	go io.Copy(io.Discard, s.r)
	for i := range maxWaiting + 1 {
		s.say(fmt.Sprintf(`{"id":"c%d","parent_id":"1","method":"tool","data":{"name":"n","arguments":"{}"}}`, i))
	}
	wantKind(t, receive(t, result), tool.OutcomeUnknown)
	close(block)
}
