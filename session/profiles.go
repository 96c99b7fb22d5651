package session

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session/config"
	"github.com/caisson-dev/caisson/session/store"
)

// Profiles lists the configured profiles, "local" first, and the default's
// name. A configuration with an error gives what could be read of it, and the
// error: no session can be opened on any of them then.
func (m *Manager) Profiles(context.Context) (list []ProfileInfo, def string, err error) {
	c, err := m.o.Config.Load()
	err = known(err)
	list = append(list, m.info(c.Local(), nil, err))
	for _, p := range c.Profiles {
		list = append(list, m.info(p.Profile, p.Problem, err))
	}
	return list, c.Default, err
}

// info describes a profile; its own problem counts before the file's.
func (m *Manager) info(p profile.Profile, own *config.Error, file error) ProfileInfo {
	i := ProfileInfo{Name: p.Name, Backend: p.Backend, Problem: file}
	if own != nil {
		i.Problem = configInvalid(own)
		return i
	}
	i.Summary = strings.Join(append([]string{p.Summary()}, p.Warnings...), "; ")
	if _, ok := m.o.Registry.Get(p.Backend); !ok && file == nil {
		i.Problem = notBuilt(p.Backend)
	}
	return i
}

// CheckProfile really tries the profile and reports each step.
func (m *Manager) CheckProfile(ctx context.Context, name string) (backends.Health, error) {
	c, err := m.o.Config.Load()
	if err != nil {
		return backends.Health{}, known(err)
	}
	p, err := m.choose(c, config.Project{}, OpenRequest{Profile: name}, true)
	if err != nil {
		return backends.Health{}, err
	}
	backend, ok := m.o.Registry.Get(p.Backend)
	if !ok {
		return backends.Health{}, notBuilt(p.Backend)
	}
	started := m.o.Now()
	var missing []backends.Check
	if _, err := p.Environment(m.o.Environ()); err != nil {
		missing = append(missing, backends.NewCheck("variables", err, ""))
	}
	if err := enforceable(p); err != nil {
		missing = append(missing, backends.NewCheck("configuration", err, ""))
	}
	h := backend.Check(ctx, p)
	h.Checks = append(missing, h.Checks...)
	h.OK = h.OK && len(missing) == 0
	if h.Duration == 0 {
		h.Duration = max(m.o.Now().Sub(started), time.Nanosecond)
	}
	return h, nil
}

// Backends says what this build can do and which backends are usable now.
func (m *Manager) Backends(ctx context.Context) []BackendInfo {
	var all []BackendInfo
	for _, kind := range profile.Kinds() {
		i := BackendInfo{Kind: kind}
		backend, ok := m.o.Registry.Get(kind)
		if !ok {
			i.Detail = "this build does not have it"
			all = append(all, i)
			continue
		}
		i.Built, i.Usable = true, true
		if prober, ok := backend.(backends.Prober); ok {
			if err := prober.Probe(ctx); err != nil {
				i.Usable, i.Detail, i.Hint = false, err.Error(), tool.HintOf(err)
			}
		}
		all = append(all, i)
	}
	return all
}

// Prune removes, or with DryRun lists, what backends left behind whose owner is
// proven gone. Environments that a saved session is bound to are never touched.
func (m *Manager) Prune(ctx context.Context, r PruneRequest) ([]backends.Resource, error) {
	kinds := m.o.Registry.Kinds()
	if r.Backend != "" {
		kind, _ := profile.CanonicalKind(r.Backend)
		if _, ok := m.o.Registry.Get(kind); !ok {
			return nil, notBuilt(r.Backend)
		}
		kinds = []string{kind}
	}
	bound, err := m.boundEnvironments()
	if err != nil {
		return nil, err
	}
	list, err := m.store.List()
	if err != nil {
		return nil, known(err)
	}
	profiles := m.everyProfile(list)
	var all []backends.Resource
	var errs []error
	for _, kind := range kinds {
		backend, _ := m.o.Registry.Get(kind)
		found, err := backend.Prune(ctx, backends.PruneOptions{
			DryRun: r.DryRun, OlderThan: r.OlderThan, Store: m.store.ID(), Live: bound, Bound: m.bindings(list),
			Profiles: profiles, Unreached: r.Unreached,
		})
		all = append(all, found...)
		if err != nil {
			errs = append(errs, known(err))
		}
	}
	if !r.DryRun && r.Backend == "" {
		errs = append(errs, m.sweepPlugins(ctx))
	}
	return all, errors.Join(errs...)
}

// everyProfile are the configured profiles and those of the saved sessions, whose
// own may have been edited or taken out since.
func (m *Manager) everyProfile(list []store.Listed) []profile.Profile {
	var all []profile.Profile
	// What of the configuration can be read is worth looking at.
	c, err := m.o.Config.Load()
	if err != nil {
		m.o.Log.Warn("prune looks at the profiles that could be read only", "reason", err)
	}
	for _, p := range c.Profiles {
		if p.Problem == nil {
			all = append(all, p.Profile)
		}
	}
	for _, l := range list {
		if l.Err != nil {
			continue
		}
		for _, p := range l.All() {
			all = append(all, p.Profile)
		}
	}
	return all
}

// bindings are the environments of the sessions, as they are bound.
func (m *Manager) bindings(list []store.Listed) []backends.Binding {
	var all []backends.Binding
	for _, l := range list {
		if l.Err != nil {
			continue
		}
		for _, p := range l.All() {
			all = append(all, backends.Binding{
				Session: l.ID, Environment: p.Environment, Profile: p.Profile, WorkspaceFolder: l.Folder,
				StateDir: m.store.StatePath(p.Environment), RuntimeDir: m.o.RuntimeDir, Store: m.store.ID(),
			})
		}
	}
	return all
}

// boundEnvironments are those that a session may still come back to. A binding
// that cannot be read may name any: its environment's directory speaks for it.
func (m *Manager) boundEnvironments() (map[string]bool, error) {
	list, err := m.store.List()
	if err != nil {
		return nil, known(err)
	}
	bound := map[string]bool{}
	unreadable := false
	for _, l := range list {
		if l.Err != nil {
			unreadable = true
			continue
		}
		for _, p := range l.All() {
			if !p.Removed {
				bound[p.Environment] = true
			}
		}
	}
	if unreadable {
		there, err := m.store.Environments()
		if err != nil {
			return nil, known(err)
		}
		for _, e := range there {
			bound[e] = true
		}
	}
	return bound, nil
}
