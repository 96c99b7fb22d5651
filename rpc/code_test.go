package rpc

import (
	"context"
	"errors"
	"testing"

	"github.com/caisson-dev/caisson/rpc/client"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// offering connects a client that answers the calls of programs with invoke, and
// offers the tool "ask".
func offering(t *testing.T, invoke func(context.Context, protocol.ToolInvokeParams) (protocol.ToolInvokeResult, error)) (*harness, *client.Client) {
	t.Helper()
	h := serve(t, nil)
	c := h.connect(t, protocol.ClientCapabilities{ToolInvoke: true}, client.Options{ToolInvoke: invoke})
	open(t, c)
	err := c.ToolOffer(t.Context(), protocol.ToolOfferParams{SessionID: "s1", Tools: []protocol.OfferedTool{
		{Name: "ask", Description: "Asks.", InputSchema: protocol.RawObject(`{"type":"object"}`)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return h, c
}

// askingProgram calls the tool that the client offers.
const askingProgram = "call ask {}\nvalue 1"

// TestWaitsForTheClientHoldNoSlot: as many programs as there are slots wait for the
// client, whose tools use the service themselves.
func TestWaitsForTheClientHoldNoSlot(t *testing.T) {
	entered, release := make(chan struct{}, maxRequests), make(chan struct{})
	_, c := offering(t, func(context.Context, protocol.ToolInvokeParams) (protocol.ToolInvokeResult, error) {
		entered <- struct{}{}
		<-release
		return protocol.ToolInvokeResult{Content: []protocol.Content{{Type: protocol.ContentText, Text: "answer"}}}, nil
	})
	answers := make(chan error, maxRequests)
	for range maxRequests {
		go func() {
			r, err := c.CodeRun(t.Context(), protocol.CodeRunParams{SessionID: "s1", Code: askingProgram})
			if err == nil && (len(r.Logs) != 1 || r.Logs[0] != "answer" || string(r.Value) != "1") {
				err = errors.New("a program ended otherwise")
			}
			answers <- err
		}()
	}
	for range maxRequests {
		<-entered
	}
	for range 2 * maxRequests {
		if _, err := c.ToolCall(t.Context(), call("echo")); err != nil {
			t.Fatalf("while programs wait for the client: %v", err)
		}
	}
	close(release)
	for range maxRequests {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
}

// TestCancelReachesTheClient: a program that is cancelled, or whose session is
// closed, ends what its client does for it.
func TestCancelReachesTheClient(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, c *client.Client, cancel func()){
		"cancelled": func(_ *testing.T, _ *client.Client, cancel func()) { cancel() },
		"closed": func(t *testing.T, c *client.Client, _ func()) {
			if _, err := c.SessionClose(t.Context(), protocol.SessionParams{SessionID: "s1"}); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			entered, left := make(chan struct{}), make(chan error, 1)
			_, c := offering(t, func(ctx context.Context, _ protocol.ToolInvokeParams) (protocol.ToolInvokeResult, error) {
				close(entered)
				<-ctx.Done()
				left <- ctx.Err()
				return protocol.ToolInvokeResult{}, ctx.Err()
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ran := make(chan error, 1)
			go func() {
				_, err := c.CodeRun(ctx, protocol.CodeRunParams{SessionID: "s1", Code: askingProgram})
				ran <- err
			}()
			<-entered
			end(t, c, cancel)
			if err := <-left; !errors.Is(err, context.Canceled) {
				t.Errorf("the client's tool ended with %v", err)
			}
			if err := <-ran; name == "cancelled" && !errors.Is(err, context.Canceled) {
				t.Errorf("the program ended with %v", err)
			}
		})
	}
}

// TestClientGoneEndsPrograms: nothing waits for a client that is not there.
func TestClientGoneEndsPrograms(t *testing.T) {
	entered := make(chan struct{})
	h, c := offering(t, func(ctx context.Context, _ protocol.ToolInvokeParams) (protocol.ToolInvokeResult, error) {
		close(entered)
		<-ctx.Done()
		return protocol.ToolInvokeResult{}, ctx.Err()
	})
	ran := make(chan error, 1)
	go func() {
		_, err := c.CodeRun(t.Context(), protocol.CodeRunParams{SessionID: "s1", Code: askingProgram})
		ran <- err
	}()
	<-entered
	h.in.Close()
	h.wait(t)
	if err := <-ran; err == nil {
		t.Error("the program ended well")
	}
}
