package guard

import (
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// shell is what is known of a shell while its commands are followed.
type shell struct {
	vars     map[string]variable
	exported map[string]bool
	allOut   bool // every variable is exported
	funcs    map[string]*syntax.Stmt
	aliases  map[string]string
	params   []field
	zero     string
	dir      string // with marks
	depth    int
	// bash says that it certainly reads code as bash does, and echoes that its echo
	// certainly does not decode escapes.
	bash, echoes bool
	// locals are what the variables of the function that runs were outside of it, nil
	// for those that were not; nil itself outside of functions.
	locals map[string]*variable
	// files are what commands wrote into files of these names, with marks. All
	// shells of a line share them.
	files map[string]string
	// sorted are the names of files in order, as many as there were when they were asked
	// for last.
	sorted *[]string
	// links are the paths at which the line makes links, and where they lead. All shells
	// of a line share them.
	links *links
	// touched is what the redirections around the command read and write.
	touched touched
}

// variable is one that the line sets.
type variable struct {
	list  []string // with marks; one, but for an array
	array bool
}

func newShell(dir string) *shell {
	if dir == "" {
		dir = dirText("")
	}
	return &shell{
		vars: map[string]variable{}, exported: map[string]bool{}, funcs: map[string]*syntax.Stmt{},
		aliases: map[string]string{}, files: map[string]string{}, sorted: &[]string{}, links: newLinks(), dir: dir, zero: "bash",
	}
}

// fork is a shell that begins as this one, and whose changes stay its own.
func (s *shell) fork() *shell {
	c := *s
	c.vars, c.exported, c.funcs = maps.Clone(s.vars), maps.Clone(s.exported), maps.Clone(s.funcs)
	c.aliases = maps.Clone(s.aliases)
	c.locals = maps.Clone(s.locals)
	return &c
}

// localise keeps what variables are outside of the function that declares them.
func (s *shell) localise(list []*syntax.Assign) {
	if s.locals == nil {
		return
	}
	for _, a := range list {
		if a.Name == nil {
			if a.Value != nil && strings.HasPrefix(a.Value.Lit(), "-") && strings.Contains(a.Value.Lit(), "g") {
				return // declare -g
			}
			continue
		}
		name := a.Name.Value
		if _, ok := s.locals[name]; ok {
			continue
		}
		s.locals[name] = nil
		if v, ok := s.vars[name]; ok {
			s.locals[name] = &v
		}
	}
}

// same reports whether what follows would run as after o.
func (s *shell) same(o *shell) bool {
	return s.dir == o.dir && s.allOut == o.allOut &&
		maps.EqualFunc(s.vars, o.vars, func(a, b variable) bool { return a.array == b.array && slices.Equal(a.list, b.list) }) &&
		maps.Equal(s.funcs, o.funcs) && maps.Equal(s.aliases, o.aliases) &&
		slices.EqualFunc(s.params, o.params, func(a, b field) bool { return a.text == b.text && a.many == b.many })
}

// child is a shell that is a program of its own: of the variables it has those
// that are exported.
func (s *shell) child() *shell {
	c := newShell(s.dir)
	c.depth, c.files, c.sorted, c.links, c.allOut = s.depth+1, s.files, s.sorted, s.links, s.allOut
	for name, v := range s.vars {
		if s.allOut || s.exported[name] {
			c.vars[name], c.exported[name] = v, true
		}
	}
	return c
}

func (s *shell) set(name, value string) {
	s.vars[name] = variable{list: []string{limited(value)}}
	if s.allOut {
		s.exported[name] = true
	}
}

// forget makes variables ones that may hold anything.
func (s *shell) forget(names ...string) {
	for _, name := range names {
		if syntax.ValidName(name) {
			s.set(name, string(anything))
		}
	}
}

// merge makes s what is true in all of the shells: one of them goes on.
func (s *shell) merge(others ...*shell) {
	for _, o := range others {
		for name, v := range o.vars {
			if mine, ok := s.vars[name]; !ok || mine.array != v.array || !slices.Equal(mine.list, v.list) {
				s.set(name, string(anything))
			}
			if o.exported[name] {
				s.exported[name] = true
			}
		}
		for name := range s.vars {
			if _, ok := o.vars[name]; !ok {
				s.set(name, string(anything))
			}
		}
		s.allOut = s.allOut || o.allOut
		maps.Copy(s.funcs, o.funcs)
		maps.Copy(s.aliases, o.aliases)
		if !slices.EqualFunc(s.params, o.params, func(a, b field) bool { return a.text == b.text && a.many == b.many }) {
			s.params = []field{{text: string(anything), many: true}}
		}
		if s.dir != o.dir {
			s.dir = either(s.dir, o.dir)
		}
	}
}

// either is a directory that may be one of the two.
func either(a, b string) string {
	for _, d := range []string{a, b} {
		if d == "/" || !absolute(d) {
			return string(anything)
		}
	}
	return string(someDir)
}

// lookup is a variable's value, in one text for a list.
func (s *shell) lookup(name string) string {
	if v, ok := s.vars[name]; ok {
		switch len(v.list) {
		case 0:
			return ""
		case 1:
			return v.list[0]
		}
		return v.list[0] // $array is its first element
	}
	switch name {
	case "HOME":
		return string(home)
	case "PWD":
		return s.dir
	case "IFS":
		return " \t\n"
	case "0":
		return s.zero
	case "SHELL", "BASH":
		return "/bin/bash"
	case "@", "*":
		return strings.Join(texts(s.params), " ")
	case "?", "#", "$", "!", "-", "_", "RANDOM", "SECONDS", "LINENO", "UID", "EUID", "PPID", "BASHPID", "HOSTNAME", "HOSTTYPE", "OSTYPE":
		return string(outside)
	}
	if i, ok := position(name); ok {
		switch {
		case i <= len(s.params) && !s.params[i-1].many:
			return s.params[i-1].text
		case slices.ContainsFunc(s.params, func(f field) bool { return f.many }):
			return string(anything)
		}
		return ""
	}
	return string(outside)
}

// position is the number of a positional parameter.
func position(name string) (int, bool) {
	n := 0
	for _, r := range name {
		if r < '0' || r > '9' || n > 1000 {
			return 0, false
		}
		n = n*10 + int(r-'0')
	}
	return n, n > 0
}
