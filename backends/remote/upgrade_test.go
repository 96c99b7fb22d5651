//go:build linux

package remote

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// shortDir is a directory for a socket, whose path has room for 108 bytes only.
func shortDir(t *testing.T) string {
	dir, err := os.MkdirTemp("", "caisson") //nolint:usetesting // t.TempDir is too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// visitor connects to the host's socket, and hangs up with the test at the latest.
func visitor(t *testing.T, path string) net.Conn {
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Error(err)
		return nil
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// comeOver connects as a worker does, with what it takes for the nonce.
func comeOver(t *testing.T, f *far, path, nonce string) bool {
	conn := visitor(t, path)
	if conn == nil {
		return false
	}
	f.serves.Go(func() {
		if err := wire.AnswerSocket(context.Background(), conn, nonce); err != nil {
			conn.Close()
			return
		}
		f.serve(conn)
	})
	return true
}

func TestSharedSocket(t *testing.T) {
	for _, test := range []struct {
		name    string
		caps    []string // beside ours
		connect func(t *testing.T, f *far, path, nonce string) bool
		used    bool
		because string // a part of the log otherwise
	}{
		{name: "works", caps: []string{wire.CapSocket}, connect: comeOver, used: true},
		{
			name: "others come first and say nothing", caps: []string{wire.CapSocket}, used: true,
			connect: func(t *testing.T, f *far, path, nonce string) bool {
				for range 3 * maxWaiting {
					visitor(t, path)
				}
				return comeOver(t, f, path, nonce)
			},
		},
		{
			name: "another guesses", caps: []string{wire.CapSocket}, used: true,
			connect: func(t *testing.T, f *far, path, nonce string) bool {
				return comeOver(t, f, path, "guess") && comeOver(t, f, path, nonce)
			},
		},
		{
			name: "only others come", caps: []string{wire.CapSocket}, because: "the worker did not come",
			connect: func(t *testing.T, f *far, path, _ string) bool { return comeOver(t, f, path, "guess") },
		},
		{
			name: "the worker cannot connect", caps: []string{wire.CapSocket},
			connect: func(*testing.T, *far, string, string) bool { return false },
		},
		{name: "a worker that knows nothing of it", connect: comeOver},
		{
			name: "it leads to another workspace", caps: []string{wire.CapSocket}, because: "another workspace",
			connect: func(t *testing.T, f *far, path, nonce string) bool {
				f.on(wire.MethodInitialize, func(context.Context, *wire.Request) (wire.Response, error) {
					return wire.Response{Data: wire.Initialized{Version: wire.Version, Root: "/elsewhere", Capabilities: ourCaps}}, nil
				})
				return comeOver(t, f, path, nonce)
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := shortDir(t)
			f := newFar(append(test.caps, ourCaps...)...)
			f.shared = dir
			f.connect = func(path, nonce string) bool {
				if info, err := os.Stat(path); err != nil || info.Mode() != fs.ModeSocket|0o666 {
					t.Errorf("%v, %v", info, err)
				}
				return test.connect(t, f, path, nonce)
			}
			f.says(wire.MethodExecute, tool.Result{}, nil)
			var log bytes.Buffer
			e := open(t, f, binding(), Options{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
			if _, err := e.Call(t.Context(), tool.Request{Name: "bash"}); err != nil {
				t.Fatal(err)
			}
			f.mu.Lock()
			inits, conns := f.inits, f.conns
			f.mu.Unlock()
			if used := strings.Contains(log.String(), "shared_socket=true"); used != test.used {
				t.Errorf("used: %v; log:\n%s", used, &log)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left in the directory: %v, %v", left, err)
			}
			if !strings.Contains(log.String(), test.because) || strings.Contains(log.String(), "level=WARN") {
				t.Errorf("the log does not say %q:\n%s", test.because, &log)
			}
			if !test.used {
				return
			}
			if _, isSocket := conns[1].(*net.UnixConn); !isSocket || inits[1].Socket != nil {
				t.Errorf("%T, %+v", conns[1], inits[1])
			}
			if _, err := conns[0].Read(make([]byte, 1)); err == nil {
				t.Error("the baseline stream is still open")
			}
		})
	}
}

// What has taken the socket's place by then is not opened to anybody.
func TestOpenToAll(t *testing.T) {
	dir := shortDir(t)
	file, link := filepath.Join(dir, "key"), filepath.Join(dir, "s.sock")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Symlink(file, link)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, link, filepath.Join(dir, "gone")} {
		if err := openToAll(path); err == nil {
			t.Errorf("%s was opened", path)
		}
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// A directory that is gone, or whose path is too long, is only a pity.
func TestNoPlaceForSocket(t *testing.T) {
	for _, dir := range []string{
		filepath.Join(t.TempDir(), "gone"),
		filepath.Join(t.TempDir(), strings.Repeat("d", 120)),
	} {
		f := newFar(append(ourCaps, wire.CapSocket)...)
		f.shared = dir
		f.says(wire.MethodExecute, tool.Result{}, nil)
		e := open(t, f, binding(), Options{})
		if _, err := e.Call(t.Context(), tool.Request{Name: "bash"}); err != nil {
			t.Error(err)
		}
		if f.inits[0].Socket != nil {
			t.Errorf("the worker was told of %+v", f.inits[0].Socket)
		}
	}
}

func TestSharedSocketIsLost(t *testing.T) {
	f := newFar(append(ourCaps, wire.CapSocket)...)
	f.shared = shortDir(t)
	f.connect = func(path, nonce string) bool { return comeOver(t, f, path, nonce) }
	f.says(wire.MethodExecute, tool.Result{}, nil)
	e := open(t, f, binding(), Options{})
	events := e.Events().Subscribe()
	f.cut()
	reach(t, events, backends.StateDisconnected)
	if _, err := e.Call(t.Context(), tool.Request{Name: "bash"}); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, isSocket := f.conns[len(f.conns)-1].(*net.UnixConn); f.dialled != 2 || !isSocket {
		t.Errorf("dialled %d times, and then %T", f.dialled, f.conns[len(f.conns)-1])
	}
}
