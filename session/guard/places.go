package guard

import (
	"slices"
	"strings"
	"sync"
)

// plainOperands are programs whose words are paths as they stand, with nothing before or
// behind them.
var plainOperands = strings.Fields("rm rmdir mv cp ln cat ls touch mkdir chmod chown chgrp cd pushd echo printf test [ kill")

// apart reports whether what a program is given may hold a path beside other text.
func apart(program string) bool { return !slices.Contains(plainOperands, program) }

// pathsIn are the paths that stand in one word beside other text: the value of a flag or a
// setting, what @ and < read for clients of the web, addresses of files, and the files of
// commits and of mounts. What is not known is none.
func pathsIn(program, text string) (all []string) {
	add := func(p string) {
		p = homed(strings.Trim(p, `"'`))
		if p != "" && p != text && !strings.ContainsAny(p, string(anything)+string(outside)+string(solid)) {
			all = append(all, p)
		}
	}
	if len(text) > maxText || strings.ContainsAny(text, " \t\n") {
		return nil // more than a word
	}
	if len(text) > 2 && text[0] == '-' && text[1] != '-' {
		add(text[2:])
	}
	for part := range strings.SplitSeq(text, ",") { // as of mounts
		_, value, cut := strings.Cut(part, "=")
		if !cut {
			value = part
		}
		value, _, _ = strings.Cut(value, ";") // a type
		add(value)
		if i := strings.LastIndexAny(value, "@<="); i >= 0 {
			add(value[i+1:])
		}
		lower := strings.ToLower(value)
		for _, scheme := range []string{"file://localhost", "file://", "fileb://", "file:", "open:", "gopen:", "create:"} {
			if i := strings.Index(lower, scheme); i >= 0 {
				add(value[i+len(scheme):])
				break
			}
		}
		switch before, after, ok := strings.Cut(value, ":"); {
		case !ok:
		case slices.Contains(containers, program):
			add(strings.TrimPrefix(before, "-v"))
		case program == "git":
			add(after)
		}
	}
	return all
}

// homed is a path in which ~ stands for the home.
func homed(p string) string {
	if p == "~" || strings.HasPrefix(p, "~/") {
		return string(home) + p[1:]
	}
	return p
}

// directoryFlags are the flags of programs behind which the directory stands from which they
// look at their words.
var directoryFlags = sync.OnceValue(func() map[string][]string {
	return map[string][]string{
		"tar": {"-C", "--directory", "--cd"}, "bsdtar": {"-C", "--cd"}, "git": {"-C", "--work-tree"}, "make": {"-C", "--directory"}, "gmake": {"-C", "--directory"},
		"ninja": {"-C"}, "go": {"-C"}, "cargo": {"-C"}, "rg": {"--cwd"}, "fd": {"--base-directory", "-C"}, "zip": {"-C"}, "jar": {"-C"},
	}
})

// maxElsewheres bounds those of one command.
const maxElsewheres = 16

// elsewheres are the directories besides its own from which a command looks at its words.
func (c *command) elsewheres() []string {
	if c.from != nil {
		return *c.from
	}
	var all []string
	c.from = &all
	flags := directoryFlags()[called(c.fields[0].text)]
	if len(flags) == 0 {
		return nil
	}
	for _, f := range named(c.fields[1:], flags...) {
		if dir := resolve(c.dir, f.text); !slices.Contains(all, dir) {
			all = append(all, dir)
		}
		if len(all) > maxElsewheres || !c.effort.compare(len(f.text)) {
			break
		}
	}
	return all
}

// inside are the paths that stand in the words of a command beside other text.
func (c *command) inside() []string {
	if c.within != nil {
		return *c.within
	}
	var all []string
	c.within = &all
	if program := called(c.fields[0].text); apart(program) {
		for _, f := range c.fields[1:] {
			if !c.effort.compare(schemeWork + len(f.text)) {
				break
			}
			all = append(all, pathsIn(program, f.text)...)
		}
	}
	return all
}

// beside finds a path in what the command reads or writes without its words, and in words
// that hold more than a path. What is written counts where the rule is about every program:
// to most it is not what they are about.
func (m *matching) beside(w wordGlob, wild bool) bool {
	is := func(text string) bool {
		return known(strings.TrimPrefix(text, string(home))) && m.is(w, argument{field: field{text: text}})
	}
	c := m.command
	if slices.ContainsFunc(c.touched.reads, is) || wild && slices.ContainsFunc(c.touched.writes, is) || slices.ContainsFunc(c.inside(), is) {
		return true
	}
	dirs := c.elsewheres()
	if len(dirs) > maxElsewheres {
		return true // more than is followed
	}
	if len(dirs) > 0 {
		moved := *m
		for _, moved.dir = range dirs {
			for _, a := range m.args {
				if !a.flag && known(a.text) && moved.is(w, a) {
					return true
				}
			}
		}
	}
	return false
}

// words finds the plain words of a pattern where paths may stand too, for those that look like
// the name of a file.
func (m *matching) words(all []wordGlob) bool {
	return !m.certain && len(all) > 0 && !slices.ContainsFunc(all, func(w wordGlob) bool {
		return !slices.Contains(w.forms[0], element{r: '.'}) || !m.beside(w, false)
	})
}

// seen are the paths that an argument is looked at as: absolute, from where the
// call's relative paths begin, as it is written, and, where it is a glob, the
// directories in which that looks. What is certain is the first two. It is false where
// there are more than are followed.
func (m *matching) seen(text string) (all []string, ok bool) {
	links, from := m.command.links, place{m.dir, text, m.certain}
	if known, ok := links.seen[from]; ok {
		return known.paths, known.all
	}
	paths, ok := m.placed(text)
	links.seen[from] = sights{paths, ok}
	return paths, ok
}

// placed makes those paths.
func (m *matching) placed(text string) (all []string, ok bool) {
	if len(text) > maxLine || !m.command.effort.compare(pathWork+len(m.dir)+len(text)) {
		return nil, false
	}
	full := resolve(m.dir, text)
	others, ok := m.command.links.of(full, m.command.effort)
	if m.certain && len(others) > 0 {
		return nil, ok // it is elsewhere
	}
	for _, place := range append([]string{full}, others...) {
		all = append(all, place)
		if inside, ok := strings.CutPrefix(place, strings.TrimSuffix(m.base, "/")+"/"); ok {
			all = append(all, inside)
		}
		if place == m.base {
			all = append(all, ".")
		}
	}
	if m.certain {
		return all, ok
	}
	if !absolute(text) {
		all = append(all, strings.TrimPrefix(text, "./"))
	}
	for i, r := range full {
		if r != '/' || i == 0 {
			continue
		}
		if name := full[strings.LastIndexByte(full[:i], '/')+1 : i]; !known(name) && globOnly(name) {
			all = append(all, full[:i])
		}
	}
	return all, ok
}

// touch notes the files that redirections of a statement read or write, for the commands of
// it, and returns what undoes that.
func (s *shell) touch(reads, writes []string) (undo func()) {
	before := s.touched
	s.touched = touched{append(slices.Clip(before.reads), reads...), append(slices.Clip(before.writes), writes...)}
	return func() { s.touched = before }
}

// touched are the names of files that a command reads or writes without being told by its
// words.
type touched struct{ reads, writes []string }

// alone notes what a statement does that consists of redirections, as the commands that do
// the same.
func (w *walker) alone(sh *shell) {
	for _, words := range [][]string{append([]string{"cat"}, sh.touched.reads...), append([]string{"tee"}, sh.touched.writes...)} {
		if len(words) > 1 {
			w.note(sh, literal(words))
			w.found[len(w.found)-1].implied = true
		}
	}
}

// told notes the files that a program is told to read in a program of its own language: in
// quotes, and among the words of a client's commands.
func (c *command) told(program string, args []field, stdin string) {
	client := isClient(program) || program == "sed" || slices.Contains(editors, program)
	if !client && speaks(program) == "" && !strings.HasSuffix(program, "awk") {
		return
	}
	sources := texts(args)
	if stdin != unread {
		sources = append(sources, stdin)
	}
	var names []string
	for _, text := range sources {
		if len(text) > maxText {
			continue
		}
		list := quotedTexts(text)
		if client {
			list = append(list, strings.Fields(text)...)
		}
		for _, name := range list {
			if program == "sed" {
				name = strings.TrimLeft(name, "0123456789,$rwRW")
			}
			name = homed(strings.TrimLeft(strings.Trim(name, `"';`), "<>+"))
			if name != "" && name != text && len(name) <= maxShown && known(strings.TrimPrefix(name, string(home))) && len(names) < maxNames {
				names = append(names, name)
			}
		}
	}
	c.touched.reads = append(slices.Clip(c.touched.reads), names...)
}
