package remote

import (
	"context"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// file asks for something about files, of a far end that knows how.
func (e *Environment) file(ctx context.Context, what, path string, r wire.ClientRequest, out any) (wire.Reply, error) {
	ctx, cancel := e.deadlines.within(ctx, requestTimeout)
	defer cancel()
	reply, err := e.do(ctx, func(c *connection) (wire.ClientRequest, error) {
		for _, capability := range []string{wire.CapFS, wire.CapBulk} {
			if !c.Has(capability) {
				return r, lacking("show its files", capability)
			}
		}
		r.Prompt = true
		return r, nil
	})
	if err == nil && out != nil {
		err = reply.Decode(out)
	}
	if err != nil {
		return reply, about(what+" "+path, err)
	}
	return reply, nil
}

// Stat describes the file at path.
func (e *Environment) Stat(ctx context.Context, path string) (info backends.FileInfo, err error) {
	_, err = e.file(ctx, "looking at", path, wire.ClientRequest{Method: wire.MethodStat, Data: wire.FilePath{Path: path}}, &info)
	return info, err
}

// ReadDirectory describes the entries of the directory at path.
func (e *Environment) ReadDirectory(ctx context.Context, path string) ([]backends.FileInfo, error) {
	var d wire.Directory
	_, err := e.file(ctx, "reading the directory", path, wire.ClientRequest{Method: wire.MethodReadDirectory, Data: wire.FilePath{Path: path}}, &d)
	return d.Entries, err
}

// ReadFile reads at most length bytes from offset on; a length below 0 means to
// the end. It never returns more than [backends.MaxFileRead].
func (e *Environment) ReadFile(ctx context.Context, path string, offset, length int64) ([]byte, error) {
	if offset < 0 {
		return nil, tool.Errorf(tool.InvalidParams, "the offset %d is negative", offset).WithPath("offset")
	}
	limit := int64(backends.MaxFileRead)
	if length >= 0 {
		limit = min(length, limit)
		length = limit
	}
	if limit == 0 {
		return nil, nil
	}
	reply, err := e.file(ctx, "reading", path, wire.ClientRequest{
		Method: wire.MethodReadFile, Data: wire.FileRange{Path: path, Offset: offset, Length: length}, MaxBody: limit,
	}, nil)
	return reply.Body, err
}

// WriteFile replaces the file at path, keeping its mode.
func (e *Environment) WriteFile(ctx context.Context, path string, data []byte) (info backends.FileInfo, err error) {
	if len(data) > backends.MaxFileRead {
		return info, tool.Errorf(tool.InvalidParams, "%d bytes are more than the %d that one write can take", len(data), backends.MaxFileRead).WithPath("data")
	}
	_, err = e.file(ctx, "writing", path, wire.ClientRequest{Method: wire.MethodWriteFile, Data: wire.FilePath{Path: path}, Body: data}, &info)
	return info, err
}
