package rpc

import "testing"

// TestReaderIsRelieved has the goroutine that reads work on a call that blocks,
// as one does whose like were quick until then: another one reads on, the call
// can be cancelled, and its like are given to goroutines of their own again.
func TestReaderIsRelieved(t *testing.T) {
	h := serve(t, nil)
	p := startRaw(t, h)
	kind := h.server.paces.Of("tool/call", "s1", "block")
	kind.Took(0)
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
	if kind.Soon() {
		t.Error("the call that was held up still counts as quick")
	}
}
