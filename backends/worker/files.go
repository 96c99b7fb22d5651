package worker

import (
	"context"
	"errors"
	"io"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// fileMethods are the requests for files and exports.
var fileMethods = map[string]func(ctx context.Context, o *session, r *wire.Request) (wire.Response, error){
	wire.MethodStat:          stat,
	wire.MethodReadDirectory: readDirectory,
	wire.MethodReadFile:      readFile,
	wire.MethodWriteFile:     writeFile,
	wire.MethodExportRead:    readExport,
	wire.MethodExportStream:  streamExport,
	wire.MethodExportClose:   closeExport,
}

func stat(ctx context.Context, o *session, r *wire.Request) (wire.Response, error) {
	var in wire.FilePath
	if err := r.Decode(&in); err != nil {
		return wire.Response{}, err
	}
	return data(o.tools.Stat(ctx, in.Path))
}

func readDirectory(ctx context.Context, o *session, r *wire.Request) (wire.Response, error) {
	var in wire.FilePath
	if err := r.Decode(&in); err != nil {
		return wire.Response{}, err
	}
	entries, err := o.tools.ReadDirectory(ctx, in.Path)
	reply := wire.Directory{Entries: make([]wire.FileInfo, len(entries))}
	copy(reply.Entries, entries)
	return data(reply, err)
}

func readFile(ctx context.Context, o *session, r *wire.Request) (wire.Response, error) {
	var in wire.FileRange
	if err := r.Decode(&in); err != nil {
		return wire.Response{}, err
	}
	if err := needBulk(r); err != nil {
		return wire.Response{}, err
	}
	content, err := o.tools.ReadFile(ctx, in.Path, in.Offset, in.Length)
	if err != nil {
		return wire.Response{}, err
	}
	return wire.Response{Data: struct{}{}, Body: content}, nil
}

func writeFile(ctx context.Context, o *session, r *wire.Request) (wire.Response, error) {
	var in wire.FilePath
	if err := r.Decode(&in); err != nil {
		return wire.Response{}, err
	}
	return data(o.tools.WriteFile(ctx, in.Path, r.Body))
}

func readExport(_ context.Context, o *session, r *wire.Request) (wire.Response, error) {
	var in wire.ExportRead
	if err := r.Decode(&in); err != nil {
		return wire.Response{}, err
	}
	if in.Offset < 0 {
		return wire.Response{}, tool.Errorf(tool.InvalidParams, "the offset %d is negative", in.Offset).WithPath("offset")
	}
	chunk := make([]byte, wire.ExportChunk)
	n, err := o.exports.ReadAt(in.Token, chunk, in.Offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return wire.Response{}, err
	}
	return wire.Response{Data: wire.ExportData{Data: chunk[:n], EOF: err != nil}}, nil
}

func streamExport(_ context.Context, o *session, r *wire.Request) (wire.Response, error) {
	var in wire.Export
	if err := r.Decode(&in); err != nil {
		return wire.Response{}, err
	}
	if err := needBulk(r); err != nil {
		return wire.Response{}, err
	}
	content, size, err := o.exports.Open(in.Token)
	if err != nil {
		return wire.Response{}, err
	}
	return wire.Response{Data: struct{}{}, Stream: content, Size: size}, nil
}

func closeExport(_ context.Context, o *session, r *wire.Request) (wire.Response, error) {
	var in wire.Export
	if err := r.Decode(&in); err != nil {
		return wire.Response{}, err
	}
	return data(struct{}{}, o.exports.Release(in.Token))
}

// needBulk refuses a request whose answer cannot be told a host without bodies.
func needBulk(r *wire.Request) error {
	if r.HostHas(wire.CapBulk) {
		return nil
	}
	return tool.Errorf(tool.Unsupported, "%s needs a host with the capability %s", r.Method, wire.CapBulk)
}
