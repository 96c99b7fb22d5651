package session

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

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
	var theirs string
	err = p.use(ctx, onlyReads(), func(env backends.Environment, _ time.Duration) (err error) {
		if theirs, err = find(ctx, p, env); err == nil {
			_, err = env.Processes().Get(ctx, theirs)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	return theirs, nil
}

// listProcesses lists the processes of every place that may have any.
func (s *live) listProcesses(ctx context.Context) ([]Process, error) {
	if !s.divided() {
		return s.main.listProcesses(ctx)
	}
	var all []Process
	for _, p := range s.lasting() {
		env, err := p.inhabited(ctx)
		if env == nil && err == nil {
			continue
		}
		var list []Process
		if err == nil {
			list, err = p.listProcesses(ctx)
		}
		if err != nil && tool.KindOf(err) != tool.Unsupported {
			return nil, at(p.saved.Profile, err)
		}
		all = append(all, list...)
	}
	return all, nil
}

func (p *place) listProcesses(ctx context.Context) ([]Process, error) {
	var list []tool.Process
	err := p.use(ctx, onlyReads(), func(env backends.Environment, _ time.Duration) (err error) {
		list, err = env.Processes().List(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	all := make([]Process, 0, len(list))
	for _, r := range list {
		all = append(all, p.view(r))
	}
	return all, nil
}

// processTool is what of the process tool's arguments says where it goes.
type processTool struct {
	Action string `json:"action"`
	ID     string `json:"process_id"`
}

// processArguments reads them. What is wrong with them the tool itself will say.
func processArguments(r CallRequest) processTool {
	var a processTool
	if json.Unmarshal(r.Arguments, &a) != nil {
		return processTool{}
	}
	return a
}

// callAt makes a call in the place that was found for it. Background processes are
// listed of all places at once.
func (s *live) callAt(ctx context.Context, p *place, r CallRequest, callID string) (tool.Result, error) {
	if refused, err := p.checkArguments(ctx, r); err != nil || refused != nil {
		return refusal(refused), err
	}
	if !s.divided() || tool.GroupOf(r.Name) != tool.GroupProcess || processArguments(r).Action != "list" {
		return p.call(ctx, r, callID)
	}
	result, err := p.call(ctx, r, callID)
	if err != nil || result.IsError {
		return result, err
	}
	for _, other := range s.lasting() {
		if other == p {
			continue
		}
		env, err := other.inhabited(ctx)
		if env == nil && err == nil {
			continue
		}
		var more tool.Result
		if err == nil {
			more, err = other.call(ctx, r, callID)
		}
		switch {
		case tool.KindOf(err) == tool.Unsupported, err == nil && more.IsError:
			continue // it has none
		case err != nil:
			return tool.Result{}, at(other.saved.Profile, err)
		}
		if result, err = withProcesses(result, more); err != nil {
			return tool.Result{}, err
		}
	}
	return result, nil
}

// withProcesses is a list of processes with those of another one.
func withProcesses(a, b tool.Result) (tool.Result, error) {
	type listed struct {
		Processes []json.RawMessage `json:"processes"`
	}
	var one, other listed
	if err := errors.Join(json.Unmarshal(a.StructuredContent, &one), json.Unmarshal(b.StructuredContent, &other)); err != nil {
		return a, tool.Errorf(tool.Internal, "an environment listed its processes in another form: %w", err)
	}
	if len(other.Processes) == 0 {
		return a, nil
	}
	raw, err := json.Marshal(listed{slices.Concat(one.Processes, other.Processes)})
	if err != nil {
		return a, known(err)
	}
	return withText("process", tool.Result{StructuredContent: raw, Meta: a.Meta}), nil
}
