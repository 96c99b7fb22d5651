package protocol

import (
	"encoding/json"
	"time"
)

// ToolListResult is the answer to tool/list.
type ToolListResult struct {
	Tools []Tool `json:"tools"`
}

// Tool is one tool that a session offers.
type Tool struct {
	Name        string          `json:"name"`
	Group       ToolGroup       `json:"group"`
	Description string          `json:"description"`
	InputSchema RawObject       `json:"inputSchema"`
	Annotations ToolAnnotations `json:"annotations"`
	// Profile is the profile whose environment runs it.
	Profile string `json:"profile"`
}

// ToolAnnotations are hints for whoever decides about a call.
type ToolAnnotations struct {
	ReadOnly    bool `json:"readOnly"`
	Destructive bool `json:"destructive"`
}

// ToolGroup is the family that a tool belongs to.
type ToolGroup string

// The groups of tools.
const (
	GroupFile     ToolGroup = "file"
	GroupSearch   ToolGroup = "search"
	GroupShell    ToolGroup = "shell"
	GroupGit      ToolGroup = "git"
	GroupProcess  ToolGroup = "process"
	GroupArtifact ToolGroup = "artifact"
	GroupCode     ToolGroup = "code"
	GroupPlugins  ToolGroup = "plugins"
)

// Values are all groups.
func (ToolGroup) Values() []ToolGroup {
	return []ToolGroup{GroupFile, GroupSearch, GroupShell, GroupGit, GroupProcess, GroupArtifact, GroupCode, GroupPlugins}
}

// Actor is who makes a call inside a session. A side chat is always read_only.
type Actor struct {
	ID   string    `json:"id"`
	Kind ActorKind `json:"kind"`
}

// ActorKind is what sort of agent acts.
type ActorKind string

// The kinds of actors.
const (
	ActorMain     ActorKind = "main"
	ActorSubagent ActorKind = "subagent"
	ActorSideChat ActorKind = "side_chat"
)

// Values are all kinds of actors.
func (ActorKind) Values() []ActorKind { return []ActorKind{ActorMain, ActorSubagent, ActorSideChat} }

// PermissionMode is what a command may write.
type PermissionMode string

// The permission modes, from the narrowest to the widest.
const (
	ModeReadOnly   PermissionMode = "read_only"
	ModeStandard   PermissionMode = "standard"
	ModeUnconfined PermissionMode = "unconfined"
)

// Values are all permission modes.
func (PermissionMode) Values() []PermissionMode {
	return []PermissionMode{ModeReadOnly, ModeStandard, ModeUnconfined}
}

// ToolCallParams asks for one tool call.
type ToolCallParams struct {
	SessionID string `json:"sessionId"`
	Name      string `json:"name"`
	// Arguments are the tool's own; they travel undecoded to where it runs. Unlike
	// members of parameters, one that a built-in tool does not know is refused, in
	// a result with isError that names the nearest one: nothing was done then.
	Arguments RawObject `json:"arguments"`
	// CallID names the call in events; missing: the service makes one.
	CallID string `json:"callId,omitzero"`
	// Actor is who calls; missing: the session's main agent.
	Actor *Actor `json:"actor,omitzero"`
	// PermissionMode asks for a mode; missing: the profile's. Above the
	// profile's ceiling it is denied.
	PermissionMode PermissionMode `json:"permissionMode,omitzero"`
	Constraints    *Constraints   `json:"constraints,omitzero"`
	// RunID and NodeName are passed through to the events.
	RunID         string `json:"runId,omitzero"`
	NodeName      string `json:"nodeName,omitzero"`
	WorkDoneToken Token  `json:"workDoneToken,omitzero"`
}

// ToolCallResult is the answer to tool/call: the shape of an MCP tool result,
// so that a client can pass it on as it is.
type ToolCallResult struct {
	Content []Content `json:"content"`
	// StructuredContent is the tool's result as an object; its members are the
	// tool's own.
	StructuredContent RawObject `json:"structuredContent,omitempty"`
	// IsError says that the tool failed in a way that its caller may correct.
	IsError bool     `json:"isError,omitzero"`
	Meta    ToolMeta `json:"meta"`
}

// ToolMeta says where and for how long a call ran.
type ToolMeta struct {
	CallID     string `json:"callId"`
	Backend    string `json:"backend"`
	Profile    string `json:"profile"`
	DurationMs int64  `json:"durationMs"`
	// FuelRemaining is what was left of a WebAssembly tool's fuel, in instructions.
	FuelRemaining *uint64 `json:"fuelRemaining,omitzero"`
	// Tool is what the tool itself said beside its result.
	Tool json.RawMessage `json:"tool,omitempty"`
}

// Content is one piece of a result, as in MCP.
type Content struct {
	Type ContentType `json:"type"`
	// Text stands in text.
	Text string `json:"text,omitzero"`
	// Data, in base64, stands in image and audio.
	Data     string `json:"data,omitzero"`
	MIMEType string `json:"mimeType,omitzero"`
	// URI and Name stand in resource_link.
	URI  string `json:"uri,omitzero"`
	Name string `json:"name,omitzero"`
	// Resource stands in resource.
	Resource *EmbeddedResource `json:"resource,omitzero"`
	// Artifact stands in a part that present_artifact made.
	Artifact json.RawMessage `json:"artifact,omitempty"`
}

// ContentType is the type of one piece of a result.
type ContentType string

// The types of content.
const (
	ContentText         ContentType = "text"
	ContentImage        ContentType = "image"
	ContentAudio        ContentType = "audio"
	ContentResource     ContentType = "resource"
	ContentResourceLink ContentType = "resource_link"
)

// Values are all types of content.
func (ContentType) Values() []ContentType {
	return []ContentType{ContentText, ContentImage, ContentAudio, ContentResource, ContentResourceLink}
}

// EmbeddedResource is a resource with its contents; one of Text and Blob, in
// base64, stands.
type EmbeddedResource struct {
	URI      string `json:"uri"`
	MIMEType string `json:"mimeType,omitzero"`
	Text     string `json:"text,omitzero"`
	Blob     string `json:"blob,omitzero"`
}

// ToolOfferParams offers the client's own tools to programs (code/run).
type ToolOfferParams struct {
	SessionID string        `json:"sessionId"`
	Tools     []OfferedTool `json:"tools"`
}

// OfferedTool is one tool of the client's own.
type OfferedTool struct {
	Name        string    `json:"name"`
	Description string    `json:"description"`
	InputSchema RawObject `json:"inputSchema"`
}

// ToolInvokeParams asks the client to run a tool that it offered.
type ToolInvokeParams struct {
	SessionID string    `json:"sessionId"`
	Name      string    `json:"name"`
	Arguments RawObject `json:"arguments"`
}

// ToolInvokeResult is the client's answer.
type ToolInvokeResult struct {
	Content           []Content `json:"content"`
	StructuredContent RawObject `json:"structuredContent,omitempty"`
	IsError           bool      `json:"isError,omitzero"`
}

// GuardConfirmParams asks a person whether a call may run. An error, or no
// answer in time, means no.
type GuardConfirmParams struct {
	SessionID string    `json:"sessionId"`
	CallID    string    `json:"callId"`
	Tool      string    `json:"tool"`
	Arguments RawObject `json:"arguments"`
	Reason    string    `json:"reason"`
}

// GuardConfirmResult is the person's answer.
type GuardConfirmResult struct {
	Decision Decision `json:"decision"`
	// Remember "session" keeps the decision for the session.
	Remember Remember `json:"remember,omitzero"`
}

// Decision is yes or no.
type Decision string

// The decisions.
const (
	Allow Decision = "allow"
	Deny  Decision = "deny"
)

// Values are all decisions.
func (Decision) Values() []Decision { return []Decision{Allow, Deny} }

// Remember is for how long a decision counts.
type Remember string

// RememberSession keeps a decision for the session.
const RememberSession Remember = "session"

// Values are all spans of a decision.
func (Remember) Values() []Remember { return []Remember{RememberSession} }

// ExecutionParams is what execution/started, execution/completed and
// execution/failed tell: exactly one started and one terminal event for each
// call, denials included.
type ExecutionParams struct {
	SessionID string `json:"sessionId"`
	CallID    string `json:"callId"`
	RunID     string `json:"runId,omitzero"`
	NodeName  string `json:"nodeName,omitzero"`
	// Tool is the tool's name, or "process.start", "shell.job" or "code.run".
	Tool      string    `json:"tool"`
	Profile   string    `json:"profile"`
	Backend   string    `json:"backend"`
	Actor     Actor     `json:"actor"`
	StartedAt time.Time `json:"startedAt"`
	// DurationMs stands in the terminal events.
	DurationMs *int64 `json:"durationMs,omitzero"`
	// Failure stands in execution/failed.
	Failure *Failure `json:"failure,omitzero"`
}

// Failure is why a call failed.
type Failure struct {
	// Kind is missing for arguments that the tool could not understand.
	Kind    Kind   `json:"kind,omitzero"`
	Message string `json:"message"`
}
