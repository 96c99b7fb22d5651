package rpc

import (
	"testing"

	"github.com/caisson-dev/caisson/rpc/client"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

func TestMainPath(t *testing.T) {
	h := serve(t, nil)
	c := h.connect(t, protocol.ClientCapabilities{}, client.Options{})
	s := open(t, c)
	if s.ID != "s1" || s.State != protocol.SessionReady || s.Backend != "local" {
		t.Fatalf("opened %+v", s)
	}
	r, err := c.ToolCall(t.Context(), protocol.ToolCallParams{SessionID: "s1", Name: "echo", Arguments: []byte(`{"a":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	if string(r.StructuredContent) != `{"a":1}` {
		t.Fatalf("got %s", r.StructuredContent)
	}
}
