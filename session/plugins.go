package session

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session/config"
	"github.com/caisson-dev/caisson/session/store"
)

// moduleTools are the session's tools from modules, as they are found on disk.
type moduleTools struct {
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
	s.modules.once.Do(func() {
		s.mu.Lock()
		all := s.saved.Plugins
		s.mu.Unlock()
		for _, p := range all {
			s.modules.tools = append(s.modules.tools, s.readPlugin(p)...)
		}
	})
	return s.modules.tools
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
			plugin:      p.Name, sum: p.SHA256, place: placeOn(s.places(), t.Profile), gone: err,
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
	if refused, err := s.modules.schemas.check(t.Description, r.Arguments); err != nil || refused != nil {
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
