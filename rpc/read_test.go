package rpc

import (
	"context"
	"testing"
)

// TestReaderIsRelieved has the goroutine that reads work on a call that blocks,
// as one does whose like were quick until then: another one reads on, the call
// can be cancelled, and its like are given to goroutines of their own again.
func TestReaderIsRelieved(t *testing.T) {
	h := serve(t, nil)
	p := startRaw(t, h)
	for i := range h.server.pace.soon {
		h.server.pace.soon[i].Store(true)
	}
	p.send(`{"id":5,"method":"tool/call","params":{"sessionId":"s1","name":"block","arguments":{}}}`)
	<-h.entered
	p.send(`{"id":6,"method":"tool/call","params":{"sessionId":"s1","name":"echo","arguments":{"n":6}}}`)
	p.expect(`{"id":6,"result":{"...":""}}`)
	p.send(`{"method":"$/cancelRequest","params":{"id":5}}`)
	p.expect(`{"id":5,"error":{"code":-32800,"message":"<string>","data":{"...":""}}}`)
	for range 3 {
		p.send(`{"id":7,"method":"tool/call","params":{"sessionId":"s1","name":"echo","arguments":{"n":7}}}`)
		p.expect(`{"id":7,"result":{"...":""}}`)
	}
	r := &request{server: h.server, name: "tool/call", sessionID: "s1", tool: "block"}
	if h.server.pace.of(r).Load() {
		t.Error("the call that was held up still counts as quick")
	}
}

// A turn that ends by itself goes on reading; one that takes long is taken over
// once, whatever comes between.
func TestRelief(t *testing.T) {
	var l relief
	l.init()
	ctx, cancel := context.WithCancel(t.Context())
	taken, done := make(chan struct{}, 10), make(chan struct{})
	go func() {
		defer close(done)
		l.watch(ctx, func() { taken <- struct{}{} })
	}()
	for range 1000 {
		if turn := l.begin(); !l.end(turn) {
			<-taken // the machine was slow
		}
	}
	for range 3 {
		turn := l.begin()
		<-taken
		if l.end(turn) {
			t.Error("two read at once")
		}
	}
	cancel()
	<-done
	if len(taken) > 0 {
		t.Error("a turn was taken over twice")
	}
}
