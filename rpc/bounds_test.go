package rpc

import (
	"errors"
	"testing"

	"go.lsp.dev/jsonrpc2"

	"github.com/caisson-dev/caisson/artifacts"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// A preview that is pushed is as large as the client wants it, and still text.
func TestPushedPreviewIsBounded(t *testing.T) {
	for _, row := range []struct {
		limit     int64
		text      string
		want      string
		truncated bool
	}{
		{0, "aé", "aé", false},
		{3, "aé", "aé", false},
		{2, "aé", "a", true},
		{1, "é", "", true},
	} {
		s := &server{client: protocol.ClientCapabilities{PreviewMaxBytes: row.limit}}
		got := s.boundPreview(artifacts.Preview{Kind: artifacts.KindText, Text: row.text})
		if got.Text != row.want || got.Truncated != row.truncated {
			t.Errorf("%q in %d bytes is %+v", row.text, row.limit, got)
		}
	}
	s := &server{client: protocol.ClientCapabilities{PreviewMaxBytes: 2}}
	if got := s.boundPreview(artifacts.Preview{Kind: artifacts.KindImage, Data: []byte("png")}); got.Data != nil || !got.Truncated {
		t.Errorf("an image: %+v", got)
	}
}

func TestSubscriptionsAreBounded(t *testing.T) {
	s := &server{ctx: t.Context(), subscriptions: map[processKey]*subscription{}}
	for i := range maxSubscriptions {
		s.subscriptions[processKey{"s", string(rune(0x4e00 + i))}] = &subscription{}
	}
	_, err := s.subscribe(processKey{"s", "one more"}, 0, nil)
	wire, ok := errors.AsType[*jsonrpc2.Error](err)
	if !ok || protocol.Code(wire.Code) != protocol.CodeOverloaded {
		t.Errorf("got %v", err)
	}
}
