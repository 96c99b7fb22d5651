package session

import (
	"context"
	"slices"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// inhabited is the place's environment if there may be processes in it: it is open,
// or was created before. Nil without an error means that there are none.
func (p *place) inhabited(ctx context.Context) (backends.Environment, error) {
	if env := p.current(); env != nil {
		return env, nil
	}
	is, err := p.s.m.store.Provisioned(p.identity())
	if err != nil {
		return nil, known(err)
	}
	if !is {
		return nil, nil
	}
	return p.environment(ctx, nil)
}

// finder translates the id of a process to that of a place's environment, where it
// need not be.
type finder func(ctx context.Context, p *place, env backends.Environment) (string, error)

// holderOf finds the place that has a process, and the id that its environment
// knows it by. Where none has it that is home, which is where processes are started,
// and no id.
func (s *live) holderOf(ctx context.Context, home *place, id string, find finder) (*place, string, error) {
	candidates := s.lasting()
	if i := slices.Index(candidates, home); i > 0 {
		candidates[0], candidates[i] = candidates[i], candidates[0]
	}
	for _, p := range candidates {
		if theirs, ok := p.processes.environmentID(id); ok && p.processes.knows(theirs) {
			return p, theirs, nil
		}
	}
	var failed error
	for _, p := range candidates {
		theirs, err := p.has(ctx, find)
		switch {
		case err == nil && theirs != "":
			return p, theirs, nil
		case err == nil, tool.KindOf(err) == tool.ProcessNotFound, tool.KindOf(err) == tool.Unsupported:
			// Not here, or there are none here.
		case failed == nil:
			failed = at(p.saved.Profile, known(err))
		}
	}
	return home, "", failed
}

// has looks for a process in the place's environment; "" when it has none.
func (p *place) has(ctx context.Context, find finder) (string, error) {
	env, err := p.inhabited(ctx)
	if env == nil || err != nil {
		return "", err
	}
	theirs, err := find(ctx, p, env)
	if err != nil {
		return "", err
	}
	if _, err := env.Processes().Get(ctx, theirs); err != nil {
		return "", err
	}
	return theirs, nil
}

// listProcesses lists the processes of every place that may have any.
func (s *live) listProcesses(ctx context.Context) ([]Process, error) {
	if !s.divided() {
		env, err := s.main.environment(ctx, nil)
		if err != nil {
			return nil, err
		}
		return s.main.listProcesses(ctx, env)
	}
	var all []Process
	for _, p := range s.lasting() {
		env, err := p.inhabited(ctx)
		if env == nil && err == nil {
			continue
		}
		var list []Process
		if err == nil {
			list, err = p.listProcesses(ctx, env)
		}
		if err != nil && tool.KindOf(err) != tool.Unsupported {
			return nil, at(p.saved.Profile, err)
		}
		all = append(all, list...)
	}
	return all, nil
}

func (p *place) listProcesses(ctx context.Context, env backends.Environment) ([]Process, error) {
	list, err := env.Processes().List(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]Process, 0, len(list))
	for _, r := range list {
		all = append(all, p.view(r))
	}
	return all, nil
}
