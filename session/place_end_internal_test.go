package session

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/session/store"
)

// stuck is an environment with a call that does not end, such as one in a file system
// that does not answer: only the context ends the wait for it.
type stuck struct{ backends.Environment }

func (stuck) Detach(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// An environment that cannot be let go of keeps nobody waiting for ever who would remove
// it, forget it or open it anew. No request has a deadline of its own.
func TestStuckEnvironment(t *testing.T) {
	for name, end := range map[string]func(context.Context, *place) error{
		"removed":   func(ctx context.Context, p *place) error { return p.removeAnyway(ctx, errors.New("it failed")) },
		"forgotten": func(ctx context.Context, p *place) error { return p.forgetEnvironment(ctx) },
		"dropped": func(ctx context.Context, p *place) error {
			p.state = StateFailed
			return p.s.dropFailed(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := following(t, new(heard))
				l := m.newLive(store.Session{ID: "s-a", Place: store.Place{
					Profile: profile.BuiltIn(profile.Defaults{}), Environment: "caisson-0123456789abcdef0123456789abcdef",
				}}, nil)
				p := l.main
				p.env = stuck{}
				done := make(chan struct{}) // by stop alone
				p.pump = &pump{stop: func() { close(done) }, done: done}
				began := time.Now()
				err := end(t.Context(), p)
				if waited := time.Since(began); waited != keepBudget {
					t.Errorf("after %v: %v", waited, err)
				}
				if p.env != nil || p.pump != nil {
					t.Error("it is still the session's")
				}
			})
		})
	}
}
