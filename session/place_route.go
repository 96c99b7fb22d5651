package session

import (
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session/store"
)

// toolName is a tool as overrides name it.
type toolName struct {
	group tool.Group
	name  string
}

func (t toolName) String() string { return string(t.group) + "." + t.name }

// routes say to which place of a session a tool goes, by the place's index.
type routes []route

type route struct {
	pattern string
	weight  int
	place   int
}

// newRoutes are the overrides of a session with these places. An override with no
// place for its profile is [tool.Internal]: the two are saved together.
func newRoutes(overrides []store.Override, places []store.Place) (routes, error) {
	var all routes
	for _, o := range overrides {
		// What was made for a job may be of the same profile.
		at := slices.IndexFunc(places, func(p store.Place) bool { return !p.OneOff && p.Profile.Name == o.Profile })
		if at < 0 {
			return nil, tool.Errorf(tool.Internal, "the override of %s names the profile %q, which the session has no environment for", o.Pattern, o.Profile)
		}
		all = append(all, route{o.Pattern, weight(o.Pattern), at})
	}
	return all, nil
}

// find is the index of the place that a tool goes to. What has no override of its
// own goes with the others that it has to do with: background processes, and jobs,
// are where the shell is, and what is presented is where the files are.
func (r routes) find(t toolName) int {
	switch {
	case t.group == tool.GroupProcess, t.group == tool.GroupShell:
		t = toolName{tool.GroupShell, "bash"}
	case t.group == tool.GroupArtifact && !r.names(tool.GroupArtifact):
		t = toolName{tool.GroupFile, readFile}
	}
	best := route{weight: -1}
	for _, o := range r {
		if o.weight > best.weight && o.matches(t) {
			best = o
		}
	}
	return best.place
}

// names reports whether an override names the group itself.
func (r routes) names(g tool.Group) bool {
	for _, o := range r {
		if strings.HasPrefix(o.pattern, string(g)+".") {
			return true
		}
	}
	return false
}

// matches reports whether the override's glob matches. A slash is a character like
// others: names of tools are no paths.
func (r route) matches(t toolName) bool {
	const noSlash = "\x00"
	flat := func(s string) string { return strings.ReplaceAll(s, "/", noSlash) }
	ok, err := doublestar.Match(flat(r.pattern), flat(t.String()))
	return ok && err == nil
}

// weight is how specific a glob is: the number of characters that it spells out,
// and one more when it spells out everything. Of alternatives the shortest counts.
func weight(glob string) int {
	n, _ := spelledOut(glob, "")
	if !strings.ContainsAny(glob, `*?[{\`) {
		n++
	}
	return n
}

// spelledOut counts the characters that a glob spells out, up to one of the stops
// outside of its own braces, where the rest begins.
func spelledOut(glob, stops string) (n int, rest string) {
	for i := 0; i < len(glob); i++ {
		switch c := glob[i]; {
		case strings.IndexByte(stops, c) >= 0:
			return n, glob[i:]
		case c == '*' || c == '?':
		case c == '\\':
			i++
			n++
		case c == '[':
			for i++; i < len(glob) && glob[i] != ']'; i++ {
			}
		case c == '{':
			shortest, after := alternatives(glob[i+1:])
			n += shortest
			glob, i = after, -1
		default:
			n++
		}
	}
	return n, ""
}

// alternatives counts the shortest of those that a brace was opened for.
func alternatives(glob string) (shortest int, rest string) {
	shortest = -1
	for {
		n, after := spelledOut(glob, ",}")
		if shortest < 0 || n < shortest {
			shortest = n
		}
		if after == "" {
			return shortest, ""
		}
		glob = after[1:]
		if after[0] == '}' {
			return shortest, glob
		}
	}
}

// placeFor is where a tool of the group runs. The name is a tool's, or that of
// what has the events of one: process.start and shell.job go where shell.bash goes.
func (s *live) placeFor(g tool.Group, name string) (*place, error) {
	if s.broken != nil {
		return nil, s.broken
	}
	i := s.routes.find(toolName{g, name})
	if i == 0 {
		return s.main, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.beside[i-1], nil
}
