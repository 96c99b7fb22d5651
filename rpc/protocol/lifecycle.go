package protocol

// InitializeParams begins a connection.
type InitializeParams struct {
	// ProcessID is the process that started the service, or null. The service
	// begins its bounded shutdown within 2 s of that process dying.
	ProcessID        *int               `json:"processId"`
	ClientInfo       *ClientInfo        `json:"clientInfo,omitzero"`
	WorkspaceFolders []WorkspaceFolder  `json:"workspaceFolders,omitempty"`
	Capabilities     ClientCapabilities `json:"capabilities,omitzero"`
	// Options say where the service keeps its things; everything has a default.
	Options InitializationOptions `json:"initializationOptions,omitzero"`
	Trace   TraceValue            `json:"trace,omitzero"`
}

// ClientInfo names the client, for logs.
type ClientInfo struct {
	Name    string `json:"name"`
	Version string `json:"version,omitzero"`
}

// WorkspaceFolder is one opened folder.
type WorkspaceFolder struct {
	URI  string `json:"uri"`
	Name string `json:"name,omitzero"`
}

// ClientCapabilities are what the client can do. What is missing is false.
type ClientCapabilities struct {
	// GuardConfirm: the client answers guard/confirm. Without it what needs
	// confirmation is denied.
	GuardConfirm bool `json:"guardConfirm,omitzero"`
	// ToolInvoke: the client answers tool/invoke.
	ToolInvoke bool `json:"toolInvoke,omitzero"`
	// ProcessOutput: the client wants process/output of what it subscribes to.
	ProcessOutput bool `json:"processOutput,omitzero"`
	// ExecutionEvents: the client wants execution/started, completed and failed.
	ExecutionEvents bool `json:"executionEvents,omitzero"`
	// Progress: the client shows $/progress for requests with a workDoneToken.
	Progress bool `json:"progress,omitzero"`
	// PreviewMaxBytes bounds the previews that artifact/published carries;
	// 0 is the service's choice.
	PreviewMaxBytes int64 `json:"previewMaxBytes,omitzero"`
}

// InitializationOptions say where the service keeps its things. Paths are
// absolute.
type InitializationOptions struct {
	// ConfigPath is the user's configuration file.
	ConfigPath string `json:"configPath,omitzero"`
	// StateDir holds sessions, DataDir artifacts.
	StateDir string `json:"stateDir,omitzero"`
	DataDir  string `json:"dataDir,omitzero"`
}

// TraceValue is how much $/logTrace tells.
type TraceValue string

// The trace values.
const (
	TraceOff      TraceValue = "off"
	TraceMessages TraceValue = "messages"
	TraceVerbose  TraceValue = "verbose"
)

// Values are all trace values.
func (TraceValue) Values() []TraceValue { return []TraceValue{TraceOff, TraceMessages, TraceVerbose} }

// InitializeResult is the service's answer to initialize.
type InitializeResult struct {
	ProtocolVersion int                `json:"protocolVersion"`
	ServerInfo      ServerInfo         `json:"serverInfo"`
	Capabilities    ServerCapabilities `json:"capabilities"`
	// ConfigPath is the user's configuration file, which need not be there.
	ConfigPath string `json:"configPath,omitzero"`
}

// ServerInfo names the service.
type ServerInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// ServerCapabilities are what this build of the service can do. A client checks
// a capability before it uses what it names.
type ServerCapabilities struct {
	// Backends are the kinds of environments that this build has.
	Backends         []string `json:"backends"`
	MaxMessageBytes  int64    `json:"maxMessageBytes"`
	MaxArtifactBytes int64    `json:"maxArtifactBytes"`
	// FileSystem: fs/*.
	FileSystem bool `json:"fileSystem"`
	// SessionFork: session/fork.
	SessionFork bool `json:"sessionFork"`
	// ProcessTTY: process/start with tty, and process/resize.
	ProcessTTY bool `json:"processTty"`
	// ProcessSubscribe: process/subscribe and process/output.
	ProcessSubscribe bool `json:"processSubscribe"`
	// Jobs: job/run.
	Jobs bool `json:"jobs"`
	// Programs: code/run, tool/offer and tool/invoke.
	Programs bool `json:"programs"`
	// GuardConfirm: the service asks with guard/confirm where a rule says so.
	GuardConfirm bool `json:"guardConfirm"`
}

// Empty is a result or a parameter that says nothing: {}.
type Empty struct{}

// CancelParams cancels a request. The request still gets exactly one answer:
// its result when it finished first, otherwise an error of kind cancelled, and
// only when its work has really stopped.
type CancelParams struct {
	ID Token `json:"id"`
}

// ProgressParams tells how a request that carried a workDoneToken gets on.
type ProgressParams struct {
	Token Token         `json:"token"`
	Value ProgressValue `json:"value"`
}

// ProgressValue is one step: begin first, then any number of report, then end.
type ProgressValue struct {
	Kind ProgressKind `json:"kind"`
	// Title stands in begin.
	Title   string `json:"title,omitzero"`
	Message string `json:"message,omitzero"`
}

// ProgressKind is where in its life a progress is.
type ProgressKind string

// The kinds of progress.
const (
	ProgressBegin  ProgressKind = "begin"
	ProgressReport ProgressKind = "report"
	ProgressEnd    ProgressKind = "end"
)

// Values are all kinds of progress.
func (ProgressKind) Values() []ProgressKind {
	return []ProgressKind{ProgressBegin, ProgressReport, ProgressEnd}
}

// SetTraceParams sets how much $/logTrace tells.
type SetTraceParams struct {
	Value TraceValue `json:"value"`
}

// LogTraceParams is one line of trace.
type LogTraceParams struct {
	Message string `json:"message"`
	// Verbose stands only when the trace is verbose.
	Verbose string `json:"verbose,omitzero"`
}

// LogMessageParams is one line of the service's log.
type LogMessageParams struct {
	Type    MessageType `json:"type"`
	Message string      `json:"message"`
}

// MessageType is how grave a log message is, as in the language server protocol.
type MessageType int

// The message types.
const (
	MessageError   MessageType = 1
	MessageWarning MessageType = 2
	MessageInfo    MessageType = 3
	MessageLog     MessageType = 4
)

// Values are all message types.
func (MessageType) Values() []MessageType {
	return []MessageType{MessageError, MessageWarning, MessageInfo, MessageLog}
}
