package rpc

import (
	"context"
	"time"

	"github.com/caisson-dev/caisson/rpc/protocol"
	"github.com/caisson-dev/caisson/session"
)

func profileMethods() map[string]method {
	return map[string]method{
		protocol.MethodProfileList:  {bind((*request).profileList), slotless},
		protocol.MethodProfileCheck: {bind((*request).profileCheck), slotted},
		protocol.MethodBackendList:  {bind((*request).backendList), slotted},
		protocol.MethodBackendPrune: {bind((*request).backendPrune), slotted},
	}
}

// profileList answers with "local" alone and the error when the configuration
// is wrong as a whole: the error is what the client has to show.
func (r *request) profileList(ctx context.Context, _ *protocol.Empty) (*protocol.ProfileListResult, error) {
	list, def, err := r.sessions().Profiles(ctx)
	if err != nil {
		return nil, err
	}
	out := &protocol.ProfileListResult{Default: def}
	for _, p := range list {
		info := protocol.ProfileInfo{Name: p.Name, Backend: p.Backend, Summary: p.Summary, Valid: p.Problem == nil}
		if p.Problem != nil {
			info.Problem = p.Problem.Error()
		}
		out.Profiles = append(out.Profiles, info)
	}
	return out, nil
}

func (r *request) profileCheck(ctx context.Context, p *protocol.ProfileCheckParams) (*protocol.Health, error) {
	found, err := r.sessions().CheckProfile(ctx, p.Profile)
	if err != nil {
		return nil, err
	}
	out := &protocol.Health{OK: found.OK, DurationMs: found.Duration.Milliseconds()}
	for _, c := range found.Checks {
		out.Checks = append(out.Checks, protocol.Check(c))
	}
	return out, nil
}

func (r *request) backendList(ctx context.Context, _ *protocol.Empty) (*protocol.BackendListResult, error) {
	out := &protocol.BackendListResult{}
	for _, b := range r.sessions().Backends(ctx) {
		out.Backends = append(out.Backends, protocol.BackendInfo(b))
	}
	return out, nil
}

func (r *request) backendPrune(ctx context.Context, p *protocol.BackendPruneParams) (*protocol.BackendPruneResult, error) {
	removed, err := r.sessions().Prune(ctx, session.PruneRequest{
		Backend:   p.Backend,
		DryRun:    p.DryRun,
		OlderThan: time.Duration(p.OlderThan),
	})
	if err != nil {
		return nil, err
	}
	out := &protocol.BackendPruneResult{}
	for _, res := range removed {
		out.Resources = append(out.Resources, protocol.Resource{
			Backend:     res.Backend,
			Kind:        res.Kind,
			ID:          res.ID,
			Environment: res.Environment,
			SessionID:   res.Session,
			CreatedAt:   res.CreatedAt.UTC(),
			Reason:      res.Reason,
		})
	}
	return out, nil
}
