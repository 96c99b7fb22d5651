package session

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// A request that does not end, whatever it is told, does not keep a session from being
// closed or deleted for ever: it is said.
func TestQuietIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s live
		s.busy.Add(1)
		began := time.Now()
		err := s.quiet(t.Context())
		if waited := time.Since(began); tool.KindOf(err) != tool.Timeout || waited != quietBudget {
			t.Errorf("after %v: %v", waited, err)
		}
		s.busy.Done()
		if err := s.quiet(t.Context()); err != nil {
			t.Errorf("with nothing running: %v", err)
		}
	})
}
