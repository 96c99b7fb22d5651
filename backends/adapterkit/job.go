package adapterkit

import (
	"context"
	"io"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// runJob calls RunJob with what the frame and its body say.
func (b *handled) runJob(ctx context.Context, r *Request) (wire.Response, error) {
	var in wire.Job
	if err := r.Decode(&in); err != nil {
		return wire.Response{}, err
	}
	if !r.HostHas(wire.CapBulk) {
		return wire.Response{}, tool.Errorf(tool.Unsupported, "%s needs a host with the capability %s", r.Method, wire.CapBulk)
	}
	if err := knownMode(&in.PermissionMode); err != nil {
		return wire.Response{}, err
	}
	job, err := in.Request(r.Body)
	if err != nil {
		return wire.Response{}, err
	}
	result, err := b.h.RunJob(ctx, job)
	if err != nil {
		return wire.Response{}, err
	}
	done, body := wire.NewJobDone(result)
	return wire.Response{Data: done, Body: body}, nil
}

// stream answers export/stream by what export/read would answer. How long the
// snapshot is has to be told before its first byte, so that it is read twice, and
// never held whole.
func (b *handled) stream(ctx context.Context, r *Request) (wire.Response, error) {
	var in wire.Export
	if err := r.Decode(&in); err != nil {
		return wire.Response{}, err
	}
	size, err := io.Copy(io.Discard, &snapshot{ctx: ctx, read: b.h.Exports.Read, token: in.Token})
	if err != nil {
		return wire.Response{}, err
	}
	content := &snapshot{ctx: ctx, read: b.h.Exports.Read, token: in.Token}
	return wire.Response{Data: struct{}{}, Stream: content, Size: size}, nil
}

// snapshot reads an export from its beginning, chunk by chunk.
type snapshot struct {
	ctx    context.Context
	read   func(ctx context.Context, token string, offset int64) ([]byte, bool, error)
	token  string
	offset int64
	rest   []byte
	err    error // after rest
}

// Read reads on.
func (s *snapshot) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		chunk, last, err := s.read(s.ctx, s.token, s.offset)
		switch {
		case err != nil:
			s.err = err
			return 0, err
		case last:
			s.err = io.EOF
		case len(chunk) == 0:
			s.err = tool.Errorf(tool.Internal, "export/read: an empty chunk that is not the last")
		}
		s.rest, s.offset = chunk, s.offset+int64(len(chunk))
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// Close gives up; the snapshot stays.
func (s *snapshot) Close() error {
	s.rest, s.err = nil, io.ErrClosedPipe
	return nil
}
