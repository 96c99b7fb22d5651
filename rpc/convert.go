package rpc

import (
	"errors"

	"github.com/caisson-dev/caisson/artifacts"
	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/rpc/protocol"
	"github.com/caisson-dev/caisson/session"
)

// SessionData is the session as the protocol has it.
func SessionData(s session.Session) protocol.Session {
	out := protocol.Session{
		ID:            s.ID,
		Profile:       s.Profile,
		Backend:       s.Backend,
		EnvironmentID: s.EnvironmentID,
		Root:          s.Root,
		State:         protocol.SessionState(s.State),
		Shared:        s.Shared,
		Persistent:    s.Persistent,
		ParentID:      s.ParentID,
		CreatedAt:     s.CreatedAt.UTC(),
		LastUsedAt:    s.LastUsedAt.UTC(),
		Labels:        s.Labels,
		HeldBy:        s.HeldBy,
		Error:         sessionError(s.Err),
	}
	if s.Workspace != "" {
		out.Workspace = &s.Workspace
	}
	return out
}

// ProfileData is the user's profiles as the protocol has them.
func ProfileData(list []session.ProfileInfo, def string) protocol.ProfileListResult {
	out := protocol.ProfileListResult{Default: def, Profiles: make([]protocol.ProfileInfo, len(list))}
	for i, p := range list {
		out.Profiles[i] = protocol.ProfileInfo{Name: p.Name, Backend: p.Backend, Summary: p.Summary, Valid: p.Problem == nil}
		if p.Problem != nil {
			out.Profiles[i].Problem = p.Problem.Error()
		}
	}
	return out
}

// HealthData is what a check found as the protocol has it.
func HealthData(h backends.Health) protocol.Health {
	out := protocol.Health{OK: h.OK, Checks: make([]protocol.Check, len(h.Checks)), DurationMs: h.Duration.Milliseconds()}
	for i, c := range h.Checks {
		out.Checks[i] = protocol.Check(c)
	}
	return out
}

// PruneData is what was left behind as the protocol has it, and why there may be
// more elsewhere.
func PruneData(list []backends.Resource, unreached []string) protocol.BackendPruneResult {
	out := protocol.BackendPruneResult{Resources: make([]protocol.Resource, len(list)), Unreached: unreached}
	for i, r := range list {
		out.Resources[i] = protocol.Resource{
			Backend:     r.Backend,
			Kind:        r.Kind,
			ID:          r.ID,
			Environment: r.Environment,
			SessionID:   r.Session,
			CreatedAt:   r.CreatedAt.UTC(),
			Reason:      r.Reason,
		}
	}
	return out
}

func toProcess(p session.Process) protocol.Process {
	out := protocol.Process{
		ID:           p.ID,
		SessionID:    p.SessionID,
		OperationID:  p.OperationID,
		Command:      p.Command,
		Argv:         p.Argv,
		CWD:          p.CWD,
		Status:       protocol.ProcessStatus(p.Status),
		PID:          p.PID,
		ExitCode:     p.ExitCode,
		Signal:       p.Signal,
		Cause:        string(p.Cause),
		Reason:       p.Reason,
		Owner:        protocol.Owner{Kind: protocol.ActorKind(p.Owner.Kind), ID: p.Owner.ID},
		Label:        p.Label,
		StartedAt:    p.StartedAt.UTC(),
		EndedAt:      p.EndedAt.UTC(),
		TotalBytes:   p.TotalBytes,
		OutputClosed: p.OutputClosed,
		Environment:  protocol.ProcessEnvironment(p.Environment),
	}
	if p.TTY != nil {
		out.TTY = &protocol.TTY{Cols: p.TTY.Cols, Rows: p.TTY.Rows}
	}
	return out
}

func toExecution(e session.Execution, terminal bool) protocol.ExecutionParams {
	out := protocol.ExecutionParams{
		SessionID: e.SessionID,
		CallID:    e.CallID,
		RunID:     e.RunID,
		NodeName:  e.NodeName,
		Tool:      e.Tool,
		Profile:   e.Profile,
		Backend:   e.Backend,
		Actor:     protocol.Actor{ID: e.Actor.ID, Kind: protocol.ActorKind(e.Actor.Kind)},
		StartedAt: e.StartedAt.UTC(),
	}
	if out.Actor.Kind == "" {
		out.Actor.Kind = protocol.ActorMain
	}
	if out.Actor.ID == "" {
		out.Actor.ID = e.SessionID // the main agent's name is the session's
	}
	if terminal {
		ms := e.Duration.Milliseconds()
		out.DurationMs = &ms
	}
	if e.Err != nil {
		failure := asToolError(e.Err)
		out.Failure = &protocol.Failure{Kind: protocol.Kind(failure.Kind), Message: e.Err.Error()}
		if failure.Kind == tool.InvalidParams {
			out.Failure.Kind = ""
		}
	}
	return out
}

func toActor(a *protocol.Actor) tool.Actor {
	if a == nil {
		return tool.Actor{}
	}
	return tool.Actor{ID: a.ID, Kind: tool.ActorKind(a.Kind)}
}

func toFile(f backends.FileInfo) protocol.FileInfo {
	return protocol.FileInfo{
		Name:    f.Name,
		Path:    f.Path,
		Type:    protocol.FileType(f.Type),
		Size:    f.Size,
		Mode:    f.Mode,
		ModTime: f.ModTime.UTC(),
	}
}

func toArtifact(a artifacts.Artifact) protocol.Artifact {
	return protocol.Artifact{
		ID:        a.ID,
		SessionID: a.SessionID,
		Name:      a.Name,
		MediaType: a.MediaType,
		Size:      a.Size,
		CreatedAt: a.CreatedAt.UTC(),
		Source:    protocol.ArtifactSource(a.Source),
		URI:       a.URI,
	}
}

func toPreview(p artifacts.Preview) protocol.Preview {
	return protocol.Preview{
		Kind:      protocol.PreviewKind(p.Kind),
		MediaType: p.MediaType,
		Text:      p.Text,
		Encoding:  p.Encoding,
		Data:      p.Data,
		Width:     p.Width,
		Height:    p.Height,
		Truncated: p.Truncated,
	}
}

// artifactError gives the store's errors their kinds. Member is the parameter
// that named the artifact.
func artifactError(member string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, artifacts.ErrNotFound):
		return tool.Errorf(tool.ArtifactNotFound, "%w", err).WithHint("artifact/list names the artifacts that there are")
	case errors.Is(err, artifacts.ErrTooLarge):
		return tool.Errorf(tool.ArtifactTooLarge, "%w", err)
	case errors.Is(err, artifacts.ErrExists):
		return tool.Errorf(tool.InvalidParams, "%w", err).WithPath("path").WithHint(`choose another path, or say "overwrite": true`)
	case errors.Is(err, artifacts.ErrInvalid):
		return tool.Errorf(tool.InvalidParams, "%w", err).WithPath(member)
	case errors.Is(err, artifacts.ErrBusy):
		busy := tool.Errorf(tool.Overloaded, "%w", err)
		busy.Retryable = true
		return busy
	}
	return err
}
