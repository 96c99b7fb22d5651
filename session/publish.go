package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/caisson-dev/caisson/artifacts"
	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// presentArtifact is the tool that makes a snapshot of a file for us.
const presentArtifact = "present_artifact"

// export is what present_artifact answers in its one text part.
type export struct {
	Token string `json:"execution_export"`
	Name  string `json:"name"`
	Size  int64  `json:"size"` // bytes
}

// exported reads the snapshot that a result names.
func exported(name string, r tool.Result) (export, bool) {
	if name != presentArtifact || r.IsError {
		return export{}, false
	}
	for _, p := range r.Content {
		var e export
		if p.Type == tool.PartText && json.Unmarshal([]byte(p.Text), &e) == nil && e.Token != "" {
			return e, true
		}
	}
	return export{}, false
}

// PublishArtifact publishes a file of the environment, as present_artifact does.
func (m *Manager) PublishArtifact(ctx context.Context, id, path string) (a artifacts.Artifact, p artifacts.Preview, err error) {
	arguments, err := json.Marshal(struct {
		Path string `json:"path"`
	}{path})
	if err != nil {
		return a, p, known(err)
	}
	err = m.withPlace(ctx, id, tool.GroupArtifact, presentArtifact, onlyReads(), func(ctx context.Context, at *place, env backends.Environment) error {
		r, err := env.Call(ctx, tool.Request{
			ID: "c-" + newID(), Name: presentArtifact, Arguments: arguments,
			Actor: tool.Actor{ID: id, Kind: tool.ActorMain}, Mode: tool.ReadOnly,
			Timeout: at.toolLimits().Timeout,
		})
		if err != nil {
			return err
		}
		e, ok := exported(presentArtifact, r)
		if !ok {
			return refused(path, r)
		}
		a, p, err = at.publish(ctx, env, path, e)
		return err
	})
	return a, p, err
}

// refused turns a result that tells a model what went wrong into an error about
// the file.
func refused(path string, r tool.Result) error {
	for _, p := range r.Content {
		if p.Type == tool.PartText {
			return tool.Errorf(tool.ArtifactNotFound, "%s", p.Text).WithPath(path)
		}
	}
	return tool.Errorf(tool.Internal, "the environment made no snapshot of the file")
}

// present publishes a snapshot for a tool call, and puts the artifact into the
// result.
func (p *place) present(ctx context.Context, env backends.Environment, arguments json.RawMessage, e export) (tool.Result, error) {
	var asked struct {
		Path string `json:"path"`
	}
	if err := json.Unmarshal(arguments, &asked); err != nil {
		return tool.Result{}, invalid("arguments", "%w", err)
	}
	a, _, err := p.publish(ctx, env, asked.Path, e)
	if err != nil {
		return tool.Result{}, err
	}
	raw, err := json.Marshal(a)
	if err != nil {
		return tool.Result{}, known(err)
	}
	return tool.Result{
		Content: []tool.Part{
			{Type: tool.PartText, Text: fmt.Sprintf("Presented %s (%s, %s).", a.Name, a.MediaType, profile.FormatSize(a.Size))},
			{Type: tool.PartResourceLink, URI: a.URI, Name: a.Name, MIMEType: a.MediaType, Artifact: raw},
		},
		StructuredContent: raw,
	}, nil
}

// publish streams a snapshot into the store and tells the sink.
func (p *place) publish(ctx context.Context, env backends.Environment, path string, e export) (artifacts.Artifact, artifacts.Preview, error) {
	fail := func(err error) (artifacts.Artifact, artifacts.Preview, error) {
		return artifacts.Artifact{}, artifacts.Preview{}, notPublished(path, err)
	}
	if e.Size < 0 {
		return fail(artifacts.ErrSize)
	}
	stream, err := env.Export(ctx, e.Token)
	if tool.KindOf(err) == tool.ArtifactNotFound {
		// It was made a moment ago. What only looked is done once more.
		err = tool.Errorf(tool.OutcomeUnknown, "the copy of %q was lost with the worker that had made it: %w", path, err).
			WithHint("Present the file again.")
	}
	if err != nil {
		return fail(err)
	}
	// A read that blocks ends with the call.
	unhook := context.AfterFunc(ctx, func() { stream.Close() })
	s := p.s
	a, err := s.m.o.Artifacts.Publish(ctx, artifacts.PublishRequest{
		SessionID: s.id, Name: e.Name, SourcePath: path, Profile: p.saved.Profile.Name, Size: e.Size,
	}, stream)
	if unhook() {
		err = errors.Join(err, stream.Close())
	}
	if err != nil {
		return fail(err)
	}
	preview, err := s.m.o.Artifacts.Preview(a.ID, 0)
	if err != nil {
		return fail(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.m.sink.ArtifactPublished(a, preview)
	return a, preview, nil
}

func notPublished(path string, err error) error {
	switch {
	case errors.Is(err, artifacts.ErrTooLarge):
		return tool.Errorf(tool.ArtifactTooLarge, "%q is too large: %w", path, artifacts.ErrTooLarge).WithPath(path).
			WithHint("Present a part of it, or compress it.")
	case errors.Is(err, artifacts.ErrSize), errors.Is(err, artifacts.ErrInvalid):
		return tool.Errorf(tool.Internal, "the environment sent a broken snapshot of %q: %w", path, err).WithPath(path)
	}
	return known(err)
}
