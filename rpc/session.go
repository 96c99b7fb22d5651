package rpc

import (
	"context"
	"strings"

	"github.com/caisson-dev/caisson/rpc/protocol"
	"github.com/caisson-dev/caisson/session"
)

func sessionMethods() map[string]method {
	return map[string]method{
		protocol.MethodSessionOpen:   {handle: bind((*request).sessionOpen), class: slotted},
		protocol.MethodSessionGet:    {handle: bind((*request).sessionGet), class: slotless},
		protocol.MethodSessionList:   {handle: bind((*request).sessionList), class: slotless},
		protocol.MethodSessionFork:   {handle: bind((*request).sessionFork), class: slotted},
		protocol.MethodSessionClose:  {handle: bind((*request).sessionClose), class: slotless},
		protocol.MethodSessionDelete: {handle: bind((*request).sessionDelete), class: slotless},
	}
}

// sessions is the manager of this connection; requests run only when there is
// one.
func (s *server) sessions() *session.Manager {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.services.Sessions
}

func (r *request) sessionOpen(ctx context.Context, p *protocol.SessionOpenParams) (*protocol.SessionOpenResult, error) {
	constraints, err := r.constraints(p.Constraints)
	if err != nil {
		return nil, err
	}
	open := session.OpenRequest{
		SessionID:   p.SessionID,
		Profile:     p.Profile,
		Constraints: constraints,
		Labels:      p.Labels,
		Deferred:    p.Connect != nil && !*p.Connect,
	}
	if p.Workspace != nil {
		if open.Workspace = *p.Workspace; open.Workspace == "" {
			return nil, invalidParams("workspace", "workspace must be the URI of a folder, or null for none")
		}
	}
	progress := r.begin(p.WorkDoneToken, "Opening a session")
	defer progress.end()
	opened, resumed, err := r.sessions().Open(ctx, open, progress.steps())
	if err != nil {
		return nil, err
	}
	return &protocol.SessionOpenResult{Session: SessionData(opened), Resumed: resumed}, nil
}

// constraints hands the request's constraints on as they were written: the
// sessions' own rules know what they may be. Here alone a member that nobody
// knows is an error, and so is a 0, since to ignore it would be to run without
// the limit that was asked for.
func (r *request) constraints(c *protocol.Constraints) (session.Constraints, error) {
	if c == nil {
		return session.Constraints{}, nil
	}
	return session.ParseConstraints("constraints", valueOf(r.params, "constraints"))
}

func (r *request) sessionGet(ctx context.Context, p *protocol.SessionParams) (*protocol.SessionResult, error) {
	s, err := r.sessions().Get(ctx, p.SessionID)
	return sessionResult(s, err)
}

func (r *request) sessionFork(ctx context.Context, p *protocol.SessionForkParams) (*protocol.SessionResult, error) {
	progress := r.begin(p.WorkDoneToken, "Forking a session")
	defer progress.end()
	s, err := r.sessions().Fork(ctx, session.ForkRequest{SessionID: p.SessionID, NewSessionID: p.NewSessionID}, progress.steps())
	return sessionResult(s, err)
}

func (r *request) sessionClose(ctx context.Context, p *protocol.SessionParams) (*protocol.SessionResult, error) {
	s, err := r.sessions().Close(ctx, p.SessionID)
	return sessionResult(s, err)
}

func sessionResult(s session.Session, err error) (*protocol.SessionResult, error) {
	if err != nil {
		return nil, err
	}
	return &protocol.SessionResult{Session: SessionData(s)}, nil
}

func (r *request) sessionList(ctx context.Context, p *protocol.SessionListParams) (*protocol.SessionListResult, error) {
	filter := session.Filter{State: session.State(p.State)}
	name, value, exact := strings.Cut(p.Label, "=")
	if exact {
		filter.Labels = map[string]string{name: value}
	}
	// From now on the client knows of others' sessions, and what it knows is kept true.
	r.sessions().Follow()
	list, err := r.sessions().List(ctx, filter)
	if err != nil {
		return nil, err
	}
	out := &protocol.SessionListResult{}
	for _, s := range list {
		if _, has := s.Labels[name]; p.Label == "" || exact || has {
			out.Sessions = append(out.Sessions, SessionData(s))
		}
	}
	return out, nil
}

func (r *request) sessionDelete(ctx context.Context, p *protocol.SessionDeleteParams) (*protocol.SessionDeleteResult, error) {
	left, err := r.sessions().Delete(ctx, p.SessionID, p.Force)
	if err != nil {
		return nil, err
	}
	return &protocol.SessionDeleteResult{Left: left}, nil
}
