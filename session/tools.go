package session

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// Tools lists what the session offers: of each of its environments the tools that
// go there. It opens those whose tools are not known without that.
func (m *Manager) Tools(ctx context.Context, id string) (all []Tool, err error) {
	err = m.withSession(ctx, id, func(ctx context.Context, s *live) error {
		all, err = s.offers(ctx)
		return err
	})
	return all, err
}

// offers are the tools of all places, those of the main one first. A place that has
// not been opened is not opened for that, where its tools are known without it.
func (s *live) offers(ctx context.Context) ([]Tool, error) {
	places := s.lasting()
	lists := make([][]tool.Description, len(places))
	errs := make([]error, len(places))
	var asking sync.WaitGroup
	var known []int // of places whose tools are
	for i, p := range places {
		if p.builtInOnly() && p.current() == nil {
			known = append(known, i)
			continue
		}
		asking.Go(func() { lists[i], errs[i] = p.offers(ctx) })
	}
	asking.Wait()
	if err := cmp.Or(errs...); err != nil {
		return nil, err
	}
	for _, i := range known {
		if lists[i] = s.routedTo(ctx, places[i]); len(lists[i]) > 0 {
			continue
		}
		// The main environment has none of them: whoever has must be asked.
		var err error
		if lists[i], err = places[i].offers(ctx); err != nil {
			return nil, err
		}
	}
	var all []Tool
	for i, p := range places {
		for _, d := range lists[i] {
			all = append(all, Tool{d, p.saved.Profile.Name})
		}
	}
	return s.visible(all), nil
}

// builtInOnly reports whether a place beside the main one has built-in tools only,
// which are the same everywhere. Packs and adapters have tools of their own.
func (p *place) builtInOnly() bool {
	return !p.main() && len(p.saved.Packs) == 0 && p.saved.Profile.Backend != profile.Command
}

// routedTo are the tools of the main environment, which is open, that go to another
// place.
func (s *live) routedTo(ctx context.Context, p *place) []tool.Description {
	env := s.main.current()
	if env == nil {
		return nil
	}
	list, err := s.main.descriptions(ctx, env)
	if err != nil {
		return nil // asking the place itself will tell
	}
	list = slices.Clone(list)
	return slices.DeleteFunc(list, func(d tool.Description) bool {
		to, err := s.placeFor(groupOf(d), d.Name)
		return err != nil || to != p
	})
}

// withNames has an error about a tool that is none name the tools of the whole session,
// where they are known: each environment knows its own only.
func (s *live) withNames(ctx context.Context, err error) error {
	var e *tool.Error
	if !errors.As(err, &e) || e.Kind != tool.ToolNotFound {
		return err
	}
	for _, p := range s.lasting() {
		if p.current() == nil && !p.builtInOnly() {
			return err // none is opened for that
		}
	}
	all, failed := s.offers(ctx)
	if failed != nil {
		return err
	}
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = t.Name
	}
	slices.Sort(names)
	about := *e
	return (&about).WithHint("the tools are %s", strings.Join(names, ", "))
}

// offers are the tools of the place's environment that go there.
func (p *place) offers(ctx context.Context) ([]tool.Description, error) {
	env, err := p.environment(ctx, nil)
	if err != nil {
		return nil, err
	}
	list, err := p.descriptions(ctx, env)
	if err != nil {
		return nil, at(p.saved.Profile, err)
	}
	if !p.s.divided() {
		return list, nil
	}
	list = slices.Clone(list)
	return slices.DeleteFunc(list, func(d tool.Description) bool {
		if len(p.saved.Packs) > 0 && d.Group == tool.GroupPlugins {
			return false // a pack's tools are where the pack is
		}
		to, err := p.s.placeFor(groupOf(d), d.Name)
		return err != nil || to != p
	}), nil
}

// groupOf is the group of a tool. A far end that says none has named a built-in
// tool, or one of its own.
func groupOf(d tool.Description) tool.Group {
	if d.Group == "" {
		return tool.GroupOf(d.Name)
	}
	return d.Group
}

// divided reports whether tools of the session go to several places.
func (s *live) divided() bool { return len(s.routes) > 0 }

// locate finds the place that a call goes to where its tool's name alone does not
// say: p is what that says.
func (s *live) locate(ctx context.Context, p *place, r CallRequest) (*place, error) {
	if owner, err := s.packPlace(ctx, r.Name, r.Progress); owner != nil {
		return owner, nil
	} else if err != nil {
		return p, err
	}
	if !s.divided() {
		return p, nil
	}
	switch g := tool.GroupOf(r.Name); {
	case g == tool.GroupProcess:
		a := processArguments(r)
		if a.ID == "" {
			return p, nil
		}
		holder, _, err := s.holderOf(ctx, p, a.ID, func(context.Context, *place, backends.Environment) (string, error) { return a.ID, nil })
		return holder, err
	case g == tool.GroupPlugins && p.main():
		return s.offering(ctx, p, r.Name)
	}
	return p, nil
}

// offering is the place that offers a tool of its own of this name; p where none
// does, which will say so.
func (s *live) offering(ctx context.Context, p *place, name string) (*place, error) {
	var failed error
	for _, other := range s.lasting() {
		list, err := other.offers(ctx)
		if slices.ContainsFunc(list, func(d tool.Description) bool { return d.Name == name }) {
			return other, nil
		}
		if failed == nil {
			failed = err
		}
	}
	// A place that cannot be asked may have it.
	return p, failed
}
