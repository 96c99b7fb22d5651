package local

import (
	"context"

	"github.com/caisson-dev/caisson/backends"
)

// The near half answers for files as people see them, as calls that Detach waits
// for: the folder is not closed under one.

// Stat describes one entry.
func (e *environment) Stat(ctx context.Context, path string) (backends.FileInfo, error) {
	return nearly(ctx, e, func(ctx context.Context) (backends.FileInfo, error) { return e.Set.Stat(ctx, path) })
}

// ReadDirectory lists a directory.
func (e *environment) ReadDirectory(ctx context.Context, path string) ([]backends.FileInfo, error) {
	return nearly(ctx, e, func(ctx context.Context) ([]backends.FileInfo, error) { return e.Set.ReadDirectory(ctx, path) })
}

// ReadFile reads a piece of a file.
func (e *environment) ReadFile(ctx context.Context, path string, offset, length int64) ([]byte, error) {
	return nearly(ctx, e, func(ctx context.Context) ([]byte, error) { return e.Set.ReadFile(ctx, path, offset, length) })
}

// WriteFile replaces a file.
func (e *environment) WriteFile(ctx context.Context, path string, data []byte) (backends.FileInfo, error) {
	return nearly(ctx, e, func(ctx context.Context) (backends.FileInfo, error) { return e.Set.WriteFile(ctx, path, data) })
}

// nearly does something in this process, until the environment is let go of.
func nearly[T any](ctx context.Context, e *environment, do func(context.Context) (T, error)) (T, error) {
	ctx, done, err := e.begin(ctx)
	if err != nil {
		var none T
		return none, err
	}
	defer done()
	return do(ctx)
}
