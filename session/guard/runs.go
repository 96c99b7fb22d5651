package guard

import (
	"slices"
	"strings"
)

// run follows one command whose words are expanded: it is noted, and so is what
// it runs in its turn. It returns what the command prints, as far as that can be
// known.
func (w *walker) run(sh *shell, fields []field, stdin string) string {
	if len(fields) == 0 {
		return ""
	}
	if w.over(sh) {
		return string(anything)
	}
	sh.depth++
	defer func() { sh.depth-- }()
	first := fields[0]
	at := len(w.found)
	w.note(sh, withoutValues(fields))
	if w.spent {
		return string(anything)
	}
	defer func() {
		if slices.Contains(through, base(first.text)) && len(w.found) > at+1 {
			w.found[at].through = true
		}
	}()
	if first.many && (open(first.text) || strings.HasPrefix(first.text, string(outside))) {
		// It may be no word at all: then the next one is the command.
		if len(fields) > 1 {
			w.run(sh, fields[1:], stdin)
		}
		return string(anything)
	}
	name := first.text
	if rest := strings.TrimPrefix(name, "="); name == "--" || name == "-" || rest != name && rest != "" {
		// -- and - end the flags of a keyword such as exec; =name is a program's path in zsh.
		if inner := slices.Clone(fields); rest != name {
			inner[0].text = rest
			return w.run(sh, inner, stdin)
		}
		return w.run(sh, fields[1:], stdin)
	}
	program := called(name)
	if !known(program) {
		return string(anything)
	}
	if body, ok := sh.funcs[name]; ok {
		params := sh.params
		sh.params = fields[1:]
		out := w.call(sh, body, stdin)
		sh.params = params
		return out
	}
	if alias, ok := sh.aliases[name]; ok && !strings.HasPrefix(name, "git ") {
		return w.aliased(sh, alias, fields, stdin)
	}
	if programs := w.written(sh, name); len(programs) > 0 {
		return w.own(sh, programs, fields, stdin)
	}
	w.found[at].told(program, fields[1:], stdin)
	w.interpreter(sh, program, fields[1:], stdin)
	w.programFile(sh, program, fields[1:], stdin)
	w.lying(sh, program)
	w.recipesOf(sh, program, fields[1:], stdin)
	w.packageScripts(sh, program)
	sh.edited(program, fields[1:])
	w.codeIn(sh, program, fields[1:])
	w.options(sh, program, fields[1:])
	w.sshOptions(sh, program, fields[1:], stdin)
	w.subscripts(sh, program, fields[1:])
	if out, ok := w.special(sh, program, fields, stdin); ok {
		return out
	}
	if r, behind, ok := runnerOf(program, fields); ok {
		return w.runner(sh, r, behind, stdin)
	}
	if isLoader(program) {
		return w.runner(sh, runner{values: "--library-path --inhibit-rpath --preload --audit --argv0"}, fields, stdin)
	}
	return output(sh, program, fields[1:], stdin)
}

// own follows a command that is a file which the line itself wrote or copied, and which of
// these that is.
func (w *walker) own(sh *shell, programs []string, fields []field, stdin string) string {
	out := string(anything)
	for _, text := range programs {
		if original, ok := strings.CutPrefix(text, copied); ok {
			out = w.run(sh, append([]field{{text: original}}, fields[1:]...), stdin)
			continue
		}
		inner := sh.child()
		inner.params = fields[1:]
		if interpreter, ok := interpretedBy(text); ok {
			w.run(inner, slices.Concat(interpreter, fields), stdin)
			continue
		}
		w.code(inner, text, stdin)
	}
	if len(programs) > 1 {
		return string(anything)
	}
	return out
}

// aliased follows a command whose word is an alias.
func (w *walker) aliased(sh *shell, alias string, fields []field, stdin string) string {
	name := fields[0].text
	delete(sh.aliases, name) // it does not stand for itself
	defer func() { sh.aliases[name] = alias }()
	if strings.ContainsAny(alias, ";&|<>(){}$`\n") {
		params := sh.params
		sh.params = fields[1:]
		w.code(sh, alias+` "$@"`, stdin)
		sh.params = params
		return string(anything)
	}
	b := &splitter{ifs: " \t\n"}
	b.split(alias)
	b.end()
	return w.run(sh, append(b.fields, fields[1:]...), stdin)
}
