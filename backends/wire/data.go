package wire

import (
	"encoding/json"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// Initialize is the data of initialize. All but Capabilities and Socket is
// the binding, which never changes once it was accepted, but for
// RequireExistingWorkspace: a host that comes back requires what it once had.
type Initialize struct {
	Version int `json:"version"`
	// Root is the absolute path of the workspace.
	Root string `json:"root"`
	// Session and Identity are one path component each; Identity may be empty.
	Session  string `json:"session"`
	Identity string `json:"identity,omitempty"`
	// Environment holds variables for commands. A reconnecting host may leave it
	// out (nil), which means "as first given".
	Environment              map[string]string `json:"environment,omitempty"`
	RequireExistingWorkspace bool              `json:"require_existing_workspace,omitempty"`
	RemoveWorkspaceOnExit    bool              `json:"remove_workspace_on_exit,omitempty"`

	// Capabilities are what the host understands, so that a worker sends bodies
	// and error details to no host that does not.
	Capabilities []string `json:"capabilities,omitempty"`
	// Socket is where the host listens for this worker too, where [CapSocket] is known.
	Socket *SocketOffer `json:"socket,omitempty"`
}

// Initialized is the reply to initialize.
type Initialized struct {
	Version int `json:"version"`
	// Root is the workspace with its symlinks resolved.
	Root         string   `json:"root"`
	Capabilities []string `json:"capabilities,omitempty"`
	// SocketConnected says that the worker has connected to the host's Socket.
	SocketConnected bool `json:"socket_connected,omitempty"`
}

// SocketOffer says where a host listens for one worker.
type SocketOffer struct {
	// Path is the socket's file name in the directory that both sides see.
	Path string `json:"path"`
	// Nonce is the secret that the worker proves to know over the socket
	// ([AnswerSocket], [CheckSocket]).
	Nonce string `json:"nonce"`
}

// Execute is the data of execute.
type Execute struct {
	Call ToolCall `json:"call"`
	// Actor is never empty; the session itself is the main agent.
	Actor string `json:"actor"`
	// ActorKind is [tool.ActorSideChat] for a side chat, else empty. Only with
	// [CapActors].
	ActorKind             tool.ActorKind `json:"actor_kind,omitempty"`
	PermissionMode        tool.Mode      `json:"permission_mode,omitempty"`
	GitAttributionEnabled bool           `json:"git_attribution_enabled,omitempty"`
	// MaxOutputBytes bounds what a command returns; 0 is the worker's own
	// limit. Only with [CapLimits].
	MaxOutputBytes int64 `json:"max_output_bytes,omitempty"`
}

// ToolCall is one call of a tool. Arguments is the text of a JSON object; it is
// empty when that text is the request's body.
type ToolCall struct {
	ID        string `json:"id,omitempty"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// ProcessRequest is the data of every process/* request but process/start,
// whose data is a [tool.StartRequest].
type ProcessRequest struct {
	ID       string       `json:"id,omitempty"`
	Input    string       `json:"input,omitempty"` // or the body
	Cols     uint16       `json:"cols,omitempty"`
	Rows     uint16       `json:"rows,omitempty"`
	Options  *ReadOptions `json:"options,omitempty"`
	Minutes  int          `json:"minutes,omitempty"`
	Consumer string       `json:"consumer,omitempty"`
	Mode     string       `json:"mode,omitempty"`
	Signal   string       `json:"signal,omitempty"`
}

// ReadOptions are the options of process/read; durations are nanoseconds.
type ReadOptions struct {
	MaxBytes    int    `json:"MaxBytes"`
	OffsetBytes *int64 `json:"OffsetBytes"`
	Wait        int64  `json:"Wait"`
	MinDwell    int64  `json:"MinDwell"`
	// Encoding asks for "base64" Output. Only with [CapBulk].
	Encoding string `json:"Encoding,omitempty"`
}

// EncodingBase64 is the one value of the members Encoding.
const EncodingBase64 = "base64"

// Tool is o as the rooms beyond the wire know it.
func (o ReadOptions) Tool() tool.ReadOptions {
	return tool.ReadOptions{
		MaxBytes: o.MaxBytes, OffsetBytes: o.OffsetBytes,
		Wait: time.Duration(o.Wait), MinDwell: time.Duration(o.MinDwell),
	}
}

// ProcessRead is the reply to process/read. Output is text unless Encoding says
// otherwise; where both ends can, it is empty and the bytes are the body.
type ProcessRead struct {
	Process     tool.Process `json:"Process"`
	Output      string       `json:"Output"`
	Encoding    string       `json:"Encoding,omitempty"`
	StartOffset int64        `json:"StartOffset"`
	EndOffset   int64        `json:"EndOffset"`
	TotalBytes  int64        `json:"TotalBytes"`
	Truncated   bool         `json:"Truncated"`
	TimedOut    bool         `json:"TimedOut"`
	Duration    int64        `json:"Duration"` // nanoseconds
}

// ProcessCleanup is the reply to process/cleanup.
type ProcessCleanup struct {
	Cleaned []tool.Process `json:"Cleaned"`
}

// RunCode is the data of run_code.
type RunCode struct {
	Program        Program   `json:"program"`
	TimeoutMS      int64     `json:"timeout_ms"` // 0 is none
	Actor          string    `json:"actor"`
	PermissionMode tool.Mode `json:"permission_mode,omitempty"`
}

// Program is the code of run_code and what it may call.
type Program struct {
	Code  string        `json:"code"`
	Tools []ProgramTool `json:"tools"`
	// ResultView is "content" (the default) or "structured".
	ResultView string `json:"result_view,omitempty"`
}

// ProgramTool is one tool that a program may call.
type ProgramTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema,omitempty"`
}

// RunCodeResult is the reply to run_code. A program that fails or times out
// says so in Error.
type RunCodeResult struct {
	Logs        []string        `json:"Logs"`
	Value       json.RawMessage `json:"Value,omitempty"`
	Error       string          `json:"Error,omitempty"`
	Media       json.RawMessage `json:"Media,omitempty"`
	CallSummary json.RawMessage `json:"CallSummary,omitempty"`
}

// Export is the data of export/close and export/stream.
type Export struct {
	Token string `json:"token"`
}

// ExportRead is the data of export/read.
type ExportRead struct {
	Token  string `json:"token"`
	Offset int64  `json:"offset"`
}

// ExportData is the reply to export/read: at most [ExportChunk] bytes, base64
// on the wire.
type ExportData struct {
	Data []byte `json:"data"`
	EOF  bool   `json:"eof"`
}

// FilePath is the data of fs/stat, fs/read_directory and fs/write_file, whose
// content is the body.
type FilePath struct {
	Path string `json:"path"`
}

// FileRange is the data of fs/read_file, whose reply's body is the content. A
// Length below 0 means to the end.
type FileRange struct {
	Path   string `json:"path"`
	Offset int64  `json:"offset"`
	Length int64  `json:"length"`
}

// FileInfo is the reply to fs/stat and fs/write_file.
type FileInfo = tool.FileInfo

// Directory is the reply to fs/read_directory.
type Directory struct {
	Entries []FileInfo `json:"entries"`
}

// ToolList is the reply to tools/list.
type ToolList struct {
	Tools []tool.Description `json:"tools"`
}

// PackAdd is the data of packs/add. Its body, if it has one, is the pack's source.
type PackAdd struct {
	Name    string   `json:"name"`
	Command []string `json:"command"`
	// SHA256 is that of the source, in hex; empty for a pack that is in the
	// environment already.
	SHA256 string `json:"sha256,omitempty"`
}

// PackAdded is the reply to packs/add.
type PackAdded struct {
	// NeedSource says that the source is not there: it is to be asked again, with
	// the source as the body.
	NeedSource bool               `json:"need_source,omitempty"`
	Tools      []tool.Description `json:"tools,omitempty"`
}

// Shutdown is the data of shutdown.
type Shutdown struct {
	// Remove removes the workspace after the processes have ended.
	Remove bool `json:"remove"`
	// Forget removes, after that, what the worker keeps of the session: records,
	// output, temporary files, exports. Only with [CapForget].
	Forget bool `json:"forget,omitempty"`
}
