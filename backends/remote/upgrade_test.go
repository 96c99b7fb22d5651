//go:build linux

package remote

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
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

// listen serves f on a socket called name in dir, as a worker does whose nonce
// is the given one.
func listen(t *testing.T, f *far, dir, name, nonce string) {
	l, err := net.Listen("unix", filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if err := wire.AnswerSocket(context.Background(), conn, nonce); err != nil {
				conn.Close()
				continue
			}
			f.serve(conn)
		}
	})
	t.Cleanup(func() {
		l.Close()
		accepting.Wait()
	})
}

func TestSharedSocket(t *testing.T) {
	for _, test := range []struct {
		name    string
		prepare func(t *testing.T, f *far, dir string)
		offer   string // the path in the offer
		used    bool
		because string // a part of the log otherwise
	}{
		{name: "works", offer: "s.sock", used: true, prepare: func(t *testing.T, f *far, dir string) { listen(t, f, dir, "s.sock", "n0nce") }},
		{name: "another nonce", offer: "s.sock", because: "not the worker", prepare: func(t *testing.T, f *far, dir string) { listen(t, f, dir, "s.sock", "guess") }},
		{name: "nothing there", offer: "s.sock", because: "no such file"},
		{name: "a file", offer: "s.sock", because: "is not a socket", prepare: func(t *testing.T, _ *far, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "s.sock"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "a link to the socket", offer: "s.sock", because: "is not a socket", prepare: func(t *testing.T, f *far, dir string) {
			elsewhere := t.TempDir()
			listen(t, f, elsewhere, "real.sock", "n0nce")
			if err := os.Symlink(filepath.Join(elsewhere, "real.sock"), filepath.Join(dir, "s.sock")); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "a path out of the directory", offer: "../s.sock", because: "not that of a file"},
		{name: "an absolute path", offer: "/tmp/s.sock", because: "not that of a file"},
		{name: "no name", offer: ".", because: "not that of a file"},
		{name: "nobody listens", offer: "s.sock", because: "refused", prepare: func(t *testing.T, _ *far, dir string) {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "s.sock")})
			if err != nil {
				t.Fatal(err)
			}
			l.SetUnlinkOnClose(false)
			l.Close()
		}},
		{name: "a listener that says nothing sensible", offer: "s.sock", because: "staying on the baseline", prepare: func(t *testing.T, _ *far, dir string) {
			l, err := net.Listen("unix", filepath.Join(dir, "s.sock"))
			if err != nil {
				t.Fatal(err)
			}
			var accepting sync.WaitGroup
			accepting.Go(func() {
				if conn, err := l.Accept(); err == nil {
					_, _ = io.WriteString(conn, strings.Repeat("x", 100))
					conn.Close()
				}
			})
			t.Cleanup(func() { l.Close(); accepting.Wait() })
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := shortDir(t)
			f := newFar(append(ourCaps, wire.CapSocket)...)
			f.shared, f.offer = dir, &wire.SocketOffer{Path: test.offer, Nonce: "n0nce"}
			f.says(wire.MethodExecute, tool.Result{}, nil)
			if test.prepare != nil {
				test.prepare(t, f, dir)
			}
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
			if !inits[0].OfferSocket {
				t.Error("the worker was not asked for an offer")
			}
			if test.used {
				if _, isSocket := conns[1].(*net.UnixConn); !isSocket || inits[1].OfferSocket {
					t.Errorf("%T, %+v", conns[1], inits[1])
				}
				if _, err := conns[0].Read(make([]byte, 1)); err == nil {
					t.Error("the baseline stream is still open")
				}
				return
			}
			if !strings.Contains(log.String(), test.because) || strings.Contains(log.String(), "level=WARN") {
				t.Errorf("the log does not say %q:\n%s", test.because, &log)
			}
		})
	}
}

func TestSharedSocketIsLost(t *testing.T) {
	dir := shortDir(t)
	f := newFar(append(ourCaps, wire.CapSocket)...)
	f.shared, f.offer = dir, &wire.SocketOffer{Path: "s.sock", Nonce: "n0nce"}
	f.says(wire.MethodExecute, tool.Result{}, nil)
	listen(t, f, dir, "s.sock", "n0nce")
	e := open(t, f, binding(), Options{})
	events := e.Events().Subscribe()
	f.cut()
	reach(t, events, backends.StateDisconnected)
	if _, err := e.Call(t.Context(), tool.Request{Name: "bash"}); err != nil {
		t.Fatal(err)
	}
	if n := f.count(&f.dialled); n != 2 {
		t.Errorf("dialled %d times", n)
	}
}
