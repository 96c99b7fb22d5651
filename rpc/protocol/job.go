package protocol

import "encoding/json"

// JobRunParams runs one command to its end, in a fresh directory of an
// environment unless CWD says where. One of SessionID and Profile stands, and
// one of Argv and Script.
type JobRunParams struct {
	SessionID string `json:"sessionId,omitzero"`
	Profile   string `json:"profile,omitzero"`
	// Argv is run without a shell.
	Argv   []string `json:"argv,omitempty"`
	Script *Script  `json:"script,omitzero"`
	// InputFiles are put into the directory, by their paths, which are relative,
	// have slashes and stay inside. They may be programs.
	InputFiles map[string]InputFile `json:"inputFiles,omitempty"`
	// CWD is a directory of the workspace. Nothing is removed there, and only what
	// Collect names comes back.
	CWD string `json:"cwd,omitzero"`
	// Stdin is all that the program reads from its standard input.
	Stdin          string            `json:"stdin,omitzero"`
	Env            map[string]string `json:"env,omitempty"`
	Actor          *Actor            `json:"actor,omitzero"`
	PermissionMode PermissionMode    `json:"permissionMode,omitzero"`
	Constraints    *Constraints      `json:"constraints,omitzero"`
	// Encoding is of the output; utf8 when missing.
	Encoding Encoding `json:"encoding,omitzero"`
	// Collect are globs of what comes back as artifacts, relative to the directory
	// ("*.csv", "out/**"); missing means all that the job left. Input files and the
	// script never do, changed or not.
	Collect []string `json:"collect,omitempty"`
	// CallID, RunID and NodeName are as in tool/call.
	CallID        string `json:"callId,omitzero"`
	RunID         string `json:"runId,omitzero"`
	NodeName      string `json:"nodeName,omitzero"`
	WorkDoneToken Token  `json:"workDoneToken,omitzero"`
}

// Script is a program text and what runs it.
type Script struct {
	Interpreter string `json:"interpreter"`
	Source      string `json:"source"`
}

// InputFile is a file's content; one of its members stands.
type InputFile struct {
	Text   *string `json:"text,omitzero"`
	Base64 []byte  `json:"base64,omitempty"`
}

// JobRunResult is the answer to job/run.
type JobRunResult struct {
	Stdout   string   `json:"stdout"`
	Stderr   string   `json:"stderr"`
	Encoding Encoding `json:"encoding"`
	// Lossy says that the output held what is no UTF-8.
	Lossy bool `json:"lossy,omitzero"`
	// ExitCode is -1 where a signal ended the program, which Signal names then.
	ExitCode int    `json:"exitCode"`
	Signal   string `json:"signal,omitzero"`
	// TimedOut says that the job was killed at its time limit.
	TimedOut bool `json:"timedOut"`
	// Truncated says that more was written than is returned.
	Truncated bool       `json:"truncated"`
	Artifacts []Artifact `json:"artifacts"`
	// FilesDropped counts files that the job left and that are no artifacts,
	// because there were too many, or they were too large.
	FilesDropped int `json:"filesDropped,omitzero"`
	// FuelRemaining is what was left of a WebAssembly module's fuel.
	FuelRemaining *uint64 `json:"fuelRemaining,omitzero"`
}

// CodeRunParams runs a program that calls tools.
type CodeRunParams struct {
	SessionID string `json:"sessionId"`
	Code      string `json:"code"`
	// Tools are the tools that the program may call; missing means all, those that
	// the client offered included. An empty list is none.
	Tools []string `json:"tools,omitzero"`
	// TimeoutMs is the environment's when missing, and never longer.
	TimeoutMs  int64      `json:"timeoutMs,omitzero"`
	ResultView ResultView `json:"resultView,omitzero"`
	// What follows is as in tool/call, and holds for the program's calls too.
	CallID         string         `json:"callId,omitzero"`
	Actor          *Actor         `json:"actor,omitzero"`
	PermissionMode PermissionMode `json:"permissionMode,omitzero"`
	RunID          string         `json:"runId,omitzero"`
	NodeName       string         `json:"nodeName,omitzero"`
	WorkDoneToken  Token          `json:"workDoneToken,omitzero"`
}

// ResultView is what a program sees of a tool's result.
type ResultView string

// The views of a result.
const (
	ResultViewContent    ResultView = "content"
	ResultViewStructured ResultView = "structured"
)

// Values are all views of a result.
func (ResultView) Values() []ResultView { return []ResultView{ResultViewContent, ResultViewStructured} }

// CodeRunResult is the answer to code/run. A program that fails or times out is
// an answer with Error.
type CodeRunResult struct {
	Logs        []string        `json:"logs"`
	Value       json.RawMessage `json:"value"`
	Error       string          `json:"error,omitzero"`
	Media       []Content       `json:"media,omitempty"`
	CallSummary json.RawMessage `json:"callSummary,omitempty"`
}
