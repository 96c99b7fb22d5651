package session

import (
	"context"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// The file tools that people's accesses go with.
const (
	readFile  = "read_file"
	listFiles = "list_files"
	writeFile = "write_file"
)

// withFiles runs f on the session's files, where the file tool of the name goes.
func (m *Manager) withFiles(ctx context.Context, id, name string, f func(ctx context.Context, p *place, files backends.FileSystem) error) error {
	u := onlyReads()
	if name == writeFile {
		u = use{}
	}
	return m.withPlace(ctx, id, tool.GroupFile, name, u, func(ctx context.Context, p *place, env backends.Environment) error {
		files, ok := env.(backends.FileSystem)
		if !ok {
			return tool.Errorf(tool.Unsupported, "the environment of the profile %q does not show its files", p.saved.Profile.Name).
				WithHint("Use the tools read_file and list_files instead.")
		}
		return f(ctx, p, files)
	})
}

// Stat describes one file of the environment; a link at the end is not followed.
func (m *Manager) Stat(ctx context.Context, id, path string) (info backends.FileInfo, err error) {
	err = m.withFiles(ctx, id, readFile, func(ctx context.Context, _ *place, files backends.FileSystem) error {
		info, err = files.Stat(ctx, path)
		return err
	})
	return info, err
}

// ReadDirectory lists a directory of the environment by name.
func (m *Manager) ReadDirectory(ctx context.Context, id, path string) (list []backends.FileInfo, err error) {
	err = m.withFiles(ctx, id, listFiles, func(ctx context.Context, _ *place, files backends.FileSystem) error {
		list, err = files.ReadDirectory(ctx, path)
		return err
	})
	return list, err
}

// ReadFile returns at most length bytes from offset on; length < 0 means to
// the end, at most [backends.MaxFileRead].
func (m *Manager) ReadFile(ctx context.Context, id, path string, offset, length int64) (data []byte, err error) {
	if offset < 0 {
		return nil, invalid("offset", "the offset must not be negative")
	}
	err = m.withFiles(ctx, id, readFile, func(ctx context.Context, _ *place, files backends.FileSystem) error {
		data, err = files.ReadFile(ctx, path, offset, min(length, backends.MaxFileRead))
		return err
	})
	return data, err
}

// WriteFile replaces a file of at most [backends.MaxFileRead] bytes. A session
// that may only read denies it.
func (m *Manager) WriteFile(ctx context.Context, id, path string, data []byte) (info backends.FileInfo, err error) {
	if len(data) > backends.MaxFileRead {
		return info, invalid("data", "a file that is written has at most %d bytes", backends.MaxFileRead)
	}
	err = m.withFiles(ctx, id, writeFile, func(ctx context.Context, p *place, files backends.FileSystem) error {
		if p.toolLimits().MaxPermissionMode == tool.ReadOnly {
			return tool.Errorf(tool.Denied, "the session %q may only read", id).WithPath(path).WithHint("%s", p.toWrite(tool.Actor{}, Constraints{}))
		}
		info, err = files.WriteFile(ctx, path, data)
		return err
	})
	return info, err
}
