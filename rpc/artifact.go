package rpc

import (
	"context"
	"path/filepath"
	"unicode/utf8"

	"go.lsp.dev/jsonrpc2"

	"github.com/caisson-dev/caisson/artifacts"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

func artifactMethods() map[string]method {
	return map[string]method{
		protocol.MethodArtifactPublish: {handle: bind((*request).artifactPublish), class: slotted},
		protocol.MethodArtifactList:    {handle: bind((*request).artifactList), class: slotted},
		protocol.MethodArtifactRead:    {handle: bind((*request).artifactRead), class: slotted},
		protocol.MethodArtifactPreview: {handle: bind((*request).artifactPreview), class: slotted},
		protocol.MethodArtifactSave:    {handle: bind((*request).artifactSave), class: slotted},
		protocol.MethodArtifactDelete:  {handle: bind((*request).artifactDelete), class: slotted},
	}
}

func (s *server) artifacts() *artifacts.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.services.Artifacts
}

func (r *request) artifactPublish(ctx context.Context, p *protocol.ArtifactPublishParams) (*protocol.ArtifactPublished, error) {
	a, preview, err := r.sessions().PublishArtifact(ctx, p.SessionID, p.Path)
	if err != nil {
		return nil, err
	}
	return &protocol.ArtifactPublished{Artifact: toArtifact(a), Preview: r.boundPreview(preview)}, nil
}

func (r *request) artifactList(_ context.Context, p *protocol.ArtifactListParams) (*protocol.ArtifactListResult, error) {
	r.sessions().Follow() // what the client knows from now on is kept true
	list, err := r.artifacts().List(p.SessionID)
	if err != nil {
		return nil, artifactError("sessionId", err)
	}
	out := &protocol.ArtifactListResult{Artifacts: make([]protocol.Artifact, len(list))}
	for i, a := range list {
		out.Artifacts[i] = toArtifact(a)
	}
	return out, nil
}

func (r *request) artifactRead(_ context.Context, p *protocol.ArtifactReadParams) (jsonrpc2.RawMessage, error) {
	switch {
	case p.Offset < 0:
		return nil, invalidParams("offset", "offset must not be negative")
	case p.Length < 0:
		return nil, invalidParams("length", "length must not be negative")
	}
	length := p.Length
	if length == 0 || length > artifacts.MaxRead {
		length = artifacts.MaxRead
	}
	if !r.expect(length) {
		if err := r.count(encodedSize(length)); err != nil {
			return nil, err
		}
	}
	data, eof, err := r.artifacts().Read(p.ID, p.Offset, p.Length)
	if err != nil {
		return nil, artifactError("id", err)
	}
	return bytesResult(data, p.Offset, eof), nil
}

func (r *request) artifactPreview(_ context.Context, p *protocol.ArtifactPreviewParams) (*protocol.Preview, error) {
	if p.MaxBytes < 0 {
		return nil, invalidParams("maxBytes", "maxBytes must not be negative")
	}
	preview, err := r.artifacts().Preview(p.ID, p.MaxBytes)
	if err != nil {
		return nil, artifactError("id", err)
	}
	out := toPreview(preview)
	return &out, nil
}

func (r *request) artifactSave(ctx context.Context, p *protocol.ArtifactSaveParams) (*protocol.Empty, error) {
	if !filepath.IsAbs(p.Path) {
		return nil, invalidParams("path", "path must be absolute: it is a file of the host")
	}
	err := r.artifacts().Save(ctx, p.ID, p.Path, p.Overwrite)
	return &protocol.Empty{}, artifactError("id", err)
}

func (r *request) artifactDelete(ctx context.Context, p *protocol.ArtifactDeleteParams) (*protocol.Empty, error) {
	return &protocol.Empty{}, artifactError("uri", r.artifacts().Delete(ctx, p.URI))
}

// boundPreview cuts a preview that is pushed to what the client wants.
func (s *server) boundPreview(p artifacts.Preview) protocol.Preview {
	s.mu.Lock()
	limit := s.client.PreviewMaxBytes
	s.mu.Unlock()
	out := toPreview(p)
	if limit == 0 {
		return out
	}
	if int64(len(out.Text)) > limit {
		end := int(limit)
		for end > 0 && !utf8.RuneStart(out.Text[end]) {
			end--
		}
		out.Text, out.Truncated = out.Text[:end], true
	}
	if int64(len(out.Data)) > limit { // half an image is none
		out.Data, out.Truncated = nil, true
	}
	return out
}
