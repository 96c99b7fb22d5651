package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
)

// benchPair is both ends of a Unix socket.
func benchPair(b *testing.B, h Handler) *Client {
	l, err := net.Listen("unix", filepath.Join(b.TempDir(), "s"))
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	host, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	worker, err := l.Accept()
	if err != nil {
		b.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- Serve(context.Background(), worker, h, ServerOptions{}) }()
	c := NewClient(host, ClientOptions{Token: testToken})
	b.Cleanup(func() {
		c.Close()
		<-served
	})
	if _, err := c.Initialize(b.Context(), binding); err != nil {
		b.Fatal(err)
	}
	return c
}

// execute is what a worker does about a call, without the tool.
func execute(content string) func(context.Context, *Request) (Response, error) {
	quoted, _ := json.Marshal(map[string]string{"content": content})
	result := &tool.Result{StructuredContent: quoted}
	return func(_ context.Context, r *Request) (Response, error) {
		_, _, err := r.Execute()
		return Response{Data: result}, err
	}
}

// BenchmarkCall is one small call and its result, both ends together.
func BenchmarkCall(b *testing.B) {
	for name, content := range map[string]string{"100B": strings.Repeat("x", 100), "2KB": strings.Repeat("line of text\n", 160)} {
		b.Run(name, func(b *testing.B) {
			c := benchPair(b, handlers{MethodExecute: execute(content)})
			b.ReportAllocs()
			for b.Loop() {
				x := &Execute{Call: ToolCall{ID: "call-1", Name: "read_file", Arguments: `{"path":"src/main.go"}`}, Actor: "s1", PermissionMode: tool.Standard}
				reply, err := c.Call(b.Context(), MethodExecute, x, nil)
				if err == nil {
					_, err = ParseResult(reply.Data)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCallParallel is many callers at once.
func BenchmarkCallParallel(b *testing.B) {
	c := benchPair(b, handlers{MethodExecute: execute("x")})
	b.SetParallelism(16)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			x := &Execute{Call: ToolCall{Name: "read_file", Arguments: `{"path":"src/main.go"}`}, Actor: "s1"}
			if _, err := c.Call(context.Background(), MethodExecute, x, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkFloor is the same bytes without a protocol.
func BenchmarkFloor(b *testing.B) {
	dir := b.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	host, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer host.Close()
	worker, err := l.Accept()
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		_, _ = io.Copy(struct{ io.Writer }{worker}, struct{ io.Reader }{worker})
		worker.Close()
	}()
	buf := make([]byte, 250)
	for b.Loop() {
		if _, err := host.Write(buf); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(host, buf); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBody is 16 MiB up or down, collected, and as a stream.
func BenchmarkBody(b *testing.B) {
	content := make([]byte, 16<<20)
	h := handlers{
		"down": func(context.Context, *Request) (Response, error) { return Response{Body: content}, nil },
		"up":   func(_ context.Context, r *Request) (Response, error) { return Response{Data: len(r.Body)}, nil },
		"stream": func(context.Context, *Request) (Response, error) {
			return Response{Stream: io.NopCloser(bytes.NewReader(content)), Size: int64(len(content))}, nil
		},
	}
	for name, run := range map[string]func(c *Client) error{
		"down": func(c *Client) error { _, err := c.Call(b.Context(), "down", nil, nil); return err },
		"up":   func(c *Client) error { _, err := c.Call(b.Context(), "up", nil, content); return err },
		"stream": func(c *Client) error {
			_, r, err := c.Stream(b.Context(), "stream", nil)
			if err != nil {
				return err
			}
			defer r.Close()
			_, err = io.Copy(io.Discard, r)
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			c := benchPair(b, h)
			b.SetBytes(int64(len(content)))
			b.ReportAllocs()
			for b.Loop() {
				if err := run(c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkParse is the scan of one large frame.
func BenchmarkParse(b *testing.B) {
	line := []byte(`{"id":"1","data":{"content":"` + strings.Repeat(`a line of text, and \"quotes\"\n`, 30_000) + `"}}`)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		var f rawFrame
		if err := f.parse(line, true); err != nil {
			b.Fatal(err)
		}
	}
}
