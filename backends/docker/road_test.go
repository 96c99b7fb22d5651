package docker

import (
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// road stands between the backend and this machine's daemon, as a network does.
type road struct {
	t    *testing.T
	host string // as a docker_host

	serving sync.WaitGroup
	mu      sync.Mutex
	l       net.Listener
	conns   map[net.Conn]bool
}

func newRoad(t *testing.T) *road {
	t.Helper()
	r := &road{t: t, host: "unix://" + filepath.Join(privateDir(t), "relay.sock"), conns: map[net.Conn]bool{}}
	r.mend()
	t.Cleanup(r.cut)
	return r
}

// mend lets connections be made.
func (r *road) mend() {
	r.t.Helper()
	l, err := net.Listen("unix", strings.TrimPrefix(r.host, "unix://"))
	if err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	r.l = l
	r.mu.Unlock()
	r.serving.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("unix", strings.TrimPrefix(defaultHost(), "unix://"))
			if err != nil {
				near.Close()
				continue
			}
			r.join(near, far)
		}
	})
}

// join copies both ways, passing on which side has ended.
func (r *road) join(near, far net.Conn) {
	r.mu.Lock()
	r.conns[near], r.conns[far] = true, true
	r.mu.Unlock()
	for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
		r.serving.Go(func() {
			_, _ = io.Copy(pair[0], pair[1]) // its end, in whatever way, is passed on
			_ = pair[0].(*net.UnixConn).CloseWrite()
		})
	}
}

// cut ends all connections, and none can be made any more.
func (r *road) cut() {
	r.mu.Lock()
	r.l.Close()
	for c := range r.conns {
		c.Close()
	}
	clear(r.conns)
	r.mu.Unlock()
	r.serving.Wait()
}
