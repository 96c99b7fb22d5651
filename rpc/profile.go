package rpc

import (
	"context"
	"time"

	"github.com/caisson-dev/caisson/rpc/protocol"
	"github.com/caisson-dev/caisson/session"
)

func profileMethods() map[string]method {
	return map[string]method{
		protocol.MethodProfileList:  {handle: bind((*request).profileList), class: slotless},
		protocol.MethodProfileCheck: {handle: bind((*request).profileCheck), class: slotted},
		protocol.MethodBackendList:  {handle: bind((*request).backendList), class: slotted},
		protocol.MethodBackendPrune: {handle: bind((*request).backendPrune), class: slotted},
	}
}

// profileList answers also when the configuration is wrong: each profile that
// could be read of it says so as its problem, "local" too.
func (r *request) profileList(ctx context.Context, _ *protocol.Empty) (*protocol.ProfileListResult, error) {
	list, def, _ := r.sessions().Profiles(ctx) // its error is every profile's problem
	out := ProfileData(list, def)
	return &out, nil
}

func (r *request) profileCheck(ctx context.Context, p *protocol.ProfileCheckParams) (*protocol.Health, error) {
	found, err := r.sessions().CheckProfile(ctx, p.Profile)
	if err != nil {
		return nil, err
	}
	out := HealthData(found)
	return &out, nil
}

func (r *request) backendList(ctx context.Context, _ *protocol.Empty) (*protocol.BackendListResult, error) {
	out := &protocol.BackendListResult{}
	for _, b := range r.sessions().Backends(ctx) {
		out.Backends = append(out.Backends, protocol.BackendInfo(b))
	}
	return out, nil
}

func (r *request) backendPrune(ctx context.Context, p *protocol.BackendPruneParams) (*protocol.BackendPruneResult, error) {
	var unreached []string
	removed, err := r.sessions().Prune(ctx, session.PruneRequest{
		Backend:   p.Backend,
		DryRun:    p.DryRun,
		OlderThan: time.Duration(p.OlderThan),
		Unreached: func(_ string, err error) { unreached = append(unreached, err.Error()) },
	})
	if err != nil {
		return nil, err
	}
	out := PruneData(removed, unreached)
	return &out, nil
}
