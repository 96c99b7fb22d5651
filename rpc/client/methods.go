package client

import (
	"context"

	"github.com/caisson-dev/caisson/rpc/protocol"
)

// The typed methods. Each makes the request of its name; what it does, returns
// and refuses is documented at the types of rpc/protocol.

// Initialize begins the connection: initialize, and initialized when that
// succeeded.
func (c *Client) Initialize(ctx context.Context, p protocol.InitializeParams) (protocol.InitializeResult, error) {
	r, err := call[protocol.InitializeResult](ctx, c, protocol.MethodInitialize, p)
	if err != nil {
		return r, err
	}
	return r, c.Notify(ctx, protocol.MethodInitialized, protocol.Empty{})
}

// Shutdown detaches the service from its environments; only Exit may follow.
func (c *Client) Shutdown(ctx context.Context) error {
	return c.Call(ctx, protocol.MethodShutdown, nil, nil)
}

// Exit ends the service. [Client.Close] does both, and waits.
func (c *Client) Exit(ctx context.Context) error {
	return c.Notify(ctx, protocol.MethodExit, nil)
}

// SetTrace sets how much [Options.LogTrace] is told.
func (c *Client) SetTrace(ctx context.Context, value protocol.TraceValue) error {
	return c.Notify(ctx, protocol.MethodSetTrace, protocol.SetTraceParams{Value: value})
}

// ProfileList lists the user's profiles.
func (c *Client) ProfileList(ctx context.Context) (protocol.ProfileListResult, error) {
	return call[protocol.ProfileListResult](ctx, c, protocol.MethodProfileList, protocol.Empty{})
}

// ProfileCheck really tries a profile.
func (c *Client) ProfileCheck(ctx context.Context, p protocol.ProfileCheckParams) (protocol.Health, error) {
	return call[protocol.Health](ctx, c, protocol.MethodProfileCheck, p)
}

// BackendList says what the service can do and what is usable now.
func (c *Client) BackendList(ctx context.Context) (protocol.BackendListResult, error) {
	return call[protocol.BackendListResult](ctx, c, protocol.MethodBackendList, protocol.Empty{})
}

// BackendPrune removes what backends left behind whose owner is proven gone.
func (c *Client) BackendPrune(ctx context.Context, p protocol.BackendPruneParams) (protocol.BackendPruneResult, error) {
	return call[protocol.BackendPruneResult](ctx, c, protocol.MethodBackendPrune, p)
}

// SessionOpen makes or resumes a session.
func (c *Client) SessionOpen(ctx context.Context, p protocol.SessionOpenParams) (protocol.SessionOpenResult, error) {
	return call[protocol.SessionOpenResult](ctx, c, protocol.MethodSessionOpen, p)
}

// SessionGet returns one session.
func (c *Client) SessionGet(ctx context.Context, p protocol.SessionParams) (protocol.SessionResult, error) {
	return call[protocol.SessionResult](ctx, c, protocol.MethodSessionGet, p)
}

// SessionList lists the sessions.
func (c *Client) SessionList(ctx context.Context, p protocol.SessionListParams) (protocol.SessionListResult, error) {
	return call[protocol.SessionListResult](ctx, c, protocol.MethodSessionList, p)
}

// SessionFork makes a session of the profile that another one was bound to.
func (c *Client) SessionFork(ctx context.Context, p protocol.SessionForkParams) (protocol.SessionResult, error) {
	return call[protocol.SessionResult](ctx, c, protocol.MethodSessionFork, p)
}

// SessionClose closes a session.
func (c *Client) SessionClose(ctx context.Context, p protocol.SessionParams) (protocol.SessionResult, error) {
	return call[protocol.SessionResult](ctx, c, protocol.MethodSessionClose, p)
}

// SessionDelete closes and forgets a session and removes its environment.
func (c *Client) SessionDelete(ctx context.Context, p protocol.SessionDeleteParams) (protocol.SessionDeleteResult, error) {
	return call[protocol.SessionDeleteResult](ctx, c, protocol.MethodSessionDelete, p)
}

// ToolList lists what a session's environment offers.
func (c *Client) ToolList(ctx context.Context, p protocol.SessionParams) (protocol.ToolListResult, error) {
	return call[protocol.ToolListResult](ctx, c, protocol.MethodToolList, p)
}

// ToolCall runs one tool.
func (c *Client) ToolCall(ctx context.Context, p protocol.ToolCallParams) (protocol.ToolCallResult, error) {
	return call[protocol.ToolCallResult](ctx, c, protocol.MethodToolCall, p)
}

// ToolOffer offers the client's own tools to programs.
func (c *Client) ToolOffer(ctx context.Context, p protocol.ToolOfferParams) error {
	return c.Call(ctx, protocol.MethodToolOffer, p, nil)
}

// FileStat describes one file.
func (c *Client) FileStat(ctx context.Context, p protocol.FileParams) (protocol.FileResult, error) {
	return call[protocol.FileResult](ctx, c, protocol.MethodFileStat, p)
}

// ReadDirectory lists a directory.
func (c *Client) ReadDirectory(ctx context.Context, p protocol.FileParams) (protocol.DirectoryResult, error) {
	return call[protocol.DirectoryResult](ctx, c, protocol.MethodReadDirectory, p)
}

// FileRead reads bytes of a file.
func (c *Client) FileRead(ctx context.Context, p protocol.FileReadParams) (protocol.FileReadResult, error) {
	return call[protocol.FileReadResult](ctx, c, protocol.MethodFileRead, p)
}

// FileWrite replaces a file atomically.
func (c *Client) FileWrite(ctx context.Context, p protocol.FileWriteParams) (protocol.FileResult, error) {
	return call[protocol.FileResult](ctx, c, protocol.MethodFileWrite, p)
}

// ProcessStart starts a background process.
func (c *Client) ProcessStart(ctx context.Context, p protocol.ProcessStartParams) (protocol.ProcessResult, error) {
	return call[protocol.ProcessResult](ctx, c, protocol.MethodProcessStart, p)
}

// ProcessList lists a session's processes.
func (c *Client) ProcessList(ctx context.Context, p protocol.SessionParams) (protocol.ProcessListResult, error) {
	return call[protocol.ProcessListResult](ctx, c, protocol.MethodProcessList, p)
}

// ProcessGet returns one process.
func (c *Client) ProcessGet(ctx context.Context, p protocol.ProcessParams) (protocol.ProcessResult, error) {
	return call[protocol.ProcessResult](ctx, c, protocol.MethodProcessGet, p)
}

// ProcessStop ends a process group.
func (c *Client) ProcessStop(ctx context.Context, p protocol.ProcessParams) (protocol.ProcessResult, error) {
	return call[protocol.ProcessResult](ctx, c, protocol.MethodProcessStop, p)
}

// ProcessSignal sends a signal to a process group.
func (c *Client) ProcessSignal(ctx context.Context, p protocol.ProcessSignalParams) (protocol.ProcessResult, error) {
	return call[protocol.ProcessResult](ctx, c, protocol.MethodProcessSignal, p)
}

// ProcessWrite writes to a process's standard input.
func (c *Client) ProcessWrite(ctx context.Context, p protocol.ProcessWriteParams) (protocol.ProcessResult, error) {
	return call[protocol.ProcessResult](ctx, c, protocol.MethodProcessWrite, p)
}

// ProcessCloseStdin closes a process's standard input.
func (c *Client) ProcessCloseStdin(ctx context.Context, p protocol.ProcessParams) (protocol.ProcessResult, error) {
	return call[protocol.ProcessResult](ctx, c, protocol.MethodProcessCloseStdin, p)
}

// ProcessResize sets the size of a process's terminal.
func (c *Client) ProcessResize(ctx context.Context, p protocol.ProcessResizeParams) (protocol.ProcessResult, error) {
	return call[protocol.ProcessResult](ctx, c, protocol.MethodProcessResize, p)
}

// ProcessRead reads output of a process.
func (c *Client) ProcessRead(ctx context.Context, p protocol.ProcessReadParams) (protocol.ProcessReadResult, error) {
	return call[protocol.ProcessReadResult](ctx, c, protocol.MethodProcessRead, p)
}

// ProcessWait waits for a process to end.
func (c *Client) ProcessWait(ctx context.Context, p protocol.ProcessWaitParams) (protocol.ProcessWaitResult, error) {
	return call[protocol.ProcessWaitResult](ctx, c, protocol.MethodProcessWait, p)
}

// ProcessSubscribe asks for a process's output as it comes, told to
// [Options.ProcessOutput].
func (c *Client) ProcessSubscribe(ctx context.Context, p protocol.ProcessSubscribeParams) (protocol.ProcessSubscribeResult, error) {
	return call[protocol.ProcessSubscribeResult](ctx, c, protocol.MethodProcessSubscribe, p)
}

// ProcessUnsubscribe ends a subscription.
func (c *Client) ProcessUnsubscribe(ctx context.Context, p protocol.ProcessParams) error {
	return c.Call(ctx, protocol.MethodProcessUnsubscribe, p, nil)
}

// ArtifactPublish publishes a file as an immutable artifact.
func (c *Client) ArtifactPublish(ctx context.Context, p protocol.ArtifactPublishParams) (protocol.ArtifactPublished, error) {
	return call[protocol.ArtifactPublished](ctx, c, protocol.MethodArtifactPublish, p)
}

// ArtifactList lists artifacts.
func (c *Client) ArtifactList(ctx context.Context, p protocol.ArtifactListParams) (protocol.ArtifactListResult, error) {
	return call[protocol.ArtifactListResult](ctx, c, protocol.MethodArtifactList, p)
}

// ArtifactRead reads bytes of an artifact.
func (c *Client) ArtifactRead(ctx context.Context, p protocol.ArtifactReadParams) (protocol.ArtifactReadResult, error) {
	return call[protocol.ArtifactReadResult](ctx, c, protocol.MethodArtifactRead, p)
}

// ArtifactPreview makes a preview of an artifact.
func (c *Client) ArtifactPreview(ctx context.Context, p protocol.ArtifactPreviewParams) (protocol.Preview, error) {
	return call[protocol.Preview](ctx, c, protocol.MethodArtifactPreview, p)
}

// ArtifactSave writes an artifact to a file of the host.
func (c *Client) ArtifactSave(ctx context.Context, p protocol.ArtifactSaveParams) error {
	return c.Call(ctx, protocol.MethodArtifactSave, p, nil)
}

// ArtifactDelete removes an artifact.
func (c *Client) ArtifactDelete(ctx context.Context, p protocol.ArtifactDeleteParams) error {
	return c.Call(ctx, protocol.MethodArtifactDelete, p, nil)
}

// JobRun runs one command to its end and collects what it left.
func (c *Client) JobRun(ctx context.Context, p protocol.JobRunParams) (protocol.JobRunResult, error) {
	return call[protocol.JobRunResult](ctx, c, protocol.MethodJobRun, p)
}

// CodeRun runs a program that calls tools.
func (c *Client) CodeRun(ctx context.Context, p protocol.CodeRunParams) (protocol.CodeRunResult, error) {
	return call[protocol.CodeRunResult](ctx, c, protocol.MethodCodeRun, p)
}

// call makes a request with a typed result.
func call[R any](ctx context.Context, c *Client, method string, params any) (R, error) {
	var result R
	err := c.Call(ctx, method, params, &result)
	return result, err
}
