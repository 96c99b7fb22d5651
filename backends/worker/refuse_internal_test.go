package worker

import (
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/endpoint"
)

// Why it is refused is told to whoever cannot be a command, and to nobody else.
func TestRefusalsTellWhy(t *testing.T) {
	for why, told := range map[error]bool{
		errors.New("process 7 belongs to user 8"):                    true,
		fmt.Errorf("%w: process 7 is confined", endpoint.ErrCommand): false,
	} {
		e, ok := errors.AsType[*tool.Error](errRefused(why))
		if !ok || e.Kind != tool.Denied || e.Retryable || !strings.Contains(e.Hint, "worker.log") {
			t.Errorf("%+v", e)
		}
		if all := e.Error() + e.Hint; strings.Contains(all, "process 7") != told {
			t.Errorf("%v is told as %s", why, all)
		}
	}
}

// Beyond those that are told, nobody is waited for.
func TestRefusalsAreBounded(t *testing.T) {
	s := newServer(t.Context(), Options{}.withDefaults())
	defer s.end(nil)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: filepath.Join(t.TempDir(), "s")})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range maxRefusals {
		s.refusals <- struct{}{}
	}
	peer, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	conn, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	s.refuse(conn, errTooMany())
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("its end is not closed: %v", err)
	}
	if said, err := io.ReadAll(peer); len(said) > 0 || err != nil {
		t.Errorf("it is told %q, %v", said, err)
	}
}
