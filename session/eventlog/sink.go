package eventlog

import (
	"context"
	"errors"

	"github.com/caisson-dev/caisson/artifacts"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session"
)

// execution is an event of a call.
func execution(name string, x session.Execution) event {
	return event{
		Event: name, SessionID: x.SessionID, CallID: clip(x.CallID), RunID: clip(x.RunID), NodeName: clip(x.NodeName),
		Tool: clip(x.Tool), Profile: x.Profile, Backend: x.Backend, Actor: &actor{ID: clip(x.Actor.ID), Kind: string(x.Actor.Kind)},
	}
}

func ended(name string, x session.Execution) event {
	e := execution(name, x)
	ms := x.Duration.Milliseconds()
	e.DurationMS = &ms
	return e
}

// failed is what an error says of itself.
func failed(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{Kind: string(tool.KindOf(err)), Message: err.Error()}
	var e *tool.Error
	if errors.As(err, &e) {
		f.Reason, f.about = string(e.Reason), fileOf(e.Path)
	}
	return f
}

// clip cuts a text down to what an event holds.
func clip(s string) string { return tool.Clip(s, maxText) }

// ExecutionStarted implements [session.Sink].
func (l *Log) ExecutionStarted(x session.Execution) { l.put(execution("execution/started", x)) }

// ExecutionCompleted implements [session.Sink].
func (l *Log) ExecutionCompleted(x session.Execution) { l.put(ended("execution/completed", x)) }

// ExecutionFailed implements [session.Sink].
func (l *Log) ExecutionFailed(x session.Execution) {
	e := ended("execution/failed", x)
	if e.Failure = failed(x.Err); e.Failure != nil {
		e.Failure.quotes = true
	}
	l.put(e)
}

// SessionChanged implements [session.Sink].
func (l *Log) SessionChanged(s session.Session) {
	l.put(event{
		Event: "session/changed", SessionID: s.ID, Profile: s.Profile, Backend: s.Backend,
		Session: &sessionState{
			State: string(s.State), EnvironmentID: s.EnvironmentID, Workspace: clip(s.Workspace), ParentID: s.ParentID, Failure: failed(s.Err),
		},
	})
}

// SessionSeen implements [session.Sink]. It is the other service's to write.
func (*Log) SessionSeen(session.Session) {}

// SessionRemoved implements [session.Sink]. That the session was closed is written.
func (*Log) SessionRemoved(string) {}

// Process implements [session.Sink]. The command line is not written: it may hold
// anything.
func (l *Log) Process(p session.ProcessEvent) {
	e := event{
		Event: "process/event", SessionID: p.Process.SessionID,
		Profile: p.Process.Environment.Profile, Backend: p.Process.Environment.Backend,
		Actor: &actor{ID: clip(p.Process.Owner.ID), Kind: string(p.Process.Owner.Kind)},
		Process: &processState{
			Type: string(p.Type), Cause: string(p.Cause), ID: p.Process.ID, OperationID: clip(p.Process.OperationID),
			Status: string(p.Process.Status), PID: p.Process.PID, ExitCode: p.Process.ExitCode, Signal: p.Process.Signal,
			StartedAt: p.Process.StartedAt, TotalBytes: p.Process.TotalBytes, EnvironmentID: p.Process.Environment.ID,
		},
	}
	if at := p.Process.EndedAt; !at.IsZero() {
		e.Process.EndedAt = &at
	}
	l.put(e)
}

// ArtifactPublished implements [session.Sink]. The name, which is that of a file, is
// not written.
func (l *Log) ArtifactPublished(a artifacts.Artifact, _ artifacts.Preview) {
	l.put(event{
		Event: "artifact/published", SessionID: a.SessionID, Profile: a.Source.Profile,
		Artifact: &artifactState{ID: a.ID, MediaType: a.MediaType, Size: a.Size},
	})
}

// ArtifactsChanged implements [session.Sink]. It is written where it was published.
func (*Log) ArtifactsChanged() {}

// Room implements [session.Sink]: a file has room.
func (*Log) Room(context.Context) {}

// ConfigChanged implements [session.Sink].
func (l *Log) ConfigChanged(err error) { l.put(event{Event: "config/changed", Failure: failed(err)}) }
