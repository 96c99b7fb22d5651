// Package process starts commands and keeps them: foreground ones until they
// end, background ones in a durable registry with their output on disk.
//
// A process is known by its record, never by a bare pid. Nothing here knows
// tools or the wire.
package process

import (
	"context"

	"github.com/caisson-dev/caisson/backends/tool"
)

// Manager keeps the processes of one session. Its methods may be called
// concurrently; it has the methods of backends.Processes.
type Manager struct{}

// NewManager opens the registry. Records of a worker that died are settled
// first: what of its processes still runs is killed, and the records say lost.
// It fails with [tool.SessionBusy] while another Manager holds the session.
func NewManager(o Options) (*Manager, error) {
	return nil, tool.Errorf(tool.Unsupported, "process: not built")
}

// Start starts a background process and returns its record, which was on disk
// before the process existed. The same OperationID with the same request gives
// the same process; with another request it fails with [tool.InvalidParams]. A
// start that fails leaves no record.
func (m *Manager) Start(ctx context.Context, r tool.StartRequest) (tool.Process, error) {
	return tool.Process{}, nil
}

// Run runs a command in the foreground and waits for it. The error is about
// commands that did not run, or were killed because ctx ended; a command that
// fails is a Result.
func (m *Manager) Run(ctx context.Context, c Command) (Result, error) { return Result{}, nil }

// List returns all records, oldest first.
func (m *Manager) List(ctx context.Context) ([]tool.Process, error) { return nil, nil }

// Get returns one record. An id of another session is unknown here: it and
// every other method fail with [tool.ProcessNotFound].
func (m *Manager) Get(ctx context.Context, id string) (tool.Process, error) {
	return tool.Process{}, nil
}

// Wait waits until the process has ended and returns its record.
func (m *Manager) Wait(ctx context.Context, id string) (tool.Process, error) {
	return tool.Process{}, nil
}

// Read returns output. Without an offset it gives the tail. With one it reads
// forward, waiting up to o.Wait, at most [MaxReadWait], for output at that
// offset; TimedOut says that none came. It returns at once when the output is
// complete.
func (m *Manager) Read(ctx context.Context, id string, o tool.ReadOptions) (tool.ReadResult, error) {
	return tool.ReadResult{}, nil
}

// Write writes data, at most [MaxWriteBytes], to the process's stdin and waits
// until it is taken. When ctx ends first the error says how much was written.
func (m *Manager) Write(ctx context.Context, id string, data []byte) (tool.Process, error) {
	return tool.Process{}, nil
}

// CloseStdin ends the process's input; on a terminal it types the end-of-file
// character.
func (m *Manager) CloseStdin(ctx context.Context, id string) (tool.Process, error) {
	return tool.Process{}, nil
}

// Resize sets the size of the process's terminal.
func (m *Manager) Resize(ctx context.Context, id string, size tool.TTY) (tool.Process, error) {
	return tool.Process{}, nil
}

// Signal sends a signal by name ("SIGINT") to the process group.
func (m *Manager) Signal(ctx context.Context, id, signal string) (tool.Process, error) {
	return tool.Process{}, nil
}

// Stop sends SIGTERM to the process group, after [TermGrace] SIGKILL, and
// fails when after [KillGrace] something is still there. Stopping what has
// ended is no error.
func (m *Manager) Stop(ctx context.Context, id string) (tool.Process, error) {
	return tool.Process{}, nil
}

// InputAvailable reports whether the process still takes input.
func (m *Manager) InputAvailable(ctx context.Context, id string) (bool, error) { return false, nil }

// CompletionPending reports whether the process has ended and nobody has
// called CompletionDelivered yet.
func (m *Manager) CompletionPending(ctx context.Context, id string) (bool, error) { return false, nil }

// CompletionDelivered notes that somebody was told of the end.
func (m *Manager) CompletionDelivered(ctx context.Context, id string) (tool.Process, error) {
	return tool.Process{}, nil
}

// SetCompletionMode stores the mode in the record.
func (m *Manager) SetCompletionMode(ctx context.Context, id, mode string) (tool.Process, error) {
	return tool.Process{}, nil
}

// Cleanup forgets every process that has ended and whose output is complete,
// and returns the records that went.
func (m *Manager) Cleanup(ctx context.Context) ([]tool.Process, error) { return nil, nil }

// Live counts the commands that run now, foreground ones included.
func (m *Manager) Live() int { return 0 }

// Close stops and reaps every process that the Manager still holds, with all
// their descendants that can be found, and lets go of the session. It takes at
// most [TermGrace] + [KillGrace] and a little; an end of ctx skips to SIGKILL.
// The error names what could not be stopped.
func (m *Manager) Close(ctx context.Context) error { return nil }

// Settle does for a session whose worker died what [NewManager] would do
// first, and returns the records that are lost now.
func Settle(stateDir, session string) ([]tool.Process, error) { return nil, nil }
