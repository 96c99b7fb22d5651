package rpc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/caisson-dev/caisson/rpc/client"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// asked connects a client that answers questions with confirm, in a session whose
// calls of echo with an argument are asked about.
func asked(t *testing.T, confirm func(context.Context, protocol.GuardConfirmParams) (protocol.GuardConfirmResult, error)) (*harness, *client.Client) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "config.json")
	text := `{"guard": {"rules": [{"tools": ["plugins.echo"], "match": {"n": "*"}, "action": "confirm"}], "confirm_timeout": "10m"}}`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	h := serve(t, nil)
	c := client.New(h.out, h.in, client.Options{GuardConfirm: confirm})
	t.Cleanup(func() { c.Close() })
	_, err := c.Initialize(t.Context(), protocol.InitializeParams{
		Capabilities: protocol.ClientCapabilities{GuardConfirm: true}, Options: protocol.InitializationOptions{ConfigPath: config},
	})
	if err != nil {
		t.Fatal(err)
	}
	open(t, c)
	return h, c
}

func numbered(n int) protocol.ToolCallParams {
	p := call("echo")
	p.Arguments = protocol.RawObject(fmt.Sprintf(`{"n":"%d"}`, n))
	return p
}

// TestQuestionsHoldNoSlot: as many calls as there are slots wait for a person, and
// the service answers others.
func TestQuestionsHoldNoSlot(t *testing.T) {
	entered, release := make(chan struct{}, maxRequests), make(chan struct{})
	_, c := asked(t, func(context.Context, protocol.GuardConfirmParams) (protocol.GuardConfirmResult, error) {
		entered <- struct{}{}
		<-release
		return protocol.GuardConfirmResult{Decision: protocol.Allow}, nil
	})
	answers := make(chan error, maxRequests)
	for i := range maxRequests {
		go func() {
			_, err := c.ToolCall(t.Context(), numbered(i))
			answers <- err
		}()
	}
	for range maxRequests {
		<-entered
	}
	for range 2 * maxRequests {
		if _, err := c.ToolCall(t.Context(), call("echo")); err != nil {
			t.Fatalf("while calls wait for a person: %v", err)
		}
	}
	close(release)
	for range maxRequests {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
}

// TestClientGoneEndsQuestions: nothing waits for a client that is not there.
func TestClientGoneEndsQuestions(t *testing.T) {
	entered := make(chan struct{})
	h, c := asked(t, func(ctx context.Context, _ protocol.GuardConfirmParams) (protocol.GuardConfirmResult, error) {
		close(entered)
		<-ctx.Done()
		return protocol.GuardConfirmResult{}, errors.New("gone")
	})
	ran := make(chan error, 1)
	go func() {
		_, err := c.ToolCall(t.Context(), numbered(1))
		ran <- err
	}()
	<-entered
	h.in.Close()
	h.wait(t)
	if err := <-ran; err == nil {
		t.Error("the call ended well")
	}
}
