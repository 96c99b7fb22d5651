package tool

import (
	"encoding/json"
	"time"
)

// Mode is a permission mode: what a command may write.
type Mode string

// The permission modes, from the narrowest to the widest.
const (
	// ReadOnly lets a command write to its private temporary directory only.
	ReadOnly Mode = "read_only"
	// Standard adds the workspace and the profile's writable paths.
	Standard Mode = "standard"
	// Unconfined adds nothing of ours: what the environment's user may do.
	Unconfined Mode = "unconfined"
)

// rank orders the modes; an unknown mode has rank 0 and is never within a ceiling.
func (m Mode) rank() int {
	switch m {
	case ReadOnly:
		return 1
	case Standard, "":
		return 2
	case Unconfined:
		return 3
	default:
		return 0
	}
}

// Valid reports whether m is one of the three modes. The empty mode, which
// means "as the environment says", is not.
func (m Mode) Valid() bool { return m != "" && m.rank() > 0 }

// Within reports whether m asks for no more than ceiling. Empty modes count as
// [Standard], as on the wire.
func (m Mode) Within(ceiling Mode) bool { return m.rank() > 0 && m.rank() <= ceiling.rank() }

// ActorKind says what sort of agent acts.
type ActorKind string

// The kinds of actors. A side chat is always [ReadOnly].
const (
	ActorMain     ActorKind = "main"
	ActorSubagent ActorKind = "subagent"
	ActorSideChat ActorKind = "side_chat"
)

// Actor is who makes a call inside a session. The zero Actor is the session's
// main agent.
type Actor struct {
	ID   string    `json:"id"`
	Kind ActorKind `json:"kind"`
}

// Request is one call of a tool.
type Request struct {
	// ID names the call in events and errors; unique within a session.
	ID string
	// Name is the tool's name, such as "read_file".
	Name string
	// Arguments is one JSON object. It travels undecoded to where the tool runs.
	Arguments json.RawMessage
	// Actor is who calls.
	Actor Actor
	// Mode is what the caller asks for; empty means the environment's default.
	// A mode above the environment's ceiling is refused with [Denied].
	Mode Mode
	// Timeout bounds the call; 0 means the profile's. A call over it is
	// cancelled and fails with [Timeout].
	Timeout time.Duration
	// MaxOutputBytes bounds what a command returns; 0 means the environment's.
	MaxOutputBytes int64
}

// Limits of a result, in bytes and parts. A worker never sends more; a host
// refuses a result that does.
const (
	MaxParts       = 128
	MaxInlineBytes = 2 << 20
	MaxResultBytes = 3 << 20
)

// Result is what a tool answers: the shape of an MCP tool result in snake case.
type Result struct {
	Content           []Part          `json:"content,omitempty"`
	StructuredContent json.RawMessage `json:"structured_content,omitempty"`
	Meta              json.RawMessage `json:"meta,omitempty"`
	IsError           bool            `json:"is_error,omitempty"`
	// FuelRemaining is what was left of a WebAssembly guest's fuel; nil where
	// there was no guest. It is for this process only.
	FuelRemaining *uint64 `json:"-"`
}

// PartType is the type of one part of a result.
type PartType string

// The types of parts.
const (
	PartText         PartType = "text"
	PartImage        PartType = "image"
	PartAudio        PartType = "audio"
	PartFile         PartType = "file"
	PartResource     PartType = "resource"
	PartResourceLink PartType = "resource_link"
)

// Part is one piece of a result's content.
type Part struct {
	Type     PartType        `json:"type"`
	Text     string          `json:"text,omitempty"`
	Data     string          `json:"data,omitempty"` // base64
	MIMEType string          `json:"mime_type,omitempty"`
	URI      string          `json:"uri,omitempty"`
	Name     string          `json:"name,omitempty"`
	Artifact json.RawMessage `json:"artifact,omitempty"`
	// Quoted, unless it is nil, is the text as a JSON string, and Text is empty:
	// most of a large text's way is as JSON, and it need not be decoded for it.
	// It is for this process only; another one is sent Text.
	Quoted json.RawMessage `json:"-"`
}

// String is the part's text.
func (p Part) String() string {
	if p.Quoted != nil {
		return unquote(p.Quoted)
	}
	return p.Text
}

// Failed is a result that tells a model what went wrong: bad arguments, a
// missing file, an edit that did not match. What the caller must act on is an
// [Error] instead.
func Failed(message string) Result {
	return Result{Content: []Part{{Type: PartText, Text: message}}, IsError: true}
}

// Description says what a tool is for and what it takes.
type Description struct {
	Name        string          `json:"name"`
	Group       Group           `json:"group,omitempty"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
	Annotations Annotations     `json:"annotations"`
}

// Annotations are hints for whoever decides about a call.
type Annotations struct {
	ReadOnly    bool `json:"read_only"`
	Destructive bool `json:"destructive"`
}
