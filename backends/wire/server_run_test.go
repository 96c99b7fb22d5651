package wire

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
)

// executeFrame is a call of a tool.
func executeFrame(id, tool string) string {
	return fmt.Sprintf(`{"id":%q,"method":"execute","token":%q,"data":{"call":{"name":%q,"arguments":"{}"},"actor":"s1"}}`, id, testToken, tool)
}

// TestSlowBehindQuick has a call held up that was over soon until then, so that the
// goroutine that reads runs it: what comes behind it is handled all the same, and its
// own answer comes when it is done.
func TestSlowBehindQuick(t *testing.T) {
	var slow atomic.Bool
	begun, release := make(chan struct{}), make(chan struct{})
	var seen *Server
	s, _ := serve(t, handlers{MethodExecute: func(ctx context.Context, r *Request) (Response, error) {
		seen = r.server
		if e, _, err := r.Execute(); err != nil || e.Call.Name != "work" || !slow.Load() {
			return Response{}, err
		}
		close(begun)
		select {
		case <-release:
			return Response{}, nil
		case <-ctx.Done():
			return Response{}, ctx.Err()
		}
	}}, ServerOptions{})
	s.say(initFrame("init", testToken, ""))
	s.hears(`"id":"init","data"`)
	for i := range 1000 { // a machine that is busy may not be quick for a while
		s.say(executeFrame(fmt.Sprint(i), "work"))
		s.hears(`"data":null`)
		if seen.paces.Of(MethodExecute, "work").Soon() {
			break
		}
	}
	if !seen.paces.Of(MethodExecute, "work").Soon() {
		t.Fatal("a call that does nothing is never over soon")
	}
	slow.Store(true)
	s.say(executeFrame("slow", "work"))
	receive(t, begun)
	s.say(executeFrame("other", "other"))
	s.hears(`"id":"other","data":null`)
	s.say(`{"id":"slow","method":"cancel","token":"` + testToken + `"}`)
	s.hears(`"id":"slow","error"`)
	if seen.paces.Of(MethodExecute, "work").Soon() {
		t.Error("what took so long counts as soon over")
	}
	close(release)
}

// TestRunsHere is which requests the goroutine that reads runs itself.
func TestRunsHere(t *testing.T) {
	data := []byte(`{"call":{"name":"read_file","arguments":"{}"},"actor":"s1"}`)
	for _, test := range []struct {
		name    string
		request Request
		behind  string // what has come behind it
		slow    bool
		want    bool
	}{
		{name: "quick", request: Request{Method: MethodExecute, Data: data}, want: true},
		{name: "slow the last time", request: Request{Method: MethodExecute, Data: data}, slow: true},
		{name: "something behind it", request: Request{Method: MethodExecute, Data: data}, behind: "{"},
		{name: "a body to come", request: Request{Method: MethodExecute, Data: data, in: newInbox(1, false, nil)}},
		{name: "long", request: Request{Method: MethodExecute, Data: make([]byte, maxInline+1)}},
		{name: "another that only works", request: Request{Method: MethodStat}, want: true},
		{name: "one that waits", request: Request{Method: MethodProcessRead}},
		{name: "one that calls back", request: Request{Method: MethodRunCode}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := NewServer(nil, nil, ServerOptions{})
			if !test.slow {
				s.paces.Of(MethodExecute, "read_file").Took(0)
				s.paces.Of(test.request.Method, "").Took(0)
			}
			s.reader.buf, s.reader.end = []byte(test.behind), len(test.behind)
			if got := s.runsHere(&test.request); got != test.want {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}
