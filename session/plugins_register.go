package session

import (
	"context"
	"errors"
	"os"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session/config"
	"github.com/caisson-dev/caisson/session/plugins"
	"github.com/caisson-dev/caisson/session/store"
)

// RegisterRequest asks for a module to be registered.
type RegisterRequest struct {
	// File is the module, Name what to call it, Profile the wasm profile that it
	// runs in, "" for the session's choice.
	File    string
	Name    string
	Profile string
}

// RegisteredTool is a module whose tools new sessions have.
type RegisteredTool struct {
	plugins.Plugin
	// Configured says that it stands in the user's file, not in the store.
	Configured bool
	// Problem is why new sessions do not have it, or do not open; nil for none.
	Problem error
}

// RegisterTool takes a module into the store and asks it what it offers. New
// sessions have its tools from then on, instead of those of one of the same name.
func (m *Manager) RegisterTool(ctx context.Context, r RegisterRequest) (plugins.Plugin, error) {
	st, err := m.plugins()
	if err != nil {
		return plugins.Plugin{}, err
	}
	c, err := m.o.Config.Load()
	if err != nil {
		return plugins.Plugin{}, known(err)
	}
	if r.Profile != "" {
		if err := modulesProfile(c, r.Profile); err != nil {
			return plugins.Plugin{}, err
		}
	}
	for _, p := range c.Tools.Plugins {
		if p.Name == r.Name {
			return plugins.Plugin{}, invalid("name", "the configuration has a tool %q of its own, which would hide this one", r.Name).
				WithHint("Choose another name, or take it out of tools.plugins in %s.", m.o.Config.Path())
		}
	}
	p := plugins.Plugin{Name: r.Name, Profile: r.Profile, Source: r.File, RegisteredAt: m.o.Now()}
	if p.SHA256, err = st.Put(ctx, r.File, plugins.MaxModule, plugins.ModuleHead); err != nil {
		return plugins.Plugin{}, ofRequest(err)
	}
	if p.Tools, err = m.moduleTools(ctx, c, p.SHA256, r.File); err != nil {
		return plugins.Plugin{}, ofRequest(err)
	}
	return p, known(st.Register(ctx, p))
}

// ofRequest is an error about a module that no configuration names, but the caller.
func ofRequest(err error) error {
	e, ok := errors.AsType[*tool.Error](err)
	if !ok || e.Kind != tool.ConfigInvalid {
		return err
	}
	told := *e
	told.Kind, told.Err = tool.InvalidParams, err
	return &told
}

// modulesProfile checks that a profile is one for modules.
func modulesProfile(c *config.Config, name string) error {
	p, ok := c.Profile(name)
	switch {
	case !ok:
		err := tool.Errorf(tool.ProfileNotFound, "there is no profile %q", name)
		if near := profile.Nearest(name, c.Names()); near != "" {
			return err.WithHint("Did you mean %q?", near)
		}
		return err
	case p.Backend != profile.WASM:
		return invalid("profile", "the profile %q is for %s, and a WebAssembly tool needs one for wasm", name, p.Backend)
	}
	return nil
}

// plugins is the store of registered tools, or says that there is none.
func (m *Manager) plugins() (*plugins.Store, error) {
	if m.o.Plugins == nil {
		return nil, tool.Errorf(tool.Unsupported, "this service keeps no registered tools")
	}
	return m.o.Plugins, nil
}

// RegisteredTools are those of the store and of the user's file, with their tools
// as far as they are known.
func (m *Manager) RegisteredTools(ctx context.Context) ([]RegisteredTool, error) {
	st, err := m.plugins()
	if err != nil {
		return nil, err
	}
	c, err := m.o.Config.Load()
	if err != nil {
		return nil, known(err)
	}
	registered, err := st.List()
	if err != nil {
		return nil, err
	}
	var all []RegisteredTool
	hidden := map[string]bool{}
	for _, p := range c.Tools.Plugins {
		hidden[p.Name] = true
		bound, err := m.configured(ctx, c, p)
		all = append(all, RegisteredTool{Plugin: bound, Configured: true, Problem: err})
	}
	for _, p := range registered {
		r := RegisteredTool{Plugin: p}
		switch _, gone := st.Blob(p.SHA256); {
		case hidden[p.Name]:
			r.Problem = tool.Errorf(tool.ConfigInvalid, "the configuration has another tool of this name, which hides it")
		case gone != nil:
			r.Problem = gone
		case p.Profile != "":
			r.Problem = modulesProfile(c, p.Profile)
		}
		all = append(all, r)
	}
	return all, nil
}

// RemoveTool forgets a registered tool. Sessions that have it keep it, and its
// module stays until the last of them is deleted.
func (m *Manager) RemoveTool(ctx context.Context, name string) error {
	st, err := m.plugins()
	if err != nil {
		return err
	}
	if err := st.Remove(ctx, name); err != nil {
		return known(err)
	}
	return m.sweepPlugins(ctx)
}

// sweepPlugins removes the modules that nobody names any more. While a session
// cannot be read nothing is removed: it may need anything.
func (m *Manager) sweepPlugins(ctx context.Context) error {
	if m.o.Plugins == nil {
		return nil
	}
	all, err := m.store.List()
	if err != nil {
		return known(err)
	}
	needed := map[string]bool{}
	for _, s := range all {
		if s.Err != nil {
			m.log.Warn("modules of removed tools are kept: a session cannot be read", "session", s.ID, "error", s.Err)
			return nil
		}
		for _, p := range s.Plugins {
			needed[p.SHA256] = true
		}
		for _, place := range s.All() {
			for _, p := range place.Packs {
				needed[p.SHA256] = true
			}
		}
	}
	return known(m.o.Plugins.Sweep(ctx, needed))
}

// releasePlugins removes the modules and sources that only a session had which is
// deleted now. What cannot be removed is the next one's to remove, or that of prune.
func (s *live) releasePlugins(ctx context.Context) {
	r := func() store.Session {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.record()
	}()
	had := len(r.Plugins) > 0
	for _, p := range r.All() {
		had = had || len(p.Packs) > 0
	}
	if !had {
		return
	}
	if err := s.m.sweepPlugins(ctx); err != nil {
		s.m.log.Warn("modules that no session has any more were not removed", "session", s.id, "error", err)
	}
}

// configured is a plugin of the user's file with its module in the store.
func (m *Manager) configured(ctx context.Context, c *config.Config, p config.Plugin) (plugins.Plugin, error) {
	bound := plugins.Plugin{Name: p.Name, Profile: p.Profile, Source: p.WASM}
	var err error
	if sum, is := profile.CutDigest(p.WASM); is {
		bound.SHA256, bound.Source = sum, ""
		_, err = m.o.Plugins.Blob(sum)
	} else {
		bound.SHA256, err = m.o.Plugins.Put(ctx, p.WASM, plugins.MaxModule, plugins.ModuleHead)
	}
	if err == nil {
		bound.Tools, err = m.moduleTools(ctx, c, bound.SHA256, p.WASM)
	}
	if err != nil {
		return bound, ofTool(p.Name, err)
	}
	return bound, nil
}

// ofTool says which of the configured tools an error is about; "" is several of them,
// which the error names.
func ofTool(name string, err error) error {
	var e *tool.Error
	if !errors.As(err, &e) {
		return known(err)
	}
	about := *e
	about.Kind, about.Path = tool.ConfigInvalid, "tools"
	if e.Kind == tool.Cancelled || e.Kind == tool.Timeout {
		about.Kind = e.Kind
	}
	about.Err = err
	if name != "" {
		about.Message = "the tool " + name + ": " + e.Message
	}
	return &about
}

// moduleTools are what a module of the store offers. The first time it is asked,
// in an environment for that alone, with the limits of the built-in profile; called is
// what errors call it.
func (m *Manager) moduleTools(ctx context.Context, c *config.Config, sum, called string) (_ []tool.Description, err error) {
	var env backends.Environment
	var dir string
	defer func() {
		if env != nil {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropBudget)
			defer cancel()
			err = errors.Join(err, env.Shutdown(ctx))
		}
		if dir != "" {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	return m.o.Plugins.Tools(ctx, sum, called, func() (backends.ModuleRunner, error) {
		p := c.Modules()
		backend, ok := m.o.Registry.Get(p.Backend)
		if !ok {
			return nil, notBuilt(p.Backend)
		}
		if dir, err = os.MkdirTemp(m.o.RuntimeDir, "list-"); err != nil {
			return nil, known(err)
		}
		id := "list-" + newID()
		env, err = backend.Open(ctx, backends.Binding{
			Session: id, Environment: p.Identity(m.store.ID(), id), Profile: p,
			StateDir: dir, RuntimeDir: m.o.RuntimeDir, Store: m.store.ID(),
			Secrets: backends.Secrets{Environment: map[string]string{}},
		}, nil)
		if err != nil {
			return nil, known(err)
		}
		runner, ok := env.(backends.ModuleRunner)
		if !ok {
			return nil, tool.Errorf(tool.Unsupported, "the backend %s of this build runs no modules", p.Backend)
		}
		return runner, nil
	})
}
