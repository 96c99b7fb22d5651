package rpc

import (
	"context"
	"errors"
	"fmt"

	"go.lsp.dev/jsonrpc2"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/rpc/protocol"
	"github.com/caisson-dev/caisson/session"
)

// protocolError is an error that JSON-RPC has a code of its own for.
func protocolError(code protocol.Code, format string, args ...any) *jsonrpc2.Error {
	return withData(code, fmt.Sprintf(format, args...), protocol.ErrorData{})
}

// wireError makes the error answer to err. R adds where it happened; nil when
// there is no request yet.
func wireError(err error, r *request) *jsonrpc2.Error {
	if wire, ok := errors.AsType[*jsonrpc2.Error](err); ok {
		return wire
	}
	e := asToolError(err)
	data := protocol.ErrorData{
		Kind:           protocol.Kind(e.Kind),
		Retryable:      e.Retryable,
		OutcomeUnknown: e.Kind == tool.OutcomeUnknown,
		Hint:           e.Hint,
		Path:           e.Path,
		Reason:         protocol.Reason(e.Reason),
		FuelRemaining:  e.FuelRemaining,
	}
	code := data.Kind.Code()
	if e.Kind == tool.InvalidParams {
		code, data.Kind, data.Path = protocol.CodeInvalidParams, "", ""
		if r != nil {
			data.Path = memberOf(r.name, e.Path)
		}
	}
	if r != nil {
		r.locate(&data)
	}
	if at, ok := errors.AsType[*session.PlaceError](err); ok {
		data.Profile, data.Backend = at.Profile, at.Backend
	}
	return withData(code, err.Error(), data)
}

// asToolError is the error's kind and what belongs to it; an error of no kind
// is a fault of ours, but for a deadline.
func asToolError(err error) *tool.Error {
	if e, ok := errors.AsType[*tool.Error](err); ok {
		return e
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &tool.Error{Kind: tool.Timeout}
	}
	return &tool.Error{Kind: tool.Internal}
}

// locate says which session, profile and backend the error is about.
func (r *request) locate(data *protocol.ErrorData) {
	data.SessionID = r.sessionID
	if r.sessionID == "" || data.Kind == protocol.KindSessionNotFound || data.Kind == "" {
		return
	}
	r.mu.Lock()
	sessions := r.services.Sessions
	r.mu.Unlock()
	if sessions == nil {
		return
	}
	// The request's own context may be over; what is asked for is in memory or
	// in one small file.
	if s, err := sessions.Get(context.WithoutCancel(r.ctx), r.sessionID); err == nil {
		data.Profile, data.Backend = s.Profile, s.Backend
	}
}

func withData(code protocol.Code, message string, data protocol.ErrorData) *jsonrpc2.Error {
	raw, err := codec{}.Marshal(data)
	if err != nil { // text and bools always have a JSON form
		raw = nil
	}
	return &jsonrpc2.Error{Code: jsonrpc2.Code(code), Message: message, Data: raw}
}

// sessionError is how an error stands in a session, a process output or an
// execution event.
func sessionError(err error) *protocol.SessionError {
	if err == nil {
		return nil
	}
	e := asToolError(err)
	return &protocol.SessionError{Kind: protocol.Kind(e.Kind), Message: err.Error(), Hint: e.Hint}
}

// invalidParams is a parameter that cannot be; path names the member.
func invalidParams(path, format string, args ...any) error {
	return tool.Errorf(tool.InvalidParams, format, args...).WithPath(path)
}
