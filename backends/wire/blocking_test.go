package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
)

// socketPair is both ends of a Unix socket.
func socketPair(t *testing.T) (host, worker *net.UnixConn) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if host, err = net.DialUnix("unix", nil, l.Addr().(*net.UnixAddr)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close() })
	if worker, err = l.AcceptUnix(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { worker.Close() })
	return host, worker
}

// TestBlocking ends reads and writes that are blocked, at either end.
func TestBlocking(t *testing.T) {
	for name, block := range map[string]func(io.ReadWriter) error{
		"read": func(rw io.ReadWriter) error { _, err := rw.Read(make([]byte, 1)); return err },
		"write": func(rw io.ReadWriter) error {
			for piece := make([]byte, 64<<10); ; {
				if _, err := rw.Write(piece); err != nil {
					return err
				}
			}
		},
	} {
		for _, far := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				host, conn := socketPair(t)
				rw, err := Blocking(conn)
				if err != nil {
					t.Fatal(err)
				}
				begun, ended := make(chan struct{}), make(chan error, 1)
				go func() {
					close(begun)
					ended <- block(rw)
				}()
				receive(t, begun)
				if far {
					err = host.Close()
				} else {
					err = rw.Close()
				}
				if err != nil {
					t.Error(err)
				}
				if receive(t, ended) == nil {
					t.Error("it ended without an error")
				}
				if err := rw.Close(); far && err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestBlockingCloseWrite ends one direction alone.
func TestBlockingCloseWrite(t *testing.T) {
	host, conn := socketPair(t)
	rw, err := Blocking(conn)
	if err != nil {
		t.Fatal(err)
	}
	defer rw.Close()
	if err := rw.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if n, err := host.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the other end read %d bytes, %v", n, err)
	}
	if _, err := host.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if n, err := rw.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("read %d bytes, %v", n, err)
	}
}

// TestBlockingEnds is a whole conversation over such sockets at both ends.
func TestBlockingEnds(t *testing.T) {
	host, worker := socketPair(t)
	far, err := Blocking(worker)
	if err != nil {
		t.Fatal(err)
	}
	near, err := Blocking(host)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	waits := make(chan struct{})
	go func() {
		served <- Serve(context.Background(), far, handlers{
			MethodExecute: func(context.Context, *Request) (Response, error) { return Response{Data: &tool.Result{}}, nil },
			MethodProcessRead: func(ctx context.Context, _ *Request) (Response, error) {
				close(waits)
				<-ctx.Done()
				return Response{}, ctx.Err()
			},
		}, ServerOptions{})
	}()
	c := NewClient(near, ClientOptions{Token: testToken, Blocks: Blocks(near)})
	if _, err := c.Initialize(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error, 1)
	go func() { _, err := c.Call(t.Context(), MethodProcessRead, struct{}{}, nil); waiting <- err }()
	receive(t, waits)
	for range 100 {
		x := &Execute{Call: ToolCall{Name: "read_file", Arguments: "{}"}, Actor: "s1"}
		if _, err := c.Call(t.Context(), MethodExecute, x, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	wantKind(t, receive(t, waiting), tool.OutcomeUnknown)
	if err := receive(t, served); err != nil {
		t.Error(err)
	}
}
