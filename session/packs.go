package session

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session/plugins"
)

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
			return p.s.modules.schemas.check(d, r.Arguments)
		}
	}
	return nil, nil
}
