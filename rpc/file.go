package rpc

import (
	"context"
	"encoding/base64"
	"strconv"

	"go.lsp.dev/jsonrpc2"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

func fileMethods() map[string]method {
	return map[string]method{
		protocol.MethodFileStat:      {handle: bind((*request).fileStat), class: slotted},
		protocol.MethodReadDirectory: {handle: bind((*request).readDirectory), class: slotted},
		protocol.MethodFileRead:      {handle: bind((*request).fileRead), class: slotted},
		protocol.MethodFileWrite:     {handle: bind((*request).fileWrite), class: slotted},
	}
}

func (r *request) fileStat(ctx context.Context, p *protocol.FileParams) (*protocol.FileResult, error) {
	info, err := r.sessions().Stat(ctx, p.SessionID, p.Path)
	return fileResult(info, err)
}

func fileResult(info backends.FileInfo, err error) (*protocol.FileResult, error) {
	if err != nil {
		return nil, err
	}
	return &protocol.FileResult{File: toFile(info)}, nil
}

func (r *request) readDirectory(ctx context.Context, p *protocol.FileParams) (*protocol.DirectoryResult, error) {
	list, err := r.sessions().ReadDirectory(ctx, p.SessionID, p.Path)
	if err != nil {
		return nil, err
	}
	out := &protocol.DirectoryResult{Entries: make([]protocol.FileInfo, len(list))}
	for i, info := range list {
		out.Entries[i] = toFile(info)
	}
	return out, nil
}

func (r *request) fileRead(ctx context.Context, p *protocol.FileReadParams) (jsonrpc2.RawMessage, error) {
	length := int64(backends.MaxFileRead)
	if p.Length != nil {
		length = min(length, *p.Length)
	}
	switch {
	case p.Offset < 0:
		return nil, invalidParams("offset", "offset must not be negative")
	case length < 0:
		return nil, invalidParams("length", "length must not be negative")
	}
	if err := r.countFile(ctx, p, length); err != nil {
		return nil, err
	}
	data, err := r.sessions().ReadFile(ctx, p.SessionID, p.Path, p.Offset, length)
	if err != nil {
		return nil, err
	}
	// A full piece may be the last one: only a further read, of nothing, tells.
	return bytesResult(data, p.Offset, int64(len(data)) < length), nil
}

// countFile takes room for what is going to be read, before it is. Where there
// is none for all that may come, the file is asked for its size.
func (r *request) countFile(ctx context.Context, p *protocol.FileReadParams, length int64) error {
	if r.expect(length) {
		return nil
	}
	info, err := r.sessions().Stat(ctx, p.SessionID, p.Path)
	if err != nil {
		return err
	}
	return r.count(encodedSize(max(0, min(length, info.Size-p.Offset))))
}

// encodedSize is the size of an answer that holds n bytes in base64.
func encodedSize(n int64) int64 { return (n+2)/3*4 + answerEnvelope }

// answerEnvelope is what such an answer has beside, in bytes.
const answerEnvelope = 64

func (r *request) fileWrite(ctx context.Context, p *protocol.FileWriteParams) (*protocol.FileResult, error) {
	if len(p.Data) > backends.MaxFileRead {
		return nil, invalidParams("data", "data must be at most %d MiB", backends.MaxFileRead>>20)
	}
	info, err := r.sessions().WriteFile(ctx, p.SessionID, p.Path, p.Data)
	return fileResult(info, err)
}

// bytesResult writes a [protocol.FileReadResult] or [protocol.ArtifactReadResult]
// by hand: an encoder would copy megabytes of base64 once more.
func bytesResult(data []byte, offset int64, eof bool) jsonrpc2.RawMessage {
	dst := make([]byte, 0, encodedSize(int64(len(data))))
	dst = append(dst, `{"data":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, data)
	dst = append(dst, `","offset":`...)
	dst = strconv.AppendInt(dst, offset, 10)
	dst = append(dst, `,"eof":`...)
	return append(strconv.AppendBool(dst, eof), '}')
}
