package remote

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

var jobCaps = append(slices.Clone(ourCaps), wire.CapJob)

// TestRunJob: a job goes to the far end as it is, within the profile's limits, and
// what it came to is all told.
func TestRunJob(t *testing.T) {
	f := newFar(jobCaps...)
	asked := make(chan tool.JobRequest, 1)
	f.on(wire.MethodJobRun, func(_ context.Context, r *wire.Request) (wire.Response, error) {
		var in wire.Job
		if err := r.Decode(&in); err != nil {
			return wire.Response{}, err
		}
		q, err := in.Request(r.Body)
		if err != nil {
			return wire.Response{}, err
		}
		asked <- q
		done, body := wire.NewJobDone(tool.JobResult{Stdout: []byte("out\xff"), Stderr: []byte("err"), ExitCode: 3, Files: []tool.JobFile{{Path: "p", Size: 2, Token: "t"}}})
		return wire.Response{Data: done, Body: body}, nil
	})
	b := binding()
	b.Profile.Timeout = time.Minute
	e := open(t, f, b, Options{})
	for _, c := range []struct {
		asked, want time.Duration
		actor       tool.Actor
		mode        tool.Mode
	}{
		{0, time.Minute, tool.Actor{}, tool.Standard},
		{time.Hour, time.Minute, tool.Actor{ID: "a", Kind: tool.ActorSubagent}, tool.Standard},
		{time.Second, time.Second, tool.Actor{ID: "c", Kind: tool.ActorSideChat}, tool.ReadOnly},
	} {
		got, err := e.RunJob(t.Context(), backends.JobRequest{
			Argv: []string{"a"}, Timeout: c.asked, Actor: c.actor, Inputs: []backends.JobInput{{Path: "x/../in", Data: make([]byte, 3<<20)}},
		})
		if err != nil || string(got.Stdout) != "out\xff" || string(got.Stderr) != "err" || got.ExitCode != 3 || len(got.Files) != 1 {
			t.Errorf("it came to %+v, %v", got, err)
		}
		q := receive(t, asked)
		if q.Timeout != c.want || q.Mode != c.mode || len(q.Inputs[0].Data) != 3<<20 || q.Inputs[0].Path != "in" {
			t.Errorf("asked for %v %s %q", q.Timeout, q.Mode, q.Inputs[0].Path)
		}
		if want := c.actor.ID; want != "" && q.Actor.ID != want || want == "" && q.Actor.ID != "s1" {
			t.Errorf("as %+v", q.Actor)
		}
	}
}

// TestJobsThatCannotRun: who runs no jobs is not asked, and what is none is not sent.
func TestJobsThatCannotRun(t *testing.T) {
	for _, caps := range [][]string{nil, ourCaps, {wire.CapJob}} {
		f := newFar(caps...)
		e := open(t, f, binding(), Options{})
		_, err := e.RunJob(t.Context(), backends.JobRequest{Argv: []string{"a"}})
		wantKind(t, err, tool.Unsupported)
		if tool.HintOf(err) == "" {
			t.Errorf("no hint: %v", err)
		}
		if len(f.requests) != 0 {
			t.Errorf("it was asked for %q", f.requests)
		}
	}
	f := newFar(jobCaps...)
	e := open(t, f, binding(), Options{})
	_, err := e.RunJob(t.Context(), backends.JobRequest{})
	wantKind(t, err, tool.InvalidParams)
	_, err = e.RunJob(t.Context(), backends.JobRequest{Argv: []string{"a"}, Mode: tool.Unconfined})
	wantKind(t, err, tool.Denied)
	files := `{"path":"p","size":1,"token":"t"}`
	for range maxJobFiles {
		files += `,{"path":"p","size":1,"token":"t"}`
	}
	for _, reply := range []string{`[]`, `{"stdout_bytes":1}`, fmt.Sprintf(`{"files":[%s]}`, files)} {
		f.says(wire.MethodJobRun, object(reply), nil)
		_, err = e.RunJob(t.Context(), backends.JobRequest{Argv: []string{"a"}})
		wantKind(t, err, tool.ProtocolMismatch)
	}
}

// TestJobIsNeverRepeated: of a job whose connection was lost nobody knows whether
// it ran, and it is not run again.
func TestJobIsNeverRepeated(t *testing.T) {
	f := newFar(jobCaps...)
	f.on(wire.MethodJobRun, func(context.Context, *wire.Request) (wire.Response, error) {
		f.mu.Lock()
		conn := f.conns[len(f.conns)-1]
		f.mu.Unlock()
		return wire.Response{}, conn.Close()
	})
	e := open(t, f, binding(), Options{})
	_, err := e.RunJob(t.Context(), backends.JobRequest{Argv: []string{"a"}, Inputs: []backends.JobInput{{Path: "in", Data: make([]byte, 1<<20)}}})
	wantKind(t, err, tool.OutcomeUnknown)
	if n := count(f, wire.MethodJobRun); n != 1 {
		t.Errorf("it was asked for %d times", n)
	}
}

// count is how often a method was asked for.
func count(f *far, method string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.requests {
		if m == method {
			n++
		}
	}
	return n
}

// TestJobWithoutAnEnd: a far end that does not keep a job's time is told to end
// it, and so is one whose caller has gone.
func TestJobWithoutAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // or a busy machine has not asked by then
		f := newFar(jobCaps...)
		began := make(chan struct{}, 2)
		f.on(wire.MethodJobRun, func(ctx context.Context, _ *wire.Request) (wire.Response, error) {
			began <- struct{}{}
			<-ctx.Done()
			return wire.Response{}, ctx.Err()
		})
		e := open(t, f, binding(), Options{})
		e.o.jobGrace = time.Millisecond
		_, err := e.RunJob(t.Context(), backends.JobRequest{Argv: []string{"a"}, Timeout: time.Millisecond})
		wantKind(t, err, tool.Timeout)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-began
			<-began
			cancel()
		}()
		_, err = e.RunJob(ctx, backends.JobRequest{Argv: []string{"a"}})
		wantKind(t, err, tool.Cancelled)
	})
}
