package tool

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Kind classifies an error for whoever has to act on it. The words are those
// of the editor protocol.
type Kind string

// The kinds.
const (
	SessionNotFound    Kind = "sessionNotFound"
	SessionBusy        Kind = "sessionBusy"
	ProfileNotFound    Kind = "profileNotFound"
	ConfigInvalid      Kind = "configInvalid"
	BackendUnavailable Kind = "backendUnavailable"
	ProtocolMismatch   Kind = "protocolMismatch"
	EnvironmentLost    Kind = "environmentLost"
	OutcomeUnknown     Kind = "outcomeUnknown"
	ToolNotFound       Kind = "toolNotFound"
	Unsupported        Kind = "unsupported"
	Denied             Kind = "denied"
	RateLimited        Kind = "rateLimited"
	BudgetExhausted    Kind = "budgetExhausted"
	Timeout            Kind = "timeout"
	ArtifactTooLarge   Kind = "artifactTooLarge"
	ArtifactNotFound   Kind = "artifactNotFound"
	ProcessNotFound    Kind = "processNotFound"
	PathOutsideRoot    Kind = "pathOutsideRoot"
	Overloaded         Kind = "overloaded"
	Cancelled          Kind = "cancelled"
	// GuestFailed is a WebAssembly guest that was stopped; Reason says by what.
	GuestFailed Kind = "guestFailed"
	Internal    Kind = "internal"
	// InvalidParams is a request that cannot be understood; the editor sees it
	// as JSON-RPC's own code with Path naming the member.
	InvalidParams Kind = "invalidParams"
)

// Kinds are all kinds.
func Kinds() []Kind {
	return []Kind{
		SessionNotFound, SessionBusy, ProfileNotFound, ConfigInvalid, BackendUnavailable, ProtocolMismatch,
		EnvironmentLost, OutcomeUnknown, ToolNotFound, Unsupported, Denied, RateLimited, BudgetExhausted,
		Timeout, ArtifactTooLarge, ArtifactNotFound, ProcessNotFound, PathOutsideRoot, Overloaded, Cancelled,
		GuestFailed, Internal, InvalidParams,
	}
}

// Valid reports whether k is one of the kinds.
func (k Kind) Valid() bool { return slices.Contains(Kinds(), k) }

// Reason tells errors of one kind apart.
type Reason string

// The reasons of [GuestFailed].
const (
	OutOfFuel     Reason = "outOfFuel"
	OutOfMemory   Reason = "outOfMemory"
	StackOverflow Reason = "stackOverflow"
	Trap          Reason = "trap"
	OutputLimit   Reason = "outputLimit"
)

// Error is an error that keeps its kind across process borders.
type Error struct {
	Kind Kind
	// Message is one sentence that says what happened and where.
	Message string
	// Hint says what to do next.
	Hint string
	// Retryable says that the same call may succeed later and did nothing now.
	Retryable bool
	// Path is what the error is about. With InvalidParams that is a member of the
	// request, and a file that is in the way stands in the message; with every
	// other kind it is the file, or the member of a configuration.
	Path string
	// Reason tells errors of this kind apart, where there are several.
	Reason Reason
	// FuelRemaining is what was left of a WebAssembly guest's fuel; nil where
	// there was no guest.
	FuelRemaining *uint64
	// Err is the cause, if it is worth unwrapping; it is not shown.
	Err error
}

// Errorf makes an Error of the kind whose message is formatted as by
// [fmt.Errorf], %w included.
func Errorf(kind Kind, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Message: err.Error(), Err: errors.Unwrap(err)}
}

// WithHint sets the hint and returns e.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// WithPath sets the path and returns e.
func (e *Error) WithPath(path string) *Error {
	e.Path = path
	return e
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.Err }

// KindOf is the kind of err: that of the [Error] in its chain, else [Internal].
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Internal
}

// HintOf is the hint of the [Error] in err's chain, "" where there is none.
func HintOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Hint
	}
	return ""
}

// EndKind is the kind of an error that says that ctx has ended: the kind of its
// cause where that is an [Error], [Timeout] after a deadline, whatever cause that
// has, and [Cancelled] else.
func EndKind(ctx context.Context) Kind {
	cause := context.Cause(ctx)
	if e, ok := errors.AsType[*Error](cause); ok {
		return e.Kind
	}
	// A context of ours may be cancelled with DeadlineExceeded for a cause.
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(cause, context.DeadlineExceeded) {
		return Timeout
	}
	return Cancelled
}
