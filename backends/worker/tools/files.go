package tools

import (
	"context"

	"github.com/caisson-dev/caisson/backends/tool"
)

// Stat describes one entry; a symbolic link is described itself.
func (s *Set) Stat(ctx context.Context, path string) (tool.FileInfo, error) {
	return tool.FileInfo{}, nil
}

// ReadDirectory lists a directory, sorted by name.
func (s *Set) ReadDirectory(ctx context.Context, path string) ([]tool.FileInfo, error) {
	return nil, nil
}

// ReadFile returns at most length bytes from offset on.
func (s *Set) ReadFile(ctx context.Context, path string, offset, length int64) ([]byte, error) {
	return nil, nil
}

// WriteFile replaces the file atomically.
func (s *Set) WriteFile(ctx context.Context, path string, data []byte) (tool.FileInfo, error) {
	return tool.FileInfo{}, nil
}
