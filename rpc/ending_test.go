package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.lsp.dev/jsonrpc2"

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

// What returns the cause of a context that is over, as libraries do, was cancelled
// by whoever gave the cause, and is no fault of ours.
func TestCauseIsTold(t *testing.T) {
	h := serve(t, nil)
	for cause, says := range map[error]string{errCancelled: "was cancelled", errEnding: "shutting down"} {
		ctx, stop := context.WithCancelCause(t.Context())
		stop(cause)
		r := &request{server: h.server, ctx: ctx, name: protocol.MethodArtifactDelete}
		var answer *jsonrpc2.Error
		if err := r.answerError(fmt.Errorf("lock: %w", context.Cause(ctx))); !errors.As(err, &answer) ||
			answer.Code != jsonrpc2.Code(protocol.CodeCancelled) || !strings.Contains(answer.Message, says) {
			t.Errorf("%v is answered with %+v", cause, err)
		}
	}
}
