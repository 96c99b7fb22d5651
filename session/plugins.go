package session

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/caisson-dev/caisson/backends"
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

// packsOf are a place's packs as its environment is told of them.
func (p *place) packsOf() []tool.Pack {
	all := make([]tool.Pack, 0, len(p.saved.Packs))
	for _, saved := range p.saved.Packs {
		pack := tool.Pack{Name: saved.Name, Command: saved.Command, SHA256: saved.SHA256}
		if saved.SHA256 != "" && p.s.m.o.Plugins != nil {
			pack.Source = p.s.m.o.Plugins.Path(saved.SHA256)
		}
		all = append(all, pack)
	}
	return all
}

// checkPacks refuses an environment whose packs have schemas that are none.
func (p *place) checkPacks(ctx context.Context, env backends.Environment) error {
	if len(p.saved.Packs) == 0 {
		return nil
	}
	list, err := env.Tools(ctx)
	if err != nil {
		return err
	}
	found := false
	for _, d := range list {
		if d.Group != tool.GroupPlugins {
			continue
		}
		found = true
		if _, err := plugins.CompileSchema(d.InputSchema); err != nil {
			return tool.Errorf(tool.Unsupported, "%s cannot be used: the schema of %s %w", p.packNames(), d.Name, err)
		}
	}
	if !found {
		return tool.Errorf(tool.Unsupported, "the tool pack %q cannot be had: environments of %s have no packs", p.saved.Packs[0].Name, p.saved.Profile.Backend)
	}
	return nil
}

// packNames names the packs of the place for people.
func (p *place) packNames() string {
	names := make([]string, len(p.saved.Packs))
	for i, pack := range p.saved.Packs {
		names[i] = strconv.Quote(pack.Name)
	}
	if len(names) == 1 {
		return "the tool pack " + names[0]
	}
	return "one of the tool packs " + strings.Join(names, ", ")
}

// registry is what the session has registered, as it is found on disk.
type registry struct {
	once    sync.Once
	tools   []*registered
	schemas schemas
}

// registered is one tool of a plugin.
type registered struct {
	tool.Description
	plugin string
	sum    string
	place  *place
	gone   error // why it cannot be called
}

// registeredTools are the session's tools from modules. What it has is saved with
// it; what they are called and take is read once.
func (s *live) registeredTools() []*registered {
	s.registry.once.Do(func() {
		s.mu.Lock()
		all := s.saved.Plugins
		s.mu.Unlock()
		for _, p := range all {
			s.registry.tools = append(s.registry.tools, s.readPlugin(p)...)
		}
	})
	return s.registry.tools
}

// readPlugin finds the tools of a plugin. Those whose module is gone still hide what
// they hid, and say so.
func (s *live) readPlugin(p store.Plugin) (all []*registered) {
	var list []tool.Description
	st, err := s.m.plugins()
	if err == nil {
		_, err = st.Blob(p.SHA256)
	}
	if err == nil {
		list, err = s.m.moduleTools(s.life, config.Empty(), p.SHA256, p.Name)
	}
	for _, t := range p.Tools {
		r := &registered{
			Description: tool.Description{Name: t.Name, Group: tool.GroupPlugins, InputSchema: json.RawMessage(`{"type":"object"}`)},
			plugin:      p.Name, sum: p.SHA256, place: s.placeNamed(t.Profile), gone: err,
		}
		i := slices.IndexFunc(list, func(d tool.Description) bool { return d.Name == t.Name })
		switch {
		case i >= 0:
			r.Description = list[i]
		case r.gone == nil:
			r.gone = tool.Errorf(tool.EnvironmentLost, "the module sha256:%s has no tool %s any more", p.SHA256, t.Name)
		}
		if r.place == nil && r.gone == nil {
			r.gone = tool.Errorf(tool.Internal, "the session has no environment on the profile %q, where %s runs", t.Profile, t.Name)
		}
		if r.gone != nil {
			r.Description.Description = "This tool cannot be called any more: " + r.gone.Error() + "."
		}
		all = append(all, r)
	}
	return all
}

// placeNamed is the session's place on the profile, nil for none.
func (s *live) placeNamed(profile string) *place {
	for _, p := range s.places() {
		if !p.saved.OneOff && p.saved.Profile.Name == profile {
			return p
		}
	}
	return nil
}

// registeredTool is the session's tool of that name from a module, nil for none.
func (s *live) registeredTool(name string) *registered {
	for _, r := range s.registeredTools() {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// callRegistered calls a tool from a module, in a fresh instance.
func (s *live) callRegistered(ctx context.Context, t *registered, r CallRequest, callID string) (tool.Result, error) {
	if t.gone != nil {
		return tool.Result{}, ofTool(t.plugin, t.gone)
	}
	if refused, err := s.registry.schemas.check(t.Description, r.Arguments); err != nil || refused != nil {
		return refusal(refused), err
	}
	only := func(context.Context, backends.Environment) bool { return t.Annotations.ReadOnly }
	return t.place.callWith(ctx, r, callID, only, func(ctx context.Context, env backends.Environment, request tool.Request) (tool.Result, error) {
		runner, ok := env.(backends.ModuleRunner)
		if !ok {
			return tool.Result{}, tool.Errorf(tool.Unsupported, "the backend %s of this build runs no modules", t.place.saved.Profile.Backend)
		}
		return s.m.o.Plugins.Call(ctx, runner, t.sum, request)
	})
}

// home is where a call begins: the place of a registered tool, or where the name
// goes.
func (s *live) home(t *registered, name string) (*place, error) {
	if t != nil && t.place != nil {
		return t.place, s.broken
	}
	return s.placeFor(tool.GroupOf(name), name)
}

// refusal is a result that there may be.
func refusal(r *tool.Result) tool.Result {
	if r == nil {
		return tool.Result{}
	}
	return *r
}

// checkArguments checks those of a call of a pack's tool against its schema; nil
// where nothing is wrong.
func (p *place) checkArguments(ctx context.Context, r CallRequest) (*tool.Result, error) {
	if len(p.saved.Packs) == 0 {
		return nil, nil
	}
	env, err := p.environment(ctx, r.Progress)
	if err != nil {
		return nil, err
	}
	list, err := p.descriptions(ctx, env)
	if err != nil {
		return nil, err
	}
	for _, d := range list {
		if d.Name == r.Name && d.Group == tool.GroupPlugins {
			return p.s.registry.schemas.check(d, r.Arguments)
		}
	}
	return nil, nil
}

// schemas are compiled when they are needed.
type schemas struct {
	mu       sync.Mutex
	compiled map[string]*plugins.Schema // by their text
}

// maxSchemas is how many are kept: more than a session has tools is a pack that
// answers differently each time.
const maxSchemas = 1024

// check says what is wrong with arguments, as a result for the model; nil for
// nothing.
func (c *schemas) check(d tool.Description, arguments json.RawMessage) (*tool.Result, error) {
	c.mu.Lock()
	s := c.compiled[string(d.InputSchema)]
	c.mu.Unlock()
	if s == nil {
		var err error
		if s, err = plugins.CompileSchema(d.InputSchema); err != nil {
			return nil, tool.Errorf(tool.Unsupported, "the schema of the tool %s %w", d.Name, err)
		}
		c.mu.Lock()
		if c.compiled == nil || len(c.compiled) >= maxSchemas {
			c.compiled = map[string]*plugins.Schema{}
		}
		c.compiled[string(d.InputSchema)] = s
		c.mu.Unlock()
	}
	fault, err := s.Check(arguments)
	if err != nil || fault == nil {
		return nil, err
	}
	refused := plugins.Refuse(d.Name, fault)
	return &refused, nil
}

// packPlace is the place where a pack has the tool, nil for none. While that is not
// known the environments that have packs are opened: a pack may stand for a built-in
// tool, which must not be taken for it.
func (s *live) packPlace(ctx context.Context, name string, progress backends.Progress) (*place, error) {
	if !s.packed {
		return nil, nil
	}
	for _, p := range s.lasting() {
		if len(p.saved.Packs) == 0 {
			continue
		}
		names, err := p.packTools(ctx, progress)
		if err != nil {
			return nil, err
		}
		if slices.Contains(names, name) {
			return p, nil
		}
	}
	return nil, nil
}

// packTools are the names of the tools of the place's packs.
func (p *place) packTools(ctx context.Context, progress backends.Progress) ([]string, error) {
	env, err := p.environment(ctx, progress)
	if err != nil {
		return nil, err
	}
	list, err := p.descriptions(ctx, env)
	if err != nil {
		return nil, at(p.saved.Profile, err)
	}
	var names []string
	for _, d := range list {
		if d.Group == tool.GroupPlugins {
			names = append(names, d.Name)
		}
	}
	return names, nil
}

// visible is a list of tools with those from modules, each name once: a module's
// tool stands for a pack's, and that for a built-in one.
func (s *live) visible(all []Tool) []Tool {
	if len(s.registeredTools()) == 0 && !s.packed {
		return all
	}
	var out []Tool
	add := func(t Tool) {
		if !slices.ContainsFunc(out, func(o Tool) bool { return o.Name == t.Name }) {
			out = append(out, t)
		}
	}
	for _, r := range s.registeredTools() {
		t := Tool{Description: r.Description}
		if r.place != nil {
			t.Profile = r.place.saved.Profile.Name
		}
		add(t)
	}
	for _, ofPacks := range []bool{true, false} {
		for _, t := range all {
			if (t.Group == tool.GroupPlugins) == ofPacks {
				add(t)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	return out
}
