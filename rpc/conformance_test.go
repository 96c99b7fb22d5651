package rpc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	sourcegraph "github.com/sourcegraph/jsonrpc2"

	"github.com/caisson-dev/caisson/rpc/client"
	"github.com/caisson-dev/caisson/rpc/frame"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// The conformance tests speak to the service through another implementation of
// JSON-RPC and the framing than its own: the two must agree.

// childVariable makes the test binary the service, over its standard streams
// and a double.
const childVariable = "CAISSON_RPC_TEST_CHILD"

// runChild serves on the standard streams when this process is to be the child.
func runChild() {
	dir := os.Getenv(childVariable)
	if dir == "" {
		return
	}
	d := newDouble()
	close(d.blocked)
	code, err := Serve(context.Background(), Options{In: os.Stdin, Out: os.Stdout, Version: "child", Open: openDouble(dir, d)})
	if err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
	}
	os.Exit(code)
}

// child is the command that runs the service as a process.
func child(t testing.TB) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childVariable+"="+t.TempDir())
	cmd.Stderr = os.Stderr
	return cmd
}

// duplex makes one stream of two.
type duplex struct {
	io.ReadCloser
	out io.WriteCloser
}

func (d duplex) Write(p []byte) (int, error) { return d.out.Write(p) }

func (d duplex) Close() error { return errors.Join(d.out.Close(), d.ReadCloser.Close()) }

// peer is a client of sourcegraph's, and the notifications that it got.
type peer struct {
	*sourcegraph.Conn
	mu       sync.Mutex
	notified []string
}

func (p *peer) Handle(ctx context.Context, conn *sourcegraph.Conn, r *sourcegraph.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notified = append(p.notified, r.Method)
}

func connectPeer(t *testing.T, stream io.ReadWriteCloser) *peer {
	t.Helper()
	p := &peer{}
	p.Conn = sourcegraph.NewConn(t.Context(), sourcegraph.NewBufferedStream(stream, sourcegraph.VSCodeObjectCodec{}), p)
	return p
}

// converse makes the same conversation whatever the streams are.
func converse(t *testing.T, p *peer) {
	ctx := t.Context()
	var initialized protocol.InitializeResult
	must(t, p.Call(ctx, "initialize", map[string]any{"processId": nil, "capabilities": map[string]any{"executionEvents": true}}, &initialized))
	if initialized.ProtocolVersion != protocol.Version {
		t.Fatalf("initialized %+v", initialized)
	}
	must(t, p.Notify(ctx, "initialized", map[string]any{}))
	workspace := "file://" + filepath.ToSlash(t.TempDir())
	var opened protocol.SessionOpenResult
	must(t, p.Call(ctx, "session/open", map[string]any{"sessionId": "s1", "workspace": workspace}, &opened))
	if opened.Session.Workspace == nil || *opened.Session.Workspace != workspace {
		t.Fatalf("opened %+v", opened)
	}

	// Text that JSON libraries write in different ways.
	text := "<&> \u2028 \x00 \U0001f600 \"\\ " + strings.Repeat("long ", 250_000)
	var result protocol.ToolCallResult
	must(t, p.Call(ctx, "tool/call", map[string]any{"sessionId": "s1", "name": "echo", "arguments": map[string]any{"text": text}}, &result))
	var echoed struct{ Text string }
	must(t, json.Unmarshal(result.StructuredContent, &echoed))
	if echoed.Text != text {
		t.Fatalf("%d bytes of text came back as %d", len(text), len(echoed.Text))
	}

	for method, code := range map[string]protocol.Code{
		"nobody/knows": protocol.CodeMethodNotFound,
		"tool/call":    protocol.CodeInvalidParams,
		"session/get":  protocol.CodeSessionNotFound,
		"initialize":   protocol.CodeInvalidRequest,
	} {
		err := p.Call(ctx, method, map[string]any{"sessionId": "none"}, nil)
		var answer *sourcegraph.Error
		if !errors.As(err, &answer) || answer.Code != int64(code) {
			t.Errorf("%s gives %v, want code %d", method, err, code)
		}
	}

	// Concurrent calls with ids of both kinds.
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			id := sourcegraph.ID{Num: 1000 + uint64(i)}
			if i%2 == 0 {
				id = sourcegraph.ID{Str: "id" + string(rune('a'+i)), IsString: true}
			}
			var r protocol.ToolCallResult
			params := map[string]any{"sessionId": "s1", "name": "echo", "arguments": map[string]any{"n": i}}
			if err := p.Call(ctx, "tool/call", params, &r, sourcegraph.PickID(id)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()

	must(t, p.Call(ctx, "shutdown", nil, nil))
	must(t, p.Notify(ctx, "exit", nil))
	<-p.DisconnectNotify()
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := strings.Join(p.notified, " ")
	for _, want := range []string{"session/changed", "execution/started", "execution/completed"} {
		if !strings.Contains(seen, want) {
			t.Errorf("no %s came", want)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestConformanceInProcess(t *testing.T) {
	h := serve(t, nil)
	converse(t, connectPeer(t, duplex{h.out, h.in}))
	if code := h.wait(t); code != ExitOK || h.err != nil {
		t.Fatalf("the service ends with %d, %v", code, h.err)
	}
}

func TestConformanceOverPipes(t *testing.T) {
	cmd := child(t)
	out, err := cmd.StdoutPipe()
	must(t, err)
	in, err := cmd.StdinPipe()
	must(t, err)
	must(t, cmd.Start())
	converse(t, connectPeer(t, duplex{out, in}))
	must(t, cmd.Wait())
}

// TestCancelWithAnotherLibrary sends a cancellation for an id that the library
// chose to write as a number.
func TestCancelWithAnotherLibrary(t *testing.T) {
	h := serve(t, nil)
	p := connectPeer(t, duplex{h.out, h.in})
	defer p.Close()
	ctx := t.Context()
	must(t, p.Call(ctx, "initialize", map[string]any{"processId": nil}, nil))
	must(t, p.Call(ctx, "session/open", map[string]any{"sessionId": "s1", "workspace": nil}, nil))
	call, err := p.DispatchCall(ctx, "tool/call", map[string]any{"sessionId": "s1", "name": "block", "arguments": map[string]any{}},
		sourcegraph.PickID(sourcegraph.ID{Num: 77}))
	must(t, err)
	<-h.entered
	must(t, p.Notify(ctx, "$/cancelRequest", map[string]any{"id": 77}))
	err = call.Wait(ctx, nil)
	var answer *sourcegraph.Error
	if !errors.As(err, &answer) || answer.Code != int64(protocol.CodeCancelled) {
		t.Fatalf("the call gives %v", err)
	}
}

// TestStart drives the service as a process with our own client.
func TestStart(t *testing.T) {
	c, err := client.Start(child(t), client.Options{})
	must(t, err)
	if c.PID() == 0 {
		t.Error("the process has no id")
	}
	_, err = c.Initialize(t.Context(), protocol.InitializeParams{})
	must(t, err)
	open(t, c)
	_, err = c.ToolCall(t.Context(), call("echo"))
	must(t, err)
	must(t, c.Close())
	must(t, c.Close())
}

// TestExitCodes of the service as a process, whose input cannot be closed from
// within.
func TestExitCodes(t *testing.T) {
	framed := func(body string) string {
		return "Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
	}
	initialize := framed(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null}}`)
	tests := map[string]struct {
		input string
		keep  bool // the input stays open
		code  int
	}{
		"shutdown and exit": {initialize + framed(`{"jsonrpc":"2.0","id":2,"method":"shutdown"}`) + framed(`{"jsonrpc":"2.0","method":"exit"}`), true, ExitOK},
		"exit":              {initialize + framed(`{"jsonrpc":"2.0","method":"exit"}`), true, ExitUnclean},
		"exit at once":      {framed(`{"jsonrpc":"2.0","method":"exit"}`), true, ExitUnclean},
		"hang up":           {initialize, false, ExitUnclean},
		"garbage":           {"garbage\r\n\r\n", true, ExitProtocol},
		"endless header":    {strings.Repeat("x", frame.MaxHeader+1), true, ExitProtocol},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cmd := child(t)
			cmd.Stderr = nil
			in, err := cmd.StdinPipe()
			must(t, err)
			out, err := cmd.StdoutPipe()
			must(t, err)
			must(t, cmd.Start())
			_, err = io.WriteString(in, test.input)
			must(t, err)
			if strings.Contains(test.input, "initialize") && !test.keep {
				_, err := bufio.NewReader(out).ReadString('\n')
				must(t, err)
				in.Close()
			}
			_, err = io.Copy(io.Discard, out)
			must(t, err)
			_ = cmd.Wait() // the exit code says more
			in.Close()
			if got := cmd.ProcessState.ExitCode(); got != test.code {
				t.Errorf("exit code %d, want %d", got, test.code)
			}
		})
	}
}
