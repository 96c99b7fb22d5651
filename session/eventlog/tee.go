package eventlog

import (
	"github.com/caisson-dev/caisson/artifacts"
	"github.com/caisson-dev/caisson/session"
)

// Tee is a sink that tells both.
func (l *Log) Tee(other session.Sink) session.Sink { return both{other, l} }

// both tells the first, which somebody waits for, and then the log.
type both struct {
	session.Sink
	log *Log
}

func (b both) SessionChanged(s session.Session) {
	b.Sink.SessionChanged(s)
	b.log.SessionChanged(s)
}

func (b both) ExecutionStarted(x session.Execution) {
	b.Sink.ExecutionStarted(x)
	b.log.ExecutionStarted(x)
}

func (b both) ExecutionCompleted(x session.Execution) {
	b.Sink.ExecutionCompleted(x)
	b.log.ExecutionCompleted(x)
}

func (b both) ExecutionFailed(x session.Execution) {
	b.Sink.ExecutionFailed(x)
	b.log.ExecutionFailed(x)
}

func (b both) Process(p session.ProcessEvent) {
	b.Sink.Process(p)
	b.log.Process(p)
}

func (b both) ArtifactPublished(a artifacts.Artifact, p artifacts.Preview) {
	b.Sink.ArtifactPublished(a, p)
	b.log.ArtifactPublished(a, p)
}

func (b both) ConfigChanged(err error) {
	b.Sink.ConfigChanged(err)
	b.log.ConfigChanged(err)
}
