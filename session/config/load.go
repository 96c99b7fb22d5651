package config

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// Load reads and validates the file. A file that does not exist, and the path
// "", are the empty configuration; every other failure is an [*Error]. Then
// the configuration is not to be used but to list its profiles, as far as they
// could be read, with their problems.
func Load(path string) (*Config, error) {
	if path == "" {
		return Empty(), nil
	}
	d, err := read(path)
	if err != nil {
		return Empty(), err
	}
	if d == nil {
		return Empty(), nil
	}
	return load(d)
}

// Parse validates the text of a user's file; name stands for it in errors.
func Parse(name string, text []byte) (*Config, error) {
	d, err := parse(name, text)
	if err != nil {
		return Empty(), err
	}
	return load(d)
}

func load(d *document) (*Config, error) {
	var f file
	if err := d.decode(&f); err != nil {
		return Empty(), err
	}
	l := loader{d: d, c: Empty()}
	l.execution(f.Execution)
	l.profiles(f.ExecutionEnvironments)
	l.choices(f.ExecutionEnvironments, f.ProjectProfiles)
	l.guard(f.Guard)
	l.tools(f.Tools)
	l.artifacts(f.Artifacts)
	if l.err != nil {
		return l.c, l.err
	}
	return l.c, nil
}

// loader fills c and keeps the first problem.
type loader struct {
	d   *document
	c   *Config
	err *Error
}

// keep keeps the problem unless there is one already.
func (l *loader) keep(e *Error) {
	if l.err == nil {
		l.err = e
	}
}

// fail keeps a problem with the member at path.
func (l *loader) fail(path profile.Path, format string, args ...any) {
	l.keep(l.d.problem(path, format, args...))
}

// unknown keeps a problem with a word that is none of the known ones.
func (l *loader) unknown(word string, known []string, path profile.Path, format string, args ...any) {
	e := l.d.problem(path, format, args...)
	e.Suggestion = profile.Nearest(word, known)
	l.keep(e)
}

func at(names ...string) profile.Path { return names }

func (l *loader) execution(e *execution) {
	if e == nil {
		return
	}
	c := &l.c.Execution
	here := "execution"
	l.positive(&c.Timeout, e.Timeout, at(here, "timeout"))
	l.positive(&c.RetryBackoff, e.RetryBackoff, at(here, "retry_backoff"))
	within(l, &c.MaxOutputBytes, e.MaxOutputBytes, 1, maxOutputBytes, at(here, "max_output_bytes"))
	within(l, &c.MaxRetries, e.MaxRetries, 0, maxRetries, at(here, "max_retries"))
}

// positive sets a duration that must be more than 0.
func (l *loader) positive(to *time.Duration, d *duration, path profile.Path) {
	switch {
	case d == nil:
	case *d == 0:
		l.fail(path, "must be more than 0")
	default:
		*to = time.Duration(*d)
	}
}

// within sets a number in [low, high].
func within[T int | int64](l *loader, to, n *T, low, high T, path profile.Path) {
	switch {
	case n == nil:
	case *n < low || *n > high:
		l.fail(path, "must be between %d and %d", low, high)
	default:
		*to = *n
	}
}

func (l *loader) profiles(e *environments) {
	if e == nil {
		return
	}
	for _, w := range e.Profiles {
		named := NamedProfile{Name: w.key, Profile: profile.Profile{Name: w.key}}
		place := at("execution_environments", "profiles", w.key)
		p, err := profile.Parse(w.key, json.RawMessage(w.value), l.c.defaults())
		if bad := profile.CheckName(w.key); bad != nil {
			err = bad
		}
		if err != nil {
			named.Problem = l.profileProblem(place, err)
			l.keep(named.Problem)
		} else {
			named.Profile = p
		}
		l.c.Profiles = append(l.c.Profiles, named)
	}
}

func (l *loader) profileProblem(place profile.Path, err error) *Error {
	var bad *profile.Error
	if !errors.As(err, &bad) {
		return l.d.problem(place, "%v", err)
	}
	e := l.d.problem(bad.Path.Under(place...), "%s", bad.Message)
	e.Suggestion = bad.Suggestion
	return e
}

// reference checks that a name is one of a profile.
func (l *loader) reference(name string, path profile.Path) {
	if slices.Contains(l.c.Names(), name) {
		return
	}
	l.unknown(name, l.c.Names(), path, "there is no profile %q", name)
}

func (l *loader) choices(e *environments, project []string) {
	if e != nil {
		if e.Default != "" {
			l.c.Default = e.Default
			l.reference(e.Default, at("execution_environments", "default"))
		}
		for _, o := range e.Overrides {
			path := at("execution_environments", "overrides", o.key)
			l.toolGlob(o.key, path)
			l.reference(o.value, path)
			l.c.Overrides = append(l.c.Overrides, Override{Pattern: o.key, Profile: o.value})
		}
	}
	l.names(project, at("project_profiles"))
	l.c.ProjectProfiles = project
}

// names checks a list of profiles.
func (l *loader) names(list []string, path profile.Path) {
	for i, name := range list {
		here := append(slices.Clone(path), strconv.Itoa(i))
		if slices.Contains(list[:i], name) {
			l.fail(here, "%q stands here twice", name)
		}
		l.reference(name, here)
	}
}

// groups are the families of tools that a glob may name.
func groups() []string {
	var names []string
	for _, g := range tool.Groups() {
		names = append(names, string(g))
	}
	return names
}

// toolGlob checks a glob over "group.tool".
func (l *loader) toolGlob(glob string, path profile.Path) {
	group, _, dotted := strings.Cut(glob, ".")
	switch {
	case glob == "*":
	case !doublestar.ValidatePattern(glob):
		l.fail(path, "%q is not a glob", glob)
	case !dotted:
		e := l.d.problem(path, `must be a glob over group.tool, such as "shell.*", not %q`, glob)
		if slices.Contains(groups(), group) {
			e.Suggestion = group + ".*"
		}
		l.keep(e)
	case !strings.ContainsAny(group, "*?[{") && !slices.Contains(groups(), group):
		l.unknown(group, groups(), path, "there is no group %q: groups are %s", group, strings.Join(groups(), ", "))
	}
}

func (l *loader) guard(g *guard) {
	if g == nil {
		return
	}
	c := &l.c.Guard
	l.positive(&c.ConfirmTimeout, g.ConfirmTimeout, at("guard", "confirm_timeout"))
	for i, r := range g.Rules {
		l.rule(r, at("guard", "rules", strconv.Itoa(i)))
		c.Rules = append(c.Rules, Rule(r))
	}
	if r := g.Rate; r != nil {
		within(l, &c.Rate.CallsPerMinute, r.CallsPerMinute, 1, 1_000_000, at("guard", "rate", "calls_per_minute"))
		within(l, &c.Rate.Burst, r.Burst, 1, 1_000_000, at("guard", "rate", "burst"))
		switch {
		case r.CallsPerMinute == nil:
			l.fail(at("guard", "rate", "calls_per_minute"), "is missing")
		case r.Burst == nil:
			c.Rate.Burst = c.Rate.CallsPerMinute
		}
	}
	if b := g.Budget; b != nil {
		within(l, &c.Budget.MaxCalls, b.MaxCalls, 1, 1<<53, at("guard", "budget", "max_calls"))
		within(l, &c.Budget.MaxOutputBytes, b.MaxOutputBytes, 1, 1<<53, at("guard", "budget", "max_output_bytes"))
		l.positive(&c.Budget.MaxRuntime, b.MaxRuntime, at("guard", "budget", "max_runtime"))
		if *b == (budget{}) {
			l.fail(at("guard", "budget"), "limits nothing: write max_calls, max_runtime or max_output_bytes")
		}
	}
}

func (l *loader) rule(r rule, path profile.Path) {
	below := func(names ...string) profile.Path { return profile.Path(names).Under(path...) }
	if len(r.Tools) == 0 {
		l.fail(below("tools"), `must name tools, such as ["shell.*"]`)
	}
	for i, glob := range r.Tools {
		l.toolGlob(glob, below("tools", strconv.Itoa(i)))
	}
	for name, glob := range r.Match {
		switch {
		case name == "command":
			if strings.TrimSpace(glob) == "" {
				l.fail(below("match", name), "names no command")
			}
		case name == "" || !doublestar.ValidatePattern(glob):
			l.fail(below("match", name), "%q is not a glob", glob)
		}
	}
	for i, actor := range r.Actors {
		l.word(actor, below("actors", strconv.Itoa(i)), "main", "subagent", "side_chat")
	}
	l.word(r.Action, below("action"), "allow", "confirm", "deny")
}

// word checks that s is one of the words.
func (l *loader) word(s string, path profile.Path, words ...string) {
	switch {
	case slices.Contains(words, s):
	case s == "":
		l.fail(path, "is missing: it must be one of %s", strings.Join(words, ", "))
	default:
		l.unknown(s, words, path, "must be one of %s, not %q", strings.Join(words, ", "), s)
	}
}

func (l *loader) tools(t *tools) {
	if t == nil {
		return
	}
	var names []string
	named := func(name string, path profile.Path) {
		switch {
		case profile.CheckName(name) != nil:
			l.fail(path, "%q cannot be a name: it must begin with a letter or digit and hold at most 64 letters, digits, _ . and -", name)
		case slices.Contains(names, name):
			l.fail(path, "there are two tools called %q", name)
		}
		names = append(names, name)
	}
	for i, p := range t.Plugins {
		path := at("tools", "plugins", strconv.Itoa(i))
		named(p.Name, append(slices.Clone(path), "name"))
		if _, digest := profile.CutDigest(p.WASM); !digest && !filepath.IsAbs(p.WASM) {
			l.fail(append(slices.Clone(path), "wasm"), `must be an absolute path or "sha256:" and 64 hex digits, not %q`, p.WASM)
		}
		if p.Profile != "" {
			l.pluginProfile(p.Profile, append(slices.Clone(path), "profile"))
		}
		l.c.Tools.Plugins = append(l.c.Tools.Plugins, Plugin(p))
	}
	for i, p := range t.Packs {
		path := at("tools", "packs", strconv.Itoa(i))
		named(p.Name, append(slices.Clone(path), "name"))
		if len(p.Command) == 0 || p.Command[0] == "" {
			l.fail(append(slices.Clone(path), "command"), "must name a program")
		}
		if p.Source != "" && !filepath.IsAbs(p.Source) {
			l.fail(append(slices.Clone(path), "source"), "must be an absolute path of this host, not %q", p.Source)
		}
		if len(p.Profiles) == 0 {
			l.fail(append(slices.Clone(path), "profiles"), "must name the profiles whose environments have the pack")
		}
		l.names(p.Profiles, append(slices.Clone(path), "profiles"))
		for j, name := range p.Profiles {
			if on, ok := l.c.Profile(name); ok && on.Backend == profile.WASM {
				l.fail(append(slices.Clone(path), "profiles", strconv.Itoa(j)), "the profile %q is for wasm, where no executable runs: register a module instead", name)
			}
		}
		if p.Source == "" && slices.ContainsFunc(p.Command, func(arg string) bool { return strings.Contains(arg, SourceMark) }) {
			l.fail(append(slices.Clone(path), "command"), "%s stands for the source, and there is none", SourceMark)
		}
		l.c.Tools.Packs = append(l.c.Tools.Packs, Pack{p.Name, p.Command, p.Source, p.Profiles})
	}
}

func (l *loader) pluginProfile(name string, path profile.Path) {
	l.reference(name, path)
	if p, ok := l.c.Profile(name); ok && p.Backend != profile.WASM {
		l.fail(path, "the profile %q is for %s, and a plugin needs one for wasm", name, p.Backend)
	}
}

func (l *loader) artifacts(a *artifacts) {
	if a != nil {
		l.positive(&l.c.Keep, a.Keep, at("artifacts", "keep"))
	}
}
