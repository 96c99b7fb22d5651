package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session/config"
	"github.com/caisson-dev/caisson/session/store"
)

// known turns an error into one that has a kind. What has none comes from this
// machine: its files, or the end of a context.
func known(err error) error {
	var (
		has    *tool.Error
		busy   *store.BusyError
		broken *store.BrokenError
		bad    *config.Error
	)
	switch {
	case err == nil, errors.As(err, &has):
		return err
	case errors.As(err, &bad):
		return configInvalid(bad)
	case errors.Is(err, context.Canceled): // of a wait for a lock too, which is busy
		return tool.Errorf(tool.Cancelled, "%w", err)
	case errors.Is(err, context.DeadlineExceeded):
		return tool.Errorf(tool.Timeout, "%w", err)
	case errors.As(err, &busy):
		return tool.Errorf(tool.SessionBusy, "%w", err)
	case errors.As(err, &broken):
		return tool.Errorf(tool.Internal, "%w", err).WithPath(broken.File).
			WithHint("It was left as it is. Move it away to go on without it.")
	}
	e := tool.Errorf(tool.Internal, "%w", err)
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		e = e.WithDisk(filepath.Dir(at.Path))
	}
	return e
}

// ended is the error of something that waited until its context was over.
func ended(ctx context.Context, format string, args ...any) *tool.Error {
	return tool.Errorf(tool.EndKind(ctx), "%s: %w", fmt.Sprintf(format, args...), context.Cause(ctx))
}

// kept is an error as it is saved with a session.
func kept(err error) *store.Failure {
	f := &store.Failure{Kind: string(tool.KindOf(err)), Message: err.Error()}
	if e, ok := errors.AsType[*tool.Error](err); ok {
		f.Hint = e.Hint
	}
	return f
}

// restored is an error that was saved.
func restored(f store.Failure) error {
	return &tool.Error{Kind: tool.Kind(f.Kind), Message: f.Message, Hint: f.Hint}
}

func unknownSession(id string) error {
	return tool.Errorf(tool.SessionNotFound, "there is no session %q", id).
		WithHint("session/list names the sessions that there are, and session/open makes one.")
}

func invalid(path, format string, args ...any) *tool.Error {
	return tool.Errorf(tool.InvalidParams, format, args...).WithPath(path)
}

// ConfigError is an error of the user's file as a session's methods give it.
func ConfigError(err error) error { return known(err) }

func configInvalid(err *config.Error) error {
	e := tool.Errorf(tool.ConfigInvalid, "%w", err).WithPath(err.Path).
		WithHint("Correct the file; sessions that exist can be resumed meanwhile.")
	if err.Hint != "" {
		e.Hint = err.Hint
	}
	return e
}

// busySession names who owns a session.
func busySession(id string, err error) error {
	if tool.KindOf(known(err)) != tool.SessionBusy {
		return known(err)
	}
	e := tool.Errorf(tool.SessionBusy, "the session %q is %w", id, err)
	e.Retryable = true
	return e.WithHint("Close it there, or end that process; its sessions can be resumed here then.")
}
