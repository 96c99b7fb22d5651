package protocol

import "encoding/json"

// Code is the numeric code of an error answer.
type Code int32

// The numeric codes: those of JSON-RPC and of the language server protocol
// where they have one, and one for each kind of error that is ours. A client
// that wants to tell errors apart should look at [ErrorData.Kind]; the codes
// are for libraries that only keep the number.
const (
	CodeParse          Code = -32700 // the body is not JSON; the answer's id is null
	CodeInvalidRequest Code = -32600 // not a request, too long, or not now (a second initialize, anything after shutdown)
	CodeMethodNotFound Code = -32601 // no such method
	CodeInvalidParams  Code = -32602 // bad parameters; data.path names the member
	CodeInternal       Code = -32603 // a fault of the service
	CodeNotInitialized Code = -32002 // a request before initialize
	CodeCancelled      Code = -32800 // the request was cancelled, and its work has stopped

	CodeOverloaded         Code = -32001 // too many requests at once; try again
	CodeSessionNotFound    Code = -32010
	CodeSessionBusy        Code = -32011
	CodeProfileNotFound    Code = -32012
	CodeConfigInvalid      Code = -32013
	CodeBackendUnavailable Code = -32014
	CodeProtocolMismatch   Code = -32015
	CodeEnvironmentLost    Code = -32016
	CodeOutcomeUnknown     Code = -32017
	CodeToolNotFound       Code = -32018
	CodeUnsupported        Code = -32019
	CodeDenied             Code = -32020
	CodeRateLimited        Code = -32021
	CodeBudgetExhausted    Code = -32022
	CodeTimeout            Code = -32023
	CodeArtifactTooLarge   Code = -32024
	CodeArtifactNotFound   Code = -32025
	CodeProcessNotFound    Code = -32026
	CodePathOutsideRoot    Code = -32027
	CodeGuestFailed        Code = -32028
)

// Kind classifies an error for whoever has to act on it.
type Kind string

// The kinds.
const (
	KindSessionNotFound    Kind = "sessionNotFound"
	KindSessionBusy        Kind = "sessionBusy" // held by another service process, which the message names by its pid
	KindProfileNotFound    Kind = "profileNotFound"
	KindConfigInvalid      Kind = "configInvalid"
	KindBackendUnavailable Kind = "backendUnavailable"
	KindProtocolMismatch   Kind = "protocolMismatch"
	KindEnvironmentLost    Kind = "environmentLost"
	KindOutcomeUnknown     Kind = "outcomeUnknown"
	KindToolNotFound       Kind = "toolNotFound"
	KindUnsupported        Kind = "unsupported"
	KindDenied             Kind = "denied"
	KindRateLimited        Kind = "rateLimited"
	KindBudgetExhausted    Kind = "budgetExhausted"
	KindTimeout            Kind = "timeout"
	KindArtifactTooLarge   Kind = "artifactTooLarge"
	KindArtifactNotFound   Kind = "artifactNotFound"
	KindProcessNotFound    Kind = "processNotFound"
	KindPathOutsideRoot    Kind = "pathOutsideRoot"
	KindGuestFailed        Kind = "guestFailed" // a WebAssembly guest that was stopped; data.reason says by what
	KindOverloaded         Kind = "overloaded"
	KindCancelled          Kind = "cancelled"
	KindInternal           Kind = "internal"
)

// Values are all kinds, in the order of the documentation.
func (Kind) Values() []Kind {
	return []Kind{
		KindSessionNotFound, KindSessionBusy, KindProfileNotFound, KindConfigInvalid,
		KindBackendUnavailable, KindProtocolMismatch, KindEnvironmentLost, KindOutcomeUnknown,
		KindToolNotFound, KindUnsupported, KindDenied, KindRateLimited, KindBudgetExhausted,
		KindTimeout, KindArtifactTooLarge, KindArtifactNotFound, KindProcessNotFound,
		KindPathOutsideRoot, KindGuestFailed, KindOverloaded, KindCancelled, KindInternal,
	}
}

// Code is the numeric code of errors of this kind; [CodeInternal] for a word
// that is no kind.
func (k Kind) Code() Code {
	switch k {
	case KindSessionNotFound:
		return CodeSessionNotFound
	case KindSessionBusy:
		return CodeSessionBusy
	case KindProfileNotFound:
		return CodeProfileNotFound
	case KindConfigInvalid:
		return CodeConfigInvalid
	case KindBackendUnavailable:
		return CodeBackendUnavailable
	case KindProtocolMismatch:
		return CodeProtocolMismatch
	case KindEnvironmentLost:
		return CodeEnvironmentLost
	case KindOutcomeUnknown:
		return CodeOutcomeUnknown
	case KindToolNotFound:
		return CodeToolNotFound
	case KindUnsupported:
		return CodeUnsupported
	case KindDenied:
		return CodeDenied
	case KindRateLimited:
		return CodeRateLimited
	case KindBudgetExhausted:
		return CodeBudgetExhausted
	case KindTimeout:
		return CodeTimeout
	case KindArtifactTooLarge:
		return CodeArtifactTooLarge
	case KindArtifactNotFound:
		return CodeArtifactNotFound
	case KindProcessNotFound:
		return CodeProcessNotFound
	case KindPathOutsideRoot:
		return CodePathOutsideRoot
	case KindGuestFailed:
		return CodeGuestFailed
	case KindOverloaded:
		return CodeOverloaded
	case KindCancelled:
		return CodeCancelled
	default:
		return CodeInternal
	}
}

// ErrorData is the data member of an error answer.
type ErrorData struct {
	// Kind classifies the error. It is missing where JSON-RPC's own code says
	// all: bad JSON, a bad envelope, an unknown method, bad parameters, a
	// request at the wrong time.
	Kind Kind `json:"kind,omitzero"`
	// Retryable says that the same request may succeed later and did nothing now.
	Retryable bool `json:"retryable"`
	// OutcomeUnknown says that the request may have taken effect: it was on its
	// way when the connection was lost, or did not stop when it was cancelled.
	OutcomeUnknown bool `json:"outcomeUnknown,omitzero"`
	// Hint says what to do next.
	Hint string `json:"hint,omitzero"`
	// Backend, Profile and SessionID say where it happened.
	Backend   string `json:"backend,omitzero"`
	Profile   string `json:"profile,omitzero"`
	SessionID string `json:"sessionId,omitzero"`
	// Path is what the error is about. With [CodeInvalidParams] that is always the
	// member of the parameters, such as "path" or "constraints.timeout", whose file
	// stands in the message; otherwise the file, or the member of a configuration.
	Path string `json:"path,omitzero"`
	// Reason says what stopped a WebAssembly guest, with [KindGuestFailed].
	Reason Reason `json:"reason,omitzero"`
	// FuelRemaining is what was left of a guest's fuel, in instructions; it is there
	// with [KindGuestFailed], and with [KindTimeout] where a guest ran.
	FuelRemaining *uint64 `json:"fuelRemaining,omitzero"`
}

// Reason says what stopped a WebAssembly guest.
type Reason string

// The reasons.
const (
	ReasonOutOfFuel     Reason = "outOfFuel"
	ReasonOutOfMemory   Reason = "outOfMemory"
	ReasonStackOverflow Reason = "stackOverflow"
	ReasonTrap          Reason = "trap"
	ReasonOutputLimit   Reason = "outputLimit"
)

// Values are all reasons, in the order of the documentation.
func (Reason) Values() []Reason {
	return []Reason{ReasonOutOfFuel, ReasonOutOfMemory, ReasonStackOverflow, ReasonTrap, ReasonOutputLimit}
}

// Error is an error answer, and how a client of this protocol returns one.
type Error struct {
	Code Code `json:"code"`
	// Message is one sentence that a person can act on.
	Message string     `json:"message"`
	Data    *ErrorData `json:"data,omitzero"`
}

func (e *Error) Error() string { return e.Message }

// Kind is the kind in the error's data, "" when there is none.
func (e *Error) Kind() Kind {
	if e.Data == nil {
		return ""
	}
	return e.Data.Kind
}

// ParseErrorData decodes the data member of an error answer. What is no
// [ErrorData], as from another implementation, gives nil.
func ParseErrorData(raw json.RawMessage) *ErrorData {
	if len(raw) == 0 {
		return nil
	}
	data := new(ErrorData)
	if json.Unmarshal(raw, data) != nil {
		return nil
	}
	return data
}
