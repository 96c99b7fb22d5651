package remote

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

func retry(message string) error {
	return &tool.Error{Kind: tool.BackendUnavailable, Message: message, Hint: "start it", Retryable: true}
}

func TestOpenCreatesOrAttaches(t *testing.T) {
	for _, provisioned := range []bool{false, true} {
		f := newFar(ourCaps...)
		b := binding()
		b.Provisioned = provisioned
		e := open(t, f, b, Options{Backend: "test", RemoveWorkspaceOnExit: true})
		want := map[bool][2]int{false: {1, 0}, true: {0, 1}}[provisioned]
		if got := [2]int{f.created, f.attached}; got != want {
			t.Errorf("provisioned %v: created and attached %v", provisioned, got)
		}
		info := e.Info()
		if info.Root != "/workspace" || info.Backend != "test" || info.Environment != "caisson-1" || len(info.Capabilities) != len(ourCaps) {
			t.Errorf("%+v", info)
		}
		in := f.inits[0]
		if in.Session != "s1" || in.Identity != "caisson-1" || in.Environment["A"] != "1" || in.RequireExistingWorkspace || !in.RemoveWorkspaceOnExit || in.Socket != nil {
			t.Errorf("%+v", in)
		}
	}
}

func TestFailedOpen(t *testing.T) {
	lost := tool.Errorf(tool.EnvironmentLost, "gone")
	for _, test := range []struct {
		name        string
		far         func(f *far)
		options     Options
		provisioned bool
		kind        tool.Kind
		removed     int
		dialled     int
	}{
		{name: "creation fails", far: func(f *far) { f.create = func() error { return errTest } }, kind: tool.Internal},
		{name: "it is gone", far: func(f *far) { f.attach = func() error { return lost } }, provisioned: true, kind: tool.EnvironmentLost},
		{name: "no stream", far: func(f *far) { f.dial = func(context.Context, int) error { return errTest } }, kind: tool.Internal, removed: 1, dialled: 1},
		{name: "no stream, but it was there before", far: func(f *far) { f.dial = func(context.Context, int) error { return errTest } },
			provisioned: true, kind: tool.Internal, dialled: 1},
		{name: "a capability is missing", options: Options{Required: []string{"caisson.time_travel.v1"}}, kind: tool.Unsupported, removed: 1, dialled: 1},
		{name: "initialize is refused", far: func(f *far) {
			f.on(wire.MethodInitialize, func(context.Context, *wire.Request) (wire.Response, error) {
				return wire.Response{}, tool.Errorf(tool.Denied, "bound to another root")
			})
		}, kind: tool.Denied, removed: 1, dialled: 1},
		{name: "no root", far: func(f *far) { f.says(wire.MethodInitialize, wire.Initialized{Version: wire.Version}, nil) },
			kind: tool.ProtocolMismatch, removed: 1, dialled: 1},
		{name: "a relative root", far: func(f *far) {
			f.says(wire.MethodInitialize, wire.Initialized{Version: wire.Version, Root: "workspace"}, nil)
		}, kind: tool.ProtocolMismatch, removed: 1, dialled: 1},
		{name: "another version", far: func(f *far) { f.says(wire.MethodInitialize, wire.Initialized{Version: 5}, nil) },
			kind: tool.ProtocolMismatch, removed: 1, dialled: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFar(ourCaps...)
			if test.far != nil {
				test.far(f)
			}
			b := binding()
			b.Provisioned = test.provisioned
			_, err := Open(t.Context(), f, b, nil, test.options)
			wantKind(t, err, test.kind)
			f.serves.Wait()
			if f.removed != test.removed || f.dialled != test.dialled {
				t.Errorf("removed %d, dialled %d times", f.removed, f.dialled)
			}
		})
	}
}

// A worker that lives on with the variables as first given is taken as it is.
func TestRotatedVariable(t *testing.T) {
	f := newFar(ourCaps...)
	f.on(wire.MethodInitialize, func(_ context.Context, r *wire.Request) (wire.Response, error) {
		var in wire.Initialize
		if err := r.Decode(&in); err != nil {
			return wire.Response{}, err
		}
		if in.Environment != nil {
			return wire.Response{}, tool.Errorf(tool.Denied, "bound to another environment").WithPath("environment")
		}
		return wire.Response{Data: wire.Initialized{Version: wire.Version, Root: in.Root, Capabilities: ourCaps}}, nil
	})
	b := binding()
	b.Provisioned = true
	open(t, f, b, Options{})
	if f.dialled != 2 {
		t.Errorf("dialled %d times", f.dialled)
	}
}

func TestConnectTriesAgainWithinItsBudget(t *testing.T) {
	t.Run("until it works", func(t *testing.T) {
		f := newFar(ourCaps...)
		f.dial = func(_ context.Context, n int) error {
			if n < 3 {
				return retry("not yet")
			}
			return nil
		}
		open(t, f, binding(), Options{})
		if f.dialled != 3 {
			t.Errorf("dialled %d times", f.dialled)
		}
	})
	t.Run("until the budget is spent", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFar(ourCaps...)
			f.dial = func(context.Context, int) error { return retry("not yet") }
			_, err := Open(t.Context(), f, binding(), nil, Options{ConnectBudget: 200 * time.Millisecond})
			wantKind(t, err, tool.BackendUnavailable)
			var e *tool.Error
			if errors.As(err, &e); !strings.Contains(e.Message, "not yet") || e.Hint != "start it" {
				t.Errorf("%+v", e)
			}
			if f.dialled < 2 {
				t.Error("tried once only")
			}
		})
	})
	t.Run("a handshake that nobody answers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFar(ourCaps...)
			f.on(wire.MethodInitialize, func(ctx context.Context, _ *wire.Request) (wire.Response, error) {
				<-ctx.Done()
				return wire.Response{}, ctx.Err()
			})
			_, err := Open(t.Context(), f, binding(), nil, Options{HandshakeTimeout: 20 * time.Millisecond, ConnectBudget: 200 * time.Millisecond})
			wantKind(t, err, tool.BackendUnavailable)
			f.serves.Wait()
			if f.dialled < 2 {
				t.Error("tried once only")
			}
		})
	})
	t.Run("lost before it could be used", func(t *testing.T) {
		f := newFar(ourCaps...)
		f.on(wire.MethodProcessList, func(ctx context.Context, _ *wire.Request) (wire.Response, error) {
			if f.count(&f.dialled) < 3 {
				f.cut()
				<-ctx.Done()
			}
			return wire.Response{Data: []tool.Process{}}, ctx.Err()
		})
		open(t, f, binding(), Options{})
		if f.dialled != 3 {
			t.Errorf("dialled %d times", f.dialled)
		}
	})
	t.Run("a list that nobody answers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFar(ourCaps...)
			f.on(wire.MethodProcessList, func(context.Context, *wire.Request) (wire.Response, error) {
				time.Sleep(time.Hour)
				return wire.Response{}, nil
			})
			begun := time.Now()
			_, err := Open(t.Context(), f, binding(), nil, Options{})
			wantKind(t, err, tool.BackendUnavailable)
			if took := time.Since(begun); took > DefaultConnectBudget {
				t.Errorf("it took %v", took)
			}
			f.serves.Wait()
		})
	})
	t.Run("until the caller gives up", func(t *testing.T) {
		f := newFar(ourCaps...)
		ctx, cancel := context.WithCancel(t.Context())
		f.dial = func(context.Context, int) error { cancel(); return retry("not yet") }
		_, err := Open(ctx, f, binding(), nil, Options{})
		wantKind(t, err, tool.Cancelled)
		if f.removed != 1 {
			t.Error("what was created is still there")
		}
	})
}

func TestReconnect(t *testing.T) {
	f := newFar(ourCaps...)
	f.says(wire.MethodExecute, tool.Result{}, nil)
	e := open(t, f, binding(), Options{})
	events := e.Events().Subscribe()
	defer events.Close()
	f.cut()
	if change := reach(t, events, backends.StateDisconnected); change.Err == nil {
		t.Error("a loss without a reason")
	}
	hold := make(chan struct{})
	f.mu.Lock()
	f.dial = func(context.Context, int) error { <-hold; return nil }
	f.mu.Unlock()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := e.Call(t.Context(), tool.Request{Name: "bash"}); err != nil {
				t.Error(err)
			}
		})
	}
	reach(t, events, backends.StateConnecting)
	// A caller that gives up does not end the attempt for the others.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := e.Call(ctx, tool.Request{Name: "bash"})
	wantKind(t, err, tool.Cancelled)
	close(hold)
	wg.Wait()
	reach(t, events, backends.StateReady)
	if f.count(&f.dialled) != 2 || f.count(&f.attached) != 1 || f.count(&f.created) != 1 {
		t.Errorf("dialled %d, attached %d, created %d times", f.dialled, f.attached, f.created)
	}
	again := f.inits[1]
	if !again.RequireExistingWorkspace || again.Root != "/workspace" || again.Session != "s1" {
		t.Errorf("the second initialize was %+v", again)
	}
}

// A call is not kept waiting for an engine that is not there; the attempt to
// connect goes on without it.
func TestEngineIsAway(t *testing.T) {
	f := newFar(ourCaps...)
	f.says(wire.MethodExecute, tool.Result{}, nil)
	e := open(t, f, binding(), Options{Patience: time.Millisecond})
	events := e.Events().Subscribe()
	defer events.Close()
	f.mu.Lock()
	f.attach = func() error { return retry("cannot reach the engine") }
	f.mu.Unlock()
	f.cut()
	reach(t, events, backends.StateDisconnected)
	for range 2 {
		_, err := e.Call(t.Context(), tool.Request{Name: "bash"})
		wantKind(t, err, tool.BackendUnavailable)
		if !strings.Contains(err.Error(), "cannot reach the engine") || tool.HintOf(err) != "start it" || !retryable(err) {
			t.Errorf("%+v", err)
		}
	}
	f.mu.Lock()
	f.attach = nil
	f.mu.Unlock()
	reach(t, events, backends.StateReady)
	if _, err := e.Call(t.Context(), tool.Request{Name: "bash"}); err != nil {
		t.Error(err)
	}
}

func TestLostForGood(t *testing.T) {
	f := newFar(ourCaps...)
	e := open(t, f, binding(), Options{})
	events := e.Events().Subscribe()
	defer events.Close()
	f.emit(tool.ProcessEvent{Type: tool.EventStarted, Process: running("p1")})
	nextProcess(t, events)
	f.mu.Lock()
	f.attach = func() error { return tool.Errorf(tool.EnvironmentLost, "removed by somebody") }
	f.mu.Unlock()
	f.cut() // a process is running: it connects at once
	got := nextProcess(t, events)
	if got.Type != tool.EventFailed || got.Process.TerminalCause != tool.CauseLost || !got.Process.OutputClosed {
		t.Errorf("%+v", got)
	}
	reach(t, events, backends.StateFailed)
	for range 2 {
		_, err := e.Call(t.Context(), tool.Request{Name: "bash"})
		wantKind(t, err, tool.EnvironmentLost)
	}
	if n := f.count(&f.attached); n != 1 {
		t.Errorf("attached %d times", n)
	}
}

func TestInFlightIsNeverReplayed(t *testing.T) {
	f := newFar(ourCaps...)
	f.on(wire.MethodExecute, func(ctx context.Context, _ *wire.Request) (wire.Response, error) {
		f.cut()
		<-ctx.Done()
		return wire.Response{}, ctx.Err()
	})
	e := open(t, f, binding(), Options{})
	events := e.Events().Subscribe()
	defer events.Close()
	_, err := e.Call(t.Context(), tool.Request{Name: "bash"})
	wantKind(t, err, tool.OutcomeUnknown)
	// It connects again by itself: another worker ends what a dead one has left.
	reach(t, events, backends.StateDisconnected)
	reach(t, events, backends.StateConnecting)
	reach(t, events, backends.StateReady)
	if n := f.asked(wire.MethodExecute); n != 1 {
		t.Errorf("sent %d times", n)
	}
	f.says(wire.MethodExecute, tool.Result{}, nil)
	if _, err := e.Call(t.Context(), tool.Request{Name: "bash"}); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

func TestDetach(t *testing.T) {
	f := newFar(ourCaps...)
	started := make(chan struct{})
	f.on(wire.MethodExecute, func(ctx context.Context, _ *wire.Request) (wire.Response, error) {
		close(started)
		<-ctx.Done()
		return wire.Response{}, ctx.Err()
	})
	e := open(t, f, binding(), Options{})
	events := e.Events().Subscribe()
	result := make(chan error, 1)
	go func() {
		_, err := e.Call(context.Background(), tool.Request{Name: "bash"})
		result <- err
	}()
	receive(t, started)
	if err := e.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantKind(t, receive(t, result), tool.Cancelled)
	_, err := e.Call(t.Context(), tool.Request{Name: "bash"})
	wantKind(t, err, tool.Cancelled)
	for err = nil; err == nil; {
		_, err = events.Next(t.Context())
	}
	wantKind(t, err, tool.Cancelled)
	if _, err := e.Events().Subscribe().Next(t.Context()); err == nil {
		t.Error("events after the end")
	}
	if f.asked(wire.MethodShutdown) > 0 {
		t.Error("Detach ended the worker")
	}
}

func TestDetachEndsAConnect(t *testing.T) {
	f := newFar(ourCaps...)
	e := open(t, f, binding(), Options{})
	dialling := make(chan struct{})
	f.mu.Lock()
	f.dial = func(ctx context.Context, _ int) error { close(dialling); <-ctx.Done(); return ctx.Err() }
	f.mu.Unlock()
	events := e.Events().Subscribe()
	f.cut()
	reach(t, events, backends.StateDisconnected)
	result := make(chan error, 1)
	go func() { _, err := e.Call(context.Background(), tool.Request{Name: "bash"}); result <- err }()
	receive(t, dialling)
	if err := e.Detach(t.Context()); err != nil {
		t.Error(err)
	}
	wantKind(t, receive(t, result), tool.Cancelled)
}

func TestShutdown(t *testing.T) {
	t.Run("in order", func(t *testing.T) {
		f := newFar(ourCaps...)
		f.on(wire.MethodShutdown, func(_ context.Context, r *wire.Request) (wire.Response, error) {
			if string(r.Data) != `{"remove":false}` {
				t.Errorf("shutdown %s", r.Data)
			}
			return wire.Response{}, nil
		})
		e := open(t, f, binding(), Options{})
		if err := e.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if f.asked(wire.MethodShutdown) != 1 {
			t.Error("the worker was not asked to end")
		}
		if err := e.Shutdown(t.Context()); err == nil {
			_, err = e.Call(t.Context(), tool.Request{Name: "bash"})
			wantKind(t, err, tool.Cancelled)
		}
	})
	t.Run("one that is to forget", func(t *testing.T) {
		for forgets, wants := range map[bool]string{true: `{"remove":false,"forget":true}`, false: `{"remove":false}`} {
			f := newFar(ourCaps...)
			if forgets {
				f = newFar(append([]string{wire.CapForget}, ourCaps...)...)
			}
			f.on(wire.MethodShutdown, func(_ context.Context, r *wire.Request) (wire.Response, error) {
				if string(r.Data) != wants {
					t.Errorf("shutdown %s, want %s", r.Data, wants)
				}
				return wire.Response{}, nil
			})
			if err := open(t, f, binding(), Options{}).Forget(t.Context()); err != nil || f.asked(wire.MethodShutdown) != 1 {
				t.Errorf("asked %d times, %v", f.asked(wire.MethodShutdown), err)
			}
		}
	})
	t.Run("a worker that cannot be asked", func(t *testing.T) {
		f := newFar(wire.CapProcessStart)
		e := open(t, f, binding(), Options{})
		if err := e.Shutdown(t.Context()); err != nil || f.asked(wire.MethodShutdown) > 0 {
			t.Error(err)
		}
	})
	t.Run("a worker that says what did not stop", func(t *testing.T) {
		f := newFar(ourCaps...)
		f.on(wire.MethodShutdown, func(context.Context, *wire.Request) (wire.Response, error) {
			return wire.Response{}, errors.New("process 7 does not stop")
		})
		e := open(t, f, binding(), Options{})
		if err := e.Shutdown(t.Context()); err == nil || !strings.Contains(err.Error(), "process 7") {
			t.Error(err)
		}
	})
	t.Run("a worker that takes too long", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFar(ourCaps...)
			f.on(wire.MethodShutdown, func(ctx context.Context, _ *wire.Request) (wire.Response, error) {
				<-ctx.Done()
				return wire.Response{}, ctx.Err()
			})
			b := binding()
			b.Profile.ShutdownTimeout = 30 * time.Millisecond
			err := open(t, f, b, Options{}).Shutdown(t.Context())
			wantKind(t, err, tool.OutcomeUnknown)
			if !strings.Contains(err.Error(), "may still run") || !strings.Contains(tool.HintOf(err), "nothing was removed") {
				t.Errorf("%v (%s)", err, tool.HintOf(err))
			}
			// One that forgets has removed something by then.
			f.caps = append([]string{wire.CapForget}, ourCaps...)
			err = open(t, f, b, Options{}).Forget(t.Context())
			wantKind(t, err, tool.OutcomeUnknown)
			if said := err.Error() + tool.HintOf(err); !strings.Contains(said, "30.03s") || strings.Contains(said, "may still run") || strings.Contains(said, "nothing was removed") {
				t.Error(said)
			}
		})
	})
	t.Run("a worker that is frozen", func(t *testing.T) {
		f := newFar(ourCaps...)
		thaw := make(chan struct{})
		defer close(thaw)
		f.on(wire.MethodShutdown, func(context.Context, *wire.Request) (wire.Response, error) {
			<-thaw
			return wire.Response{}, nil
		})
		b := binding()
		b.Profile.ShutdownTimeout = 30 * time.Millisecond
		e, err := Open(t.Context(), f, b, nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- e.Shutdown(t.Context()) }()
		wantKind(t, receive(t, ended), tool.OutcomeUnknown)
	})
	t.Run("a worker that is killed meanwhile", func(t *testing.T) {
		for always, wants := range map[bool]int{false: 2, true: shutdownTries} {
			f := newFar(ourCaps...)
			f.on(wire.MethodShutdown, func(context.Context, *wire.Request) (wire.Response, error) {
				if always || f.asked(wire.MethodShutdown) == 1 {
					f.cut()
				}
				return wire.Response{}, nil
			})
			e, err := Open(t.Context(), f, binding(), nil, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Shutdown(t.Context()); (err != nil) != always {
				t.Errorf("always %t: %v", always, err)
			}
			if got := f.asked(wire.MethodShutdown); got != wants {
				t.Errorf("always %t: the workers were asked %d times, want %d", always, got, wants)
			}
		}
	})
	t.Run("a worker that is killed, and takes connections meanwhile", func(t *testing.T) {
		for failing, want := range map[int]bool{shutdownConnects - 1: true, shutdownConnects: false} {
			f := newFar(ourCaps...)
			f.on(wire.MethodShutdown, func(context.Context, *wire.Request) (wire.Response, error) {
				if f.asked(wire.MethodShutdown) == 1 {
					f.cut()
				}
				return wire.Response{}, nil
			})
			f.dial = func(_ context.Context, n int) error {
				if n > 1 && n <= 1+failing {
					return &tool.Error{Kind: tool.BackendUnavailable, Message: "it is dying", Retryable: true}
				}
				return nil
			}
			e, err := Open(t.Context(), f, binding(), nil, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Shutdown(t.Context()); (err == nil) != want {
				t.Errorf("after %d: %v", failing, err)
			}
		}
	})
	t.Run("a worker that cannot be reached", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFar(ourCaps...)
			b := binding()
			b.Profile.ShutdownTimeout = 30 * time.Millisecond
			e := open(t, f, b, Options{})
			events := e.Events().Subscribe()
			defer events.Close()
			f.mu.Lock()
			f.dial = func(ctx context.Context, _ int) error {
				<-ctx.Done()
				return ctx.Err()
			}
			f.mu.Unlock()
			f.cut()
			reach(t, events, backends.StateDisconnected)
			err := e.Shutdown(t.Context())
			wantKind(t, err, tool.Timeout)
			if !strings.Contains(err.Error(), "30ms") || !strings.Contains(tool.HintOf(err), "nothing was removed") {
				t.Errorf("%v (%s)", err, tool.HintOf(err))
			}
		})
	})
	t.Run("an environment that is gone", func(t *testing.T) {
		f := newFar(ourCaps...)
		e := open(t, f, binding(), Options{})
		events := e.Events().Subscribe()
		f.mu.Lock()
		f.attach = func() error { return tool.Errorf(tool.EnvironmentLost, "gone") }
		f.mu.Unlock()
		f.cut()
		reach(t, events, backends.StateDisconnected)
		if err := e.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func running(id string) tool.Process {
	return tool.Process{ID: id, Status: tool.ProcessRunning, ExitCode: -1}
}

// TestHurry: whoever comes to an attempt that pauses after a failure has it try at
// once, and the host is told that it is not to wait either.
func TestHurry(t *testing.T) {
	f := newFar(ourCaps...)
	e := open(t, f, binding(), Options{})
	pausing := make(chan struct{}, 1)
	first := make(chan bool, 1)
	f.dial = func(ctx context.Context, n int) error {
		hurry := backends.Hurry(ctx)
		switch n {
		case 2:
			select {
			case <-hurry:
				first <- true
			default:
				first <- false
			}
			return retry("not yet")
		case 3:
			pausing <- struct{}{}
			select { // as a host that has failed often waits
			case <-hurry:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}
	c := e.conn.Load()
	f.cut()
	<-c.Done()
	called := make(chan error, 2)
	call := func() {
		_, err := e.Processes().List(t.Context())
		called <- err
	}
	go call()
	if !<-first {
		t.Error("the first try is to wait")
	}
	<-pausing
	go call()
	for range 2 {
		if err := <-called; err != nil {
			t.Error(err)
		}
	}
}
