package rpc

import (
	"context"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/rpc/protocol"
	"github.com/caisson-dev/caisson/session"
)

// confirm is how a call of this request asks the client's person whether it may
// run; nil where the client has announced nobody who answers. Meanwhile the request
// holds no slot, and when nobody waits any more the client is told.
func (r *request) confirm() session.Confirm {
	r.mu.Lock()
	answers := r.client.GuardConfirm
	r.mu.Unlock()
	if !answers {
		return nil
	}
	return func(ctx context.Context, c session.Confirmation) (session.Decision, error) {
		var answer protocol.GuardConfirmResult
		err := r.ask(ctx, protocol.MethodGuardConfirm, protocol.GuardConfirmParams{
			SessionID: c.SessionID, CallID: c.CallID, Tool: c.Tool, Arguments: protocol.RawObject(c.Arguments), Reason: c.Reason,
		}, &answer)
		if err != nil {
			return session.Decision{}, err
		}
		switch answer.Decision {
		case protocol.Allow, protocol.Deny:
		default:
			return session.Decision{}, tool.Errorf(tool.ProtocolMismatch, "the client's decision is %q, and not allow or deny", answer.Decision)
		}
		if answer.Remember != "" && answer.Remember != protocol.RememberSession {
			return session.Decision{}, tool.Errorf(tool.ProtocolMismatch, "the client wants its decision to be remembered for %q, and not for the session", answer.Remember)
		}
		return session.Decision{Allow: answer.Decision == protocol.Allow, Remember: answer.Remember == protocol.RememberSession}, nil
	}
}
