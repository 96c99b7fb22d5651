package remote

import (
	"context"
	"errors"
	"testing"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// What somebody has stopped under a process, or under a call, stays stopped, and what ran
// there is told to be lost. The next call starts it.
func TestStoppedIsStartedByACall(t *testing.T) {
	for _, under := range []string{"a process", "a call"} {
		t.Run("under "+under, func(t *testing.T) {
			f := newFar(ourCaps...)
			f.on(wire.MethodExecute, func(ctx context.Context, _ *wire.Request) (wire.Response, error) {
				f.stop()
				<-ctx.Done()
				return wire.Response{}, ctx.Err()
			})
			e := open(t, f, binding(), Options{})
			events := e.Events().Subscribe()
			defer events.Close()
			if under == "a call" {
				_, err := e.Call(t.Context(), tool.Request{Name: "bash"})
				wantKind(t, err, tool.OutcomeUnknown)
				reach(t, events, backends.StateConnecting)
			} else {
				f.emit(tool.ProcessEvent{Type: tool.EventStarted, Process: running("p1")})
				nextProcess(t, events)
				f.stop()
				got := nextProcess(t, events)
				if got.Type != tool.EventFailed || got.Process.TerminalCause != tool.CauseLost {
					t.Errorf("%+v", got)
				}
				f.list(got.Process)
			}
			if change := reach(t, events, backends.StateDisconnected); !errors.Is(change.Err, backends.ErrStopped) {
				t.Errorf("disconnected for %v", change.Err)
			}
			if n := f.count(&f.started); n != 0 {
				t.Errorf("started %d times for nobody", n)
			}
			f.says(wire.MethodExecute, tool.Result{}, nil)
			if _, err := e.Call(t.Context(), tool.Request{Name: "bash"}); err != nil {
				t.Error(err)
			}
			if n := f.count(&f.started); n != 1 {
				t.Errorf("started %d times for a call", n)
			}
			if under == "a process" {
				// Its end is not told again: what comes next is of another one.
				f.emit(tool.ProcessEvent{Type: tool.EventStarted, Process: running("p2")})
				if got := nextProcess(t, events); got.Process.ID != "p2" {
					t.Errorf("told again: %+v", got)
				}
			}
		})
	}
}

// A call that joins a connect for nobody has what was stopped started.
func TestStoppedIsStartedForWhoJoins(t *testing.T) {
	f := newFar(ourCaps...)
	e := open(t, f, binding(), Options{})
	events := e.Events().Subscribe()
	defer events.Close()
	joined := make(chan error, 1)
	f.mu.Lock()
	f.found = func() {
		_, err := e.reconnect(true) // as a call does
		joined <- err
	}
	f.mu.Unlock()
	f.stop()
	reach(t, events, backends.StateDisconnected)
	a, err := e.reconnect(false)
	if err != nil {
		t.Fatal(err)
	}
	if err := receive(t, joined); err != nil {
		t.Error(err)
	}
	receive(t, a.done)
	if a.err != nil {
		t.Error(a.err)
	}
	if n := f.count(&f.started); n != 1 {
		t.Errorf("started %d times", n)
	}
}

// What is stopped is not started to be ended.
func TestStoppedIsNotStartedToBeEnded(t *testing.T) {
	for name, test := range map[string]struct {
		during bool // it is stopped while the worker ends
		end    func(e *Environment, ctx context.Context) error
		told   bool
	}{
		"before the shutdown":      {false, (*Environment).Shutdown, false},
		"before it is forgotten":   {false, (*Environment).Forget, true},
		"while the worker ends":    {true, (*Environment).Shutdown, false},
		"while the worker forgets": {true, (*Environment).Forget, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFar(append(ourCaps, wire.CapForget)...)
			f.on(wire.MethodShutdown, func(ctx context.Context, _ *wire.Request) (wire.Response, error) {
				f.stop()
				<-ctx.Done()
				return wire.Response{}, ctx.Err()
			})
			e := open(t, f, binding(), Options{})
			events := e.Events().Subscribe()
			defer events.Close()
			if !test.during {
				f.stop()
				reach(t, events, backends.StateDisconnected)
			}
			if err := test.end(e, t.Context()); errors.Is(err, backends.ErrStopped) != test.told || !test.told && err != nil {
				t.Errorf("got %v", err)
			}
			if n := f.count(&f.started); n != 0 {
				t.Errorf("started %d times", n)
			}
		})
	}
}
