package session

import (
	"context"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session/config"
	"github.com/caisson-dev/caisson/session/plugins"
	"github.com/caisson-dev/caisson/session/store"
)

// tools gives the session that is planned its tools beside the built-in ones, for
// good: the packs of each place, and the plugins.
func (b *binder) tools(ctx context.Context) (err error) {
	s := b.session
	if s.Packs, err = b.packs(ctx, s.Profile); err != nil {
		return err
	}
	for i, p := range s.Places {
		if s.Places[i].Packs, err = b.packs(ctx, p.Profile); err != nil {
			return err
		}
	}
	return b.plugins(ctx)
}

// plugins gives the session the tools that are registered now, or stand in the
// user's file. Each of them goes to the place that its own
// profile names, else to that of an override of plugins, else to the session's own,
// where those are for wasm, and else to one with the built-in profile.
func (b *binder) plugins(ctx context.Context) error {
	all, err := b.m.offered(ctx, b.c)
	if err != nil {
		return err
	}
	for _, p := range all {
		saved := store.Plugin{Name: p.Name, SHA256: p.SHA256}
		for _, t := range p.Tools {
			on, err := b.placeOfPlugin(p, t.Name)
			if err != nil {
				return ofTool(p.Name, err)
			}
			saved.Tools = append(saved.Tools, store.PluginTool{Name: t.Name, Profile: on})
		}
		if err := b.m.o.Plugins.Hold(ctx, p.SHA256); err != nil {
			return ofTool(p.Name, err)
		}
		b.session.Plugins = append(b.session.Plugins, saved)
	}
	return nil
}

// offered are the plugins that a session opened now has: those of the user's file,
// and the registered ones of other names.
func (m *Manager) offered(ctx context.Context, c *config.Config) ([]plugins.Plugin, error) {
	if m.o.Plugins == nil {
		if len(c.Tools.Plugins) > 0 {
			return nil, tool.Errorf(tool.Unsupported, "this service keeps no registered tools, and the configuration has some").WithPath("tools.plugins")
		}
		return nil, nil
	}
	var all []plugins.Plugin
	for _, p := range c.Tools.Plugins {
		bound, err := m.configured(ctx, c, p)
		if err != nil {
			return nil, err
		}
		all = append(all, bound)
	}
	registered, err := m.o.Plugins.List()
	if err != nil {
		return nil, known(err)
	}
	for _, p := range registered {
		if slices.ContainsFunc(c.Tools.Plugins, func(o config.Plugin) bool { return o.Name == p.Name }) {
			continue
		}
		// A listing of another version is made anew.
		if p.Tools, err = m.moduleTools(ctx, c, p.SHA256, p.Name); err != nil {
			return nil, ofTool(p.Name, err)
		}
		all = append(all, p)
	}
	if err := plugins.Distinct(all); err != nil {
		return nil, ofTool("", err)
	}
	return all, nil
}

// placeOfPlugin is the profile of the place where a plugin's tool runs, which the
// session then has.
func (b *binder) placeOfPlugin(p plugins.Plugin, name string) (string, error) {
	s := b.session
	if p.Profile != "" {
		if err := modulesProfile(b.c, p.Profile); err != nil {
			return "", err
		}
		return p.Profile, b.have(p.Profile)
	}
	to, err := newRoutes(s.Overrides, s.All())
	if err != nil {
		return "", err
	}
	wanted := toolName{tool.GroupPlugins, name}
	at := to.find(wanted)
	on := s.All()[at].Profile
	if on.Backend == profile.WASM {
		return on.Name, nil
	}
	for _, r := range to {
		// An override that is for other tools too need not be for wasm.
		if r.place == at && r.matches(wanted) && strings.HasPrefix(r.pattern, string(tool.GroupPlugins)+".") {
			return "", tool.Errorf(tool.ConfigInvalid, "the override of %s sends %s to the profile %q, which is for %s, and it needs one for wasm", r.pattern, name, on.Name, on.Backend)
		}
	}
	if s.Profile.Backend == profile.WASM {
		return s.Profile.Name, nil
	}
	return profile.Modules, b.have(profile.Modules)
}

// have makes sure that the session has a place on the profile.
func (b *binder) have(name string) error {
	s := b.session
	if slices.ContainsFunc(s.All(), func(p store.Place) bool { return p.Profile.Name == name }) {
		return nil
	}
	p := b.c.Modules()
	if name != profile.Modules {
		var err error
		if p, err = b.m.profile(b.c, name); err != nil {
			return err
		}
	} else if _, ok := b.m.o.Registry.Get(p.Backend); !ok {
		return notBuilt(p.Backend)
	}
	modules := *b
	modules.limits = beside(b.limits)
	place, err := modules.place(p)
	if err != nil {
		return at(p, err)
	}
	place.Plugins = true
	s.Places = append(s.Places, place)
	return nil
}

// packs are the tool packs of a place on the profile, their sources in the store.
func (b *binder) packs(ctx context.Context, p profile.Profile) (all []store.Pack, err error) {
	for _, pack := range b.c.Tools.Packs {
		if !slices.Contains(pack.Profiles, p.Name) {
			continue
		}
		saved := store.Pack{Name: pack.Name, Command: pack.Command}
		if pack.Source != "" {
			st, err := b.m.plugins()
			if err != nil {
				return nil, err
			}
			if saved.SHA256, err = st.Put(ctx, pack.Source, tool.MaxPackSource, ""); err != nil {
				return nil, ofTool(pack.Name, err)
			}
		}
		all = append(all, saved)
	}
	return all, nil
}
