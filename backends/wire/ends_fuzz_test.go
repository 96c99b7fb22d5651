package wire

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/caisson-dev/caisson/backends/tool"
)

// hostile is a stream whose other end says what a fuzzer made up, and takes
// everything.
type hostile struct {
	io.Reader
	io.Writer
}

func (hostile) Close() error { return nil }

// Whatever a host sends, the worker's end comes to an end of its own.
func FuzzServer(f *testing.F) {
	begin := initFrame("0", testToken, `,"capabilities":["caisson.bulk.v1"]`) + "\n"
	f.Add([]byte(strings.ReplaceAll(`{"id":"1","method":"echo","token":"T","data":{"a":1}}`+"\n", "T", testToken)))
	f.Add([]byte(strings.ReplaceAll(`{"id":"1","method":"echo","token":"T","body":4}`+"\n"+`{"id":"1","method":"body","token":"T","raw":4}`+"\nabcd", "T", testToken)))
	f.Add([]byte(strings.ReplaceAll(`{"id":"1","method":"run_code","token":"T"}`+"\n"+`{"id":"callback-1","method":"callback","token":"T","data":{"id":"callback-1","data":{}}}`+"\n", "T", testToken)))
	f.Add([]byte(`{"id":"1","method":"cancel"}` + "\n" + `{"id":"1"` + "\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		rw := hostile{io.MultiReader(strings.NewReader(begin), iotest.HalfReader(bytes.NewReader(in))), io.Discard}
		_ = Serve(context.Background(), rw, handlers{
			"echo": func(_ context.Context, r *Request) (Response, error) {
				return Response{Data: r.Data, Body: r.Body}, nil
			},
			MethodExecute: func(_ context.Context, r *Request) (Response, error) {
				_, arguments, err := r.Execute()
				return Response{Data: arguments}, err
			},
			MethodRunCode: func(ctx context.Context, r *Request) (Response, error) {
				result, err := r.Callback(ctx, ToolCall{Name: "x"})
				return Response{Data: result}, err
			},
		}, ServerOptions{MaxPending: 8 << 20})
	})
}

// Whatever a worker sends, every call of the host's end comes back.
func FuzzClient(f *testing.F) {
	begin := `{"id":"1","data":{"version":4,"root":"/w","capabilities":["caisson.bulk.v1"]}}` + "\n"
	f.Add([]byte(`{"id":"2","data":{"content":[{"type":"text","text":"x"}]}}`+"\n"), "")
	f.Add([]byte(`{"id":"2","data":1,"body":4}`+"\n"+`{"id":"2","method":"body","raw":4}`+"\nabcd"), "")
	f.Add([]byte(`{"id":"2","data":1,"body":4}`+"\n"+`{"id":"2","method":"body","error":"gone"}`+"\n"), "")
	f.Add([]byte(`{"id":"c","parent_id":"2","method":"tool","data":{"name":"n","arguments":"{}"}}`+"\n"+`{"id":"","method":"process","data":{}}`+"\n"), "")
	f.Add([]byte("motd"), "mark")
	f.Fuzz(func(t *testing.T, in []byte, mark string) {
		peer := newTurns(strings.NewReader(begin), iotest.HalfReader(bytes.NewReader(in)))
		if mark != "" { // the peer is hostile from the beginning
			peer = newTurns(io.MultiReader(strings.NewReader(mark+"\n"), bytes.NewReader(in)))
		}
		c := NewClient(peer, ClientOptions{
			Mark: mark, OnEvent: func(tool.ProcessEvent) {},
			OnCallback: func(context.Context, ToolCall) (tool.Result, error) { return tool.Result{}, nil },
		})
		if _, err := c.Initialize(context.Background(), binding); err == nil {
			reply, err := c.Call(context.Background(), MethodRunCode, nil, nil)
			if err == nil {
				_, _ = ParseResult(reply.Data)
			}
		}
		_ = c.Close()
	})
}

// turns is a peer that says one thing after each of the first writes to it.
type turns struct {
	says   []io.Reader
	wrote  chan struct{}
	spoken bool // says[0] may be read
	closed chan struct{}
	once   sync.Once
}

func newTurns(says ...io.Reader) *turns {
	return &turns{says: says, wrote: make(chan struct{}, len(says)), closed: make(chan struct{})}
}

func (p *turns) Read(b []byte) (int, error) {
	for len(p.says) > 0 {
		if !p.spoken {
			select {
			case <-p.wrote:
				p.spoken = true
			case <-p.closed:
				return 0, io.ErrClosedPipe
			}
		}
		if n, err := p.says[0].Read(b); n > 0 || err != io.EOF {
			return n, err
		}
		p.says, p.spoken = p.says[1:], false
	}
	return 0, io.EOF
}

func (p *turns) Write(b []byte) (int, error) {
	wake(p.wrote)
	return len(b), nil
}

func (p *turns) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func FuzzResult(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"x"},{"type":"image","data":"AA==","mime_type":"image/png"}],"structured_content":{"a":[1]},"meta":null,"is_error":true}`))
	f.Add([]byte(`{"content":null,"is_error":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ParseResult(data)
		if err != nil {
			return
		}
		out, err := appendResult(nil, &r)
		if err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		if _, err := ParseResult(out); err != nil && len(out) <= tool.MaxResultBytes {
			t.Fatalf("%q became %q: %v", data, out, err)
		}
	})
}
