// Package worker is the far end of an environment: the server of wire protocol
// 4 that gives one session its files, tools and processes. It glues the rooms
// below it together and decides who may connect, what a connection may ask for
// and when the worker ends; how a tool works or a process is started is theirs.
package worker

import (
	"context"
	"errors"
	"path/filepath"
)

// ErrIdle is what [Run] returns when nobody was connected for the lifetime: an
// orderly end that nobody asked for.
var ErrIdle = errors.New("no connection for the worker's lifetime")

// Run serves one session until its end and returns when every process that it
// held is stopped and reaped. On stdio that is the end of input; on a socket a
// shutdown request, the lifetime ([ErrIdle]) or the end of ctx. Any other error
// says what could not be served or cleaned up; then the workspace and the state
// directory are kept for inspection.
func Run(ctx context.Context, o Options) error {
	return errors.ErrUnsupported
}

// SessionDir is the directory of one session's records below a state directory.
func SessionDir(state, session string) string { return filepath.Join(state, "sessions", session) }
