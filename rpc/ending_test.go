package rpc

import (
	"testing"

	"github.com/caisson-dev/caisson/rpc/client"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// A service that is told to end ends the calls in flight: each has its terminal
// event, and then its answer.
func TestEndIsTold(t *testing.T) {
	h := serve(t, nil)
	failed := make(chan protocol.ExecutionParams, 1)
	c := h.connect(t, protocol.ClientCapabilities{ExecutionEvents: true}, client.Options{
		ExecutionFailed: func(p protocol.ExecutionParams) { failed <- p },
	})
	open(t, c)
	answer := make(chan error, 1)
	go func() {
		_, err := c.ToolCall(t.Context(), call("block"))
		answer <- err
	}()
	<-h.entered
	h.stop()
	if err := <-answer; kindOf(err) != protocol.KindCancelled {
		t.Errorf("the call ends with %v", err)
	}
	select {
	case p := <-failed:
		if p.Tool != "block" || p.Failure == nil || p.Failure.Kind != protocol.KindCancelled {
			t.Errorf("the event is %+v", p)
		}
	default:
		t.Error("the call was answered without a terminal event")
	}
	h.wait(t)
}
