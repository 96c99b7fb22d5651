package remote

import (
	"context"
	"errors"
	"fmt"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// contextError is the error of something that ended because ctx did.
func contextError(ctx context.Context, doing string) error {
	e := &tool.Error{Kind: tool.EndKind(ctx), Message: doing + " was cancelled", Err: context.Cause(ctx)}
	if e.Kind == tool.Timeout {
		e.Message = doing + " took longer than it may"
	}
	return e
}

// about says in err's message what it is about; the rest of it stays.
func about(what string, err error) error {
	var e *tool.Error
	if !errors.As(err, &e) {
		return tool.Errorf(tool.Internal, "%s: %w", what, err)
	}
	told := *e
	told.Message = what + ": " + e.Message
	told.Err = err
	return &told
}

// told is err as it is shown: with what the far end said beside the stream, when
// that has failed, and without what nobody may see. To tell it again changes
// nothing.
func (s Stream) told(err error, failed bool) error {
	var before shown
	if err == nil || s.Said == nil && s.Redact == nil || errors.As(err, &before) {
		return err
	}
	told := tool.Error{Kind: tool.Internal}
	var e *tool.Error
	if errors.As(err, &e) {
		told = *e
	}
	told.Message, told.Err = err.Error(), shown{err}
	if failed && s.Said != nil {
		if said := s.Said(); said != "" {
			told.Message += "; it said: " + said
		}
	}
	if s.Redact != nil {
		told.Message, told.Hint = s.Redact(told.Message), s.Redact(told.Hint)
	}
	return &told
}

// shown marks the cause of an error that was told.
type shown struct{ error }

func (s shown) Unwrap() error { return s.error }

// lacking is the error for a method that the peer does not have.
func lacking(what, capability string) error {
	return tool.Errorf(tool.Unsupported, "this environment cannot %s: its far end lacks the capability %s", what, capability)
}

// foreign is the error for a reply that keeps to no contract.
func foreign(what, format string, args ...any) error {
	e := tool.Errorf(tool.ProtocolMismatch, "%s: the far end's reply breaks the protocol: %s", what, fmt.Sprintf(format, args...))
	return e.WithHint("it may have been done all the same. The fault is the far end's: of an adapter, caisson adapter check shows it")
}

// notSent reports whether err says that the peer never got the request, while
// the caller still wants it done.
func notSent(ctx context.Context, err error) bool {
	return errors.Is(err, wire.ErrNotSent) && ctx.Err() == nil && retryable(err)
}
