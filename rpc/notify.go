package rpc

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/caisson-dev/caisson/artifacts"
	"github.com/caisson-dev/caisson/rpc/protocol"
	"github.com/caisson-dev/caisson/session"
)

// notify tells the client of a change. It never waits: what the client does
// not read piles up, and too much of that ends the connection.
func (s *server) notify(name string, params any) {
	s.mu.Lock()
	listening := s.greeted
	s.mu.Unlock()
	if !listening {
		return
	}
	raw, err := codec{}.Marshal(params)
	if err != nil {
		s.o.logger().Error("a notification cannot be written", "method", name, "error", err)
		return
	}
	// It fails only when the connection has ended, which ends it for all.
	_ = s.stream.Notify(name, raw, nil)
}

// notifyDroppable tells the client what it will not miss, unless it is behind.
func (s *server) notifyDroppable(name string, params any) {
	if waiting, _ := s.stream.Backlog(); waiting < maxDroppable {
		s.notify(name, params)
	}
}

func (s *server) logMessage(p protocol.LogMessageParams) {
	s.notifyDroppable(protocol.MethodLogMessage, p)
}

func (o Options) logger() *slog.Logger {
	if o.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Log
}

// sink sends what happens in the sessions to the client.
type sink struct{ *server }

var _ session.Sink = sink{}

func (s sink) SessionChanged(changed session.Session) {
	if changed.State == session.StateClosed {
		s.offers.set(changed.ID, nil)
	}
	s.notify(protocol.MethodSessionChanged, protocol.SessionChangedParams{Session: SessionData(changed)})
}

func (s sink) SessionSeen(seen session.Session) {
	s.notify(protocol.MethodSessionChanged, protocol.SessionChangedParams{Session: SessionData(seen)})
}

func (s sink) SessionRemoved(id string) {
	s.notify(protocol.MethodSessionRemoved, protocol.SessionRemovedParams{SessionID: id})
}

func (s sink) ExecutionStarted(e session.Execution) {
	s.execution(protocol.MethodExecutionStarted, e)
}

func (s sink) ExecutionCompleted(e session.Execution) {
	s.execution(protocol.MethodExecutionCompleted, e)
}

func (s sink) ExecutionFailed(e session.Execution) {
	s.execution(protocol.MethodExecutionFailed, e)
}

func (s sink) execution(name string, e session.Execution) {
	s.mu.Lock()
	wanted := s.client.ExecutionEvents
	s.mu.Unlock()
	if wanted {
		s.notify(name, toExecution(e, name != protocol.MethodExecutionStarted))
	}
}

func (s sink) Process(e session.ProcessEvent) {
	s.notify(protocol.MethodProcessEvent, protocol.ProcessEventParams{
		Type:    protocol.ProcessEventType(e.Type),
		Cause:   string(e.Cause),
		Process: toProcess(e.Process),
	})
}

func (s sink) Room(ctx context.Context) {
	s.stream.Room(ctx, maxUnread, maxUnreadBytes, deafAfter)
}

func (s sink) ArtifactPublished(a artifacts.Artifact, p artifacts.Preview) {
	s.notify(protocol.MethodArtifactPublished, protocol.ArtifactPublished{
		Artifact: toArtifact(a),
		Preview:  s.boundPreview(p),
	})
}

func (s sink) ArtifactsChanged() {
	s.notify(protocol.MethodArtifactChanged, protocol.Empty{})
}

func (s sink) ConfigChanged(err error) {
	params := protocol.ConfigChangedParams{}
	if err != nil {
		params.Problem = err.Error()
	}
	s.notify(protocol.MethodConfigChanged, params)
}

// clientLog is a log handler that writes to the service's log and sends
// records from Info on to the client.
type clientLog struct {
	local  slog.Handler
	send   func(protocol.LogMessageParams)
	prefix string
	attrs  string
}

func (h *clientLog) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || h.local.Enabled(ctx, level)
}

func (h *clientLog) Handle(ctx context.Context, record slog.Record) error {
	if record.Level >= slog.LevelInfo {
		var text strings.Builder
		text.WriteString(record.Message)
		text.WriteString(h.attrs)
		record.Attrs(func(a slog.Attr) bool {
			writeAttr(&text, h.prefix, a)
			return true
		})
		h.send(protocol.LogMessageParams{Type: messageType(record.Level), Message: text.String()})
	}
	if !h.local.Enabled(ctx, record.Level) {
		return nil
	}
	return h.local.Handle(ctx, record)
}

func (h *clientLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	with.local = h.local.WithAttrs(attrs)
	var text strings.Builder
	for _, a := range attrs {
		writeAttr(&text, h.prefix, a)
	}
	with.attrs += text.String()
	return &with
}

func (h *clientLog) WithGroup(name string) slog.Handler {
	with := *h
	with.local = h.local.WithGroup(name)
	with.prefix += name + "."
	return &with
}

func writeAttr(text *strings.Builder, prefix string, a slog.Attr) {
	if !a.Equal(slog.Attr{}) {
		fmt.Fprintf(text, " %s%s=%v", prefix, a.Key, a.Value.Resolve())
	}
}

func messageType(level slog.Level) protocol.MessageType {
	switch {
	case level >= slog.LevelError:
		return protocol.MessageError
	case level >= slog.LevelWarn:
		return protocol.MessageWarning
	default:
		return protocol.MessageInfo
	}
}
