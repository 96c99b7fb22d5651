package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/rpc/client"
	"github.com/caisson-dev/caisson/rpc/protocol"
	"github.com/caisson-dev/caisson/session"
)

// TestSignal ends the service in order while a call is being worked on.
func TestSignal(t *testing.T) {
	h := serve(t, nil)
	p := startRaw(t, h)
	p.send(`{"id":3,"method":"tool/call","params":{"sessionId":"s1","name":"block","arguments":{}}}`)
	<-h.entered
	h.stop()
	p.expect(`{"id":3,"error":{"code":-32800,"message":"<string>","data":{"kind":"cancelled","...":""}}}`)
	if code := h.wait(t); code != ExitOK || h.err != nil {
		t.Fatalf("the service ends with %d, %v", code, h.err)
	}
}

// TestShutdownCancels answers what is being worked on before the end.
func TestShutdownCancels(t *testing.T) {
	h := serve(t, nil)
	p := startRaw(t, h)
	p.send(`{"id":3,"method":"tool/call","params":{"sessionId":"s1","name":"block","arguments":{}}}`)
	<-h.entered
	p.send(`{"id":4,"method":"shutdown"}`)
	seen := map[float64]bool{}
	for range 2 {
		seen[p.answer()["id"].(float64)] = true
	}
	if !seen[3] || !seen[4] {
		t.Fatalf("answered are %v", seen)
	}
	p.send(`{"method":"exit"}`)
	if code := h.wait(t); code != ExitOK {
		t.Fatalf("exit code %d", code)
	}
}

// TestNothingWaits answers everything to a client that sends all that it has to
// say at once, whether it closes its end behind that or not.
func TestNothingWaits(t *testing.T) {
	const all = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null}}
{"jsonrpc":"2.0","method":"initialized","params":{}}
{"jsonrpc":"2.0","id":2,"method":"session/open","params":{"sessionId":"s1","workspace":null}}
{"jsonrpc":"2.0","id":3,"method":"shutdown"}
{"jsonrpc":"2.0","method":"exit"}`
	for _, closes := range []bool{false, true} {
		// The fault that this is about is a race; each of the rounds can show it.
		for range 20 {
			// Whoever waits for what does not come does so for too long here.
			h := serve(t, func(s *server) { s.flushing = time.Hour })
			go func() {
				for message := range strings.Lines(all) {
					fmt.Fprintf(h.in, "Content-Length: %d\r\n\r\n%s", len(message), message)
				}
				if closes {
					h.in.Close()
				}
			}()
			p := playerOf(t, h)
			answered := map[float64]bool{}
			for range 3 {
				msg := p.answer()
				answered[msg["id"].(float64)] = true
				if msg["id"] == 3.0 && msg["error"] != nil {
					t.Fatalf("closes %v: shutdown is answered %v", closes, msg)
				}
			}
			if !answered[1] || !answered[2] || !answered[3] {
				t.Fatalf("closes %v: answered are %v", closes, answered)
			}
			if code := h.wait(t); code != ExitOK {
				t.Fatalf("closes %v: exit code %d", closes, code)
			}
		}
	}
}

type failingReader struct{ io.ReadCloser }

func (f failingReader) Read([]byte) (int, error) { return 0, errors.New("the disk is on fire") }

func TestReadError(t *testing.T) {
	in, _ := io.Pipe()
	out, _ := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	code, err := Serve(t.Context(), Options{In: failingReader{in}, Out: out})
	if code != ExitUnclean || err == nil || !strings.Contains(err.Error(), "on fire") {
		t.Fatalf("the service ends with %d, %v", code, err)
	}
}

// TestClientProcessDies ends the service although its streams are open.
func TestClientProcessDies(t *testing.T) {
	parent := exec.Command("cat")
	hold, err := parent.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	h := serve(t, nil)
	c := client.New(h.out, h.in, client.Options{})
	defer c.Close()
	if _, err := c.Initialize(t.Context(), protocol.InitializeParams{ProcessID: &parent.Process.Pid}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.SessionList(t.Context(), protocol.SessionListParams{}); err != nil {
		t.Fatal(err)
	}
	hold.Close() // it ends, and stays a zombie until it is waited for below
	if code := h.wait(t); code != ExitUnclean {
		t.Fatalf("exit code %d", code)
	}
	if err := parent.Wait(); err != nil {
		t.Fatal(err)
	}
}

// TestEndLeavesNothing: the watch on the client ends with the connection, and
// the backends are closed, after the sessions and the artifacts.
func TestEndLeavesNothing(t *testing.T) {
	h := serve(t, func(s *server) {
		open := s.o.Open
		s.o.Open = func(ctx context.Context, o OpenOptions) (Services, error) {
			v, err := open(ctx, o)
			end := v.Close
			v.Close = func() error {
				if _, _, err := v.Sessions.Open(context.Background(), session.OpenRequest{}, nil); tool.KindOf(err) != tool.Cancelled {
					t.Errorf("the backends are closed while a session can be opened: %v", err)
				}
				if _, err := v.Artifacts.List(""); !errors.Is(err, os.ErrClosed) {
					t.Errorf("the backends are closed while artifacts can be read: %v", err)
				}
				return end()
			}
			return v, err
		}
	})
	p := playerOf(t, h)
	p.send(fmt.Sprintf(`{"id":1,"method":"initialize","params":{"processId":%d}}`, os.Getpid()))
	p.expect(`{"id":1,"result":{"...":""}}`)
	p.send(`{"id":2,"method":"shutdown"}`)
	p.expect(`{"id":2,"result":null}`)
	p.send(`{"method":"exit"}`)
	if code := h.wait(t); code != ExitOK || h.err != nil {
		t.Fatalf("the service ends with %d, %v", code, h.err)
	}
	if n := h.closed.Load(); n != 1 {
		t.Errorf("the backend was closed %d times", n)
	}
}

func TestWaitForExit(t *testing.T) {
	if err := waitForExit(t.Context(), 1<<22+1); err != nil {
		t.Fatalf("a process that is not there: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := waitForExit(ctx, os.Getpid()); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("this process has ended, says %v", err)
	}
}

// TestBrokenOutput ends the service when nobody can read it any more.
func TestBrokenOutput(t *testing.T) {
	h := serve(t, nil)
	p := startRaw(t, h)
	h.out.Close()
	p.send(`{"id":3,"method":"session/list"}`)
	if code := h.wait(t); code != ExitUnclean {
		t.Fatalf("exit code %d", code)
	}
}

// TestEvents are sent only to whom wants them.
func TestExecutionEventsAreOptional(t *testing.T) {
	for _, wanted := range []bool{false, true} {
		h := serve(t, nil)
		events := make(chan string, 10)
		c := h.connect(t, protocol.ClientCapabilities{ExecutionEvents: wanted}, client.Options{
			ExecutionStarted:   func(e protocol.ExecutionParams) { events <- "started " + e.Tool },
			ExecutionCompleted: func(e protocol.ExecutionParams) { events <- "completed " + e.Tool },
		})
		open(t, c)
		if _, err := c.ToolCall(t.Context(), call("echo")); err != nil {
			t.Fatal(err)
		}
		// The events come before the answer, so that all are here.
		close(events)
		var got []string
		for e := range events {
			got = append(got, e)
		}
		want := ""
		if wanted {
			want = "started echo, completed echo"
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("wanted %v: got %q", wanted, got)
		}
	}
}

// TestClientLog sends what is worth it to the client and all of it to the log.
func TestClientLog(t *testing.T) {
	var local bytes.Buffer
	var sent []protocol.LogMessageParams
	log := slog.New(&clientLog{
		local: slog.NewTextHandler(&local, &slog.HandlerOptions{Level: slog.LevelWarn}),
		send:  func(p protocol.LogMessageParams) { sent = append(sent, p) },
	})
	log.Debug("unheard")
	log.Info("hello", "a", 1)
	log.With("session", "s1").WithGroup("g").Warn("careful", "b", "x y", slog.Attr{})
	log.Error("bad")
	want := []protocol.LogMessageParams{
		{Type: protocol.MessageInfo, Message: "hello a=1"},
		{Type: protocol.MessageWarning, Message: "careful session=s1 g.b=x y"},
		{Type: protocol.MessageError, Message: "bad"},
	}
	if len(sent) != len(want) {
		t.Fatalf("sent %v", sent)
	}
	for i := range want {
		if sent[i] != want[i] {
			t.Errorf("sent %+v, want %+v", sent[i], want[i])
		}
	}
	if text := local.String(); strings.Contains(text, "hello") || !strings.Contains(text, "session=s1 g.b=\"x y\"") {
		t.Errorf("logged %s", text)
	}
}
