package wire

import (
	"context"
	"errors"

	"github.com/caisson-dev/caisson/backends/tool"
)

// ErrorDetail is what stands beside the plain text of an error ([CapErrors]).
type ErrorDetail struct {
	Kind      tool.Kind `json:"kind"`
	Hint      string    `json:"hint,omitempty"`
	Path      string    `json:"path,omitempty"`
	Retryable bool      `json:"retryable,omitempty"`
}

// maxMessage bounds each text of an error that comes from a peer, in bytes:
// it ends up in logs and before people.
const maxMessage = 8 << 10

// parseDetail is the detail that data is; nil for no data.
func parseDetail(data []byte) (*ErrorDetail, error) {
	if data == nil {
		return nil, nil
	}
	var d ErrorDetail
	if err := decodeJSON(data, &d); err != nil {
		return nil, err
	}
	return &d, nil
}

// errorFrame is how err travels: as a text that is never empty, and as a detail
// where the host takes one.
func errorFrame(id string, err error, detailed bool) Frame {
	f := Frame{ID: id, Error: err.Error()}
	if f.Error == "" {
		f.Error = "failed without saying why"
	}
	if !detailed {
		return f
	}
	f.Detail = &ErrorDetail{Kind: kindOf(err)}
	if e := (*tool.Error)(nil); errors.As(err, &e) {
		f.Detail.Hint, f.Detail.Path, f.Detail.Retryable = e.Hint, e.Path, e.Retryable
	}
	return f
}

// kindOf is tool.KindOf that knows the errors of contexts.
func kindOf(err error) tool.Kind {
	kind := tool.KindOf(err)
	switch {
	case kind != tool.Internal:
		return kind
	case errors.Is(err, context.Canceled):
		return tool.Cancelled
	case errors.Is(err, context.DeadlineExceeded):
		return tool.Timeout
	default:
		return kind
	}
}

// peerError is an error that a peer sent, with its texts bounded. A kind that
// is none of ours is [tool.Internal], as is an error without a detail.
func peerError(message []byte, detail []byte) *tool.Error {
	e := &tool.Error{Kind: tool.Internal, Message: clip(string(message))}
	d, err := parseDetail(detail)
	if err != nil || d == nil {
		return e // the text is there, and says more than a bad detail
	}
	if d.Kind.Valid() {
		e.Kind = d.Kind
	}
	e.Hint, e.Path, e.Retryable = clip(d.Hint), clip(d.Path), d.Retryable
	return e
}

// clip cuts a text of a peer down to what an error may hold.
func clip(s string) string { return tool.Clip(s, maxMessage) }
