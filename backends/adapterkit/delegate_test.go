package adapterkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/program"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// playPeer is a peer that does one thing.
func playPeer(part string) error {
	h := least()
	var session *Session
	h.Initialize = func(_ context.Context, s *Session, in wire.Initialize) (string, error) {
		session = s
		return in.Root, nil
	}
	h.Execute = func(ctx context.Context, c Call) (tool.Result, error) {
		switch c.Name {
		case "binding":
			return text(string(session.raw)), nil
		case "environ":
			return text(strings.Join(os.Environ(), "\n")), nil
		case "emit":
			session.EmitProcess(tool.ProcessEvent{Type: tool.EventStarted, Process: tool.Process{ID: "p"}})
			return text(""), nil
		case "die":
			os.Exit(7)
		case "wait":
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		case "fail":
			return tool.Result{}, tool.Errorf(tool.PathOutsideRoot, "outside").WithHint("stay in").WithPath("../x")
		}
		return text("peer " + c.Name), nil
	}
	if part == "bad end" {
		h.Close = func(context.Context) error { return errors.New("a machine is left") }
	}
	b, err := New(h)
	if err != nil {
		return err
	}
	var o Options
	if part == "never ends" {
		o.Out = os.Stdout
		err = Run(context.Background(), b, o)
		time.Sleep(time.Hour)
	}
	return errors.Join(err, Run(context.Background(), b, o))
}

// peerOf is a Delegated to this binary in a part.
func peerOf(t *testing.T, part string, change func(*DelegateOptions)) *Delegated {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := DelegateOptions{Command: []string{self, "peer", part}}
	if change != nil {
		change(&o)
	}
	d, err := Delegate(o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDelegateOptions(t *testing.T) {
	in, out, end := io.Discard, strings.NewReader(""), func() error { return nil }
	for what, test := range map[string]struct {
		o  DelegateOptions
		ok bool
	}{
		"a command":               {DelegateOptions{Command: []string{"x"}}, true},
		"a command with all":      {DelegateOptions{Command: []string{"x"}, Env: []string{}, Capabilities: []string{"c"}, ShutdownGrace: time.Millisecond}, true},
		"a connection":            {DelegateOptions{Input: in, Output: out, Close: end, Capabilities: []string{"c"}}, true},
		"the longest grace":       {DelegateOptions{Command: []string{"x"}, ShutdownGrace: maxShutdownGrace}, true},
		"nothing":                 {DelegateOptions{}, false},
		"both":                    {DelegateOptions{Command: []string{"x"}, Input: in, Output: out, Close: end}, false},
		"no close":                {DelegateOptions{Input: in, Output: out}, false},
		"no input":                {DelegateOptions{Output: out, Close: end}, false},
		"an empty command":        {DelegateOptions{Command: []string{""}}, false},
		"a connection with grace": {DelegateOptions{Input: in, Output: out, Close: end, ShutdownGrace: time.Second}, false},
		"a connection with env":   {DelegateOptions{Input: in, Output: out, Close: end, Env: []string{}}, false},
		"too short a grace":       {DelegateOptions{Command: []string{"x"}, ShutdownGrace: time.Microsecond}, false},
		"a negative grace":        {DelegateOptions{Command: []string{"x"}, ShutdownGrace: -1}, false},
		"too long a grace":        {DelegateOptions{Command: []string{"x"}, ShutdownGrace: maxShutdownGrace + 1}, false},
	} {
		if _, err := Delegate(test.o); (err == nil) != test.ok {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestIdenticalBinding: the peer gets all of it, members that this kit does not know
// included, but for a socket that would lead past the adapter.
func TestIdenticalBinding(t *testing.T) {
	s := serve(t, peerOf(t, "", nil), nil)
	raw := `{"version":4,"root":"/w","session":"s","identity":"i","environment":{"A":"1"},"require_existing_workspace":true,` +
		`"remove_workspace_on_exit":true,"future":{"x":[1,2]},"socket":{"path":"h.sock","nonce":"n0nce"},"capabilities":["caisson.errors.v1","caisson.future.v9"]}`
	if _, err := s.Call(t.Context(), wire.MethodInitialize, json.RawMessage(raw), nil); err != nil {
		t.Fatal(err)
	}
	got, err := s.execute(t.Context(), "binding")
	if err != nil {
		t.Fatal(err)
	}
	var members, want map[string]any
	if err := errors.Join(json.Unmarshal([]byte(got), &members), json.Unmarshal([]byte(raw), &want)); err != nil {
		t.Fatal(err)
	}
	delete(want, "socket")
	want["capabilities"] = []any{"caisson.errors.v1"}
	if a, b := fmt.Sprint(members), fmt.Sprint(want); a != b {
		t.Errorf("the peer got\n%s, want\n%s", a, b)
	}
}

// TestForwarding: calls, errors with all that they say, events.
func TestForwarding(t *testing.T) {
	s := serve(t, peerOf(t, "", nil), nil)
	s.initialize(t)
	if got, err := s.execute(t.Context(), "x"); got != "peer x" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	_, err := s.execute(t.Context(), "fail")
	var e *tool.Error
	if !errors.As(err, &e) || e.Kind != tool.PathOutsideRoot || e.Message != "outside" || e.Hint != "stay in" || e.Path != "../x" {
		t.Errorf("%#v", err)
	}
	if _, err := s.execute(t.Context(), "emit"); err != nil {
		t.Fatal(err)
	}
	select {
	case e := <-s.events:
		if e.Process.ID != "p" {
			t.Errorf("%+v", e)
		}
	case <-time.After(patience):
		t.Error("the event did not come")
	}
	_, err = s.Call(t.Context(), "smell", nil, nil)
	wantKind(t, err, tool.Unsupported, "smell")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = s.execute(ctx, "wait")
	wantKind(t, err, tool.Timeout)
	if err := errors.Join(s.Close(), s.wait(t)); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// TestEnvironmentOfThePeer is the adapter's, or exactly what was named.
func TestEnvironmentOfThePeer(t *testing.T) {
	t.Setenv("OF_THE_ADAPTER", "yes")
	for what, test := range map[string]struct {
		env      []string
		inherits bool
	}{"inherited": {nil, true}, "named": {[]string{"NAMED=1"}, false}, "empty": {[]string{}, false}} {
		s := serve(t, peerOf(t, "", func(o *DelegateOptions) { o.Env = test.env }), nil)
		s.initialize(t)
		got, err := s.execute(t.Context(), "environ")
		if err != nil || strings.Contains(got, "OF_THE_ADAPTER=yes") != test.inherits || strings.Contains(got, "NAMED=1") != (len(test.env) > 0) {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
}

// TestUnfitPeers are refused at initialize, and ended.
func TestUnfitPeers(t *testing.T) {
	reply := func(data string) *DelegateOptions {
		peerIn, input := io.Pipe()
		output, peerOut := io.Pipe()
		go func() {
			_, _ = peerIn.Read(make([]byte, 1<<16))
			_, _ = io.WriteString(peerOut, `{"id":"1","data":`+data+"}\n")
			_, _ = io.Copy(io.Discard, peerIn)
			_ = peerOut.Close()
		}()
		return &DelegateOptions{Input: input, Output: output, Close: func() error { return errors.Join(input.Close(), output.Close()) }}
	}
	for what, test := range map[string]struct {
		o     *DelegateOptions
		kind  tool.Kind
		words string
	}{
		"no such program":    {&DelegateOptions{Command: []string{"/no/such/peer"}}, tool.BackendUnavailable, "/no/such/peer"},
		"ends at once":       {&DelegateOptions{Command: []string{"sh", "-c", "exit 3"}}, tool.BackendUnavailable, "sh"},
		"another version":    {reply(`{"version":3,"root":"/w"}`), tool.ProtocolMismatch, "protocol 3"},
		"no version":         {reply(`{"root":"/w"}`), tool.ProtocolMismatch, "protocol 0"},
		"no root":            {reply(`{"version":4}`), tool.ProtocolMismatch, "root"},
		"a relative root":    {reply(`{"version":4,"root":"w"}`), tool.ProtocolMismatch, `"w"`},
		"no adapter":         {&DelegateOptions{Command: []string{"sh", "-c", "echo usage: something else"}}, tool.BackendUnavailable, "usage: something else"},
		"says what it hears": {&DelegateOptions{Command: []string{"sh", "-c", `read -r line; echo "what is $line"`}}, tool.BackendUnavailable, "[token]"},
		"refuses with it": {&DelegateOptions{Command: []string{"sh", "-c",
			`read -r line; token=${line#*\"token\":\"}; echo "{\"id\":\"1\",\"error\":\"I do not know ${token%%\"*}\"}"; cat >/dev/null`}}, tool.Internal, "[token]"},
		"lacks a capability": {func() *DelegateOptions {
			o := reply(`{"version":4,"root":"/w","capabilities":["a"]}`)
			o.Capabilities = []string{"a", "b"}
			return o
		}(), tool.Unsupported, "lacks the capability b"},
	} {
		t.Run(what, func(t *testing.T) {
			d, err := Delegate(*test.o)
			if err != nil {
				t.Fatal(err)
			}
			s := serve(t, d, nil)
			_, err = s.Initialize(t.Context(), binding())
			wantKind(t, err, test.kind, test.words)
			if said := fmt.Sprintf("%+v", err); regexp.MustCompile("[0-9a-f]{64}").MatchString(said) {
				t.Errorf("it says the token: %s", said)
			}
		})
	}
}

// TestPeerFails: the session ends at once while the host's connection stays open,
// and nothing takes the peer's place.
func TestPeerFails(t *testing.T) {
	s := serve(t, peerOf(t, "", nil), nil)
	s.initialize(t)
	waiting := make(chan error, 1)
	go func() {
		_, err := s.execute(context.Background(), "wait")
		waiting <- err
	}()
	_, err := s.execute(t.Context(), "die")
	wantKind(t, err, tool.OutcomeUnknown)
	wantKind(t, <-waiting, tool.OutcomeUnknown)
	if err := s.wait(t); err == nil || !strings.Contains(err.Error(), "exit status 7") {
		t.Errorf("it ended with %v", err)
	}
}

// TestGrace: a peer that does not exit is killed when its grace is over; one that
// says that it could not end in order is heard.
func TestGrace(t *testing.T) {
	s := serve(t, peerOf(t, "never ends", func(o *DelegateOptions) { o.ShutdownGrace = 100 * time.Millisecond }), nil)
	s.initialize(t)
	_ = s.Close()
	if err := s.wait(t); !errors.Is(err, program.ErrKilled) {
		t.Errorf("it ended with %v", err)
	}
	s = serve(t, peerOf(t, "bad end", nil), nil)
	s.initialize(t)
	_ = s.Close()
	if err := s.wait(t); err == nil || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("it ended with %v", err)
	}
}

// TestConnection: a peer behind a connection that the author made.
func TestConnection(t *testing.T) {
	peerIn, input := io.Pipe()
	output, peerOut := io.Pipe()
	peer := make(chan error, 1)
	go func() { peer <- Run(context.Background(), backend(t, least()), Options{In: peerIn, Out: peerOut}) }()
	closed := 0
	d, err := Delegate(DelegateOptions{Input: input, Output: output, Close: func() error {
		closed++
		return errors.Join(input.Close(), <-peer, output.Close())
	}})
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, d, nil)
	s.initialize(t)
	if got, err := s.execute(t.Context(), "x"); got != `x{"a":1}sstandard` || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	_ = s.Close()
	if err := s.wait(t); err != nil || closed != 1 {
		t.Errorf("it ended with %v, closed %d times", err, closed)
	}
}
