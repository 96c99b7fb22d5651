package remote

import (
	"context"
	"errors"
	"io"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// Probe reports whether the far end of a stream speaks the protocol: it sends one
// request before initialize, which has to be refused, so that nothing is made or
// started by it. It closes the stream.
func Probe(ctx context.Context, stream Stream) error {
	c := wire.NewClient(stream, wire.ClientOptions{CancelGrace: probeGrace})
	_, err := c.Call(ctx, wire.MethodProcessList, wire.ProcessRequest{}, nil)
	lost := c.Err()
	_ = c.Close() // who owns the stream closes it again to hear of it
	switch {
	case err == nil:
		err = tool.Errorf(tool.ProtocolMismatch, "it answered a request before initialize, which it must refuse")
	case ctx.Err() != nil:
		err = tool.Errorf(tool.BackendUnavailable, "it did not answer a request in time: %w", err).
			WithHint("see whether it speaks protocol 4 on its standard input and output")
	case lost == nil:
		return nil
	default:
		if errors.Is(lost, io.EOF) {
			lost = errors.New("it closed its output")
		}
		err = tool.Errorf(tool.BackendUnavailable, "it does not speak the protocol: %w", lost).WithHint("%s", tool.HintOf(lost))
	}
	return stream.told(err, true)
}
