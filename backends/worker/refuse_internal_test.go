package worker

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/endpoint"
)

// Why it is refused is told to whoever cannot be a command, and to nobody else. Nobody
// has to give up for what is over soon.
func TestRefusalsTellWhy(t *testing.T) {
	for why, want := range map[error]struct {
		kind  tool.Kind
		told  bool
		again bool
	}{
		fmt.Errorf("process 7 belongs to user 8: %w", endpoint.ErrForeign): {tool.Denied, true, false},
		fmt.Errorf("%w: process 7 is confined", endpoint.ErrCommand):       {tool.Denied, false, false},
		errors.New("process 7 has ended"):                                  {tool.BackendUnavailable, true, true},
		fmt.Errorf("ancestors of process 7: %w", syscall.EMFILE):           {tool.BackendUnavailable, true, true},
	} {
		e, ok := errors.AsType[*tool.Error](errRefused(why))
		if !ok || e.Kind != want.kind || e.Retryable != want.again || !strings.Contains(e.Hint, "worker.log") {
			t.Errorf("%v: %+v", why, e)
			continue
		}
		if all := e.Error() + e.Hint; strings.Contains(all, "process 7") != want.told {
			t.Errorf("%v is told as %s", why, all)
		}
	}
}

// Beyond those that are told, nobody is waited for.
func TestRefusalsAreBounded(t *testing.T) {
	s := newServer(t.Context(), Options{}.withDefaults())
	defer s.end(nil)
	for range maxRefusals {
		s.refusals <- struct{}{}
	}
	peer, conn := socketPair(t)
	s.refuse(conn, errTooMany())
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("its end is not closed: %v", err)
	}
	if said, err := io.ReadAll(peer); len(said) > 0 || err != nil {
		t.Errorf("it is told %q, %v", said, err)
	}
}

// Of who may be a command no more is held than a small request; a host's own, however
// long, is answered.
func TestRefusalsHoldLittle(t *testing.T) {
	long := `{"id":"7","method":"initialize","data":{"version":4,"environment":{"X":"` + strings.Repeat("x", 1<<20) + `"}}}` + "\n"
	for name, test := range map[string]struct {
		why   error
		asks  string
		tells bool
	}{
		"a command":         {errRefused(fmt.Errorf("%w: process 7 is confined", endpoint.ErrCommand)), long, false},
		"unknown":           {errRefused(syscall.EMFILE), long, false},
		"one too many":      {errTooMany(), long, false},
		"a foreign host":    {errRefused(fmt.Errorf("process 7 belongs to user 8: %w", endpoint.ErrForeign)), long, true},
		"a command's short": {errRefused(endpoint.ErrCommand), `{"id":"7","method":"initialize"}` + "\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t.Context(), Options{}.withDefaults())
			defer s.end(nil)
			peer, conn := socketPair(t)
			asked := make(chan struct{})
			go func() {
				defer close(asked)
				_, _ = io.WriteString(peer, test.asks) // it may be hung up on meanwhile
			}()
			s.refuse(conn, test.why)
			told, _ := io.ReadAll(peer) // a reset is an end too
			<-asked
			if test.tells != strings.HasPrefix(string(told), `{"id":"7","error":`) || !test.tells && len(told) > 0 {
				t.Errorf("it is told %q", told)
			}
		})
	}
}

// socketPair is a connection through a socket, and its worker's end.
func socketPair(t *testing.T) (peer net.Conn, conn *net.UnixConn) {
	t.Helper()
	t.Chdir(t.TempDir()) // whose whole path may be too long for a socket
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: "s"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if peer, err = net.Dial("unix", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { peer.Close() })
	if conn, err = l.AcceptUnix(); err != nil {
		t.Fatal(err)
	}
	return peer, conn
}
