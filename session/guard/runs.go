package guard

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
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
	if program == "ld.so" || strings.HasPrefix(program, "ld-linux") || strings.HasPrefix(program, "ld-musl") || strings.HasPrefix(program, "ld.so.") || strings.HasPrefix(program, "ld64") {
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

// called is the name by which a program is known: in small letters, as the case of names
// does not matter everywhere, without its version, and without the g of GNU's.
func called(name string) string {
	program := strings.ToLower(base(name))
	if short := strings.TrimRight(program, "0123456789.-"); short != program && sameCode()[program] == "" && (isShell(short) || speaks(short) != "") {
		return short
	}
	if short, _, ok := strings.Cut(program, "."); ok && slices.Contains(editors, short) { // vim.tiny
		return short
	}
	switch short := strings.TrimPrefix(program, "g"); short {
	case "timeout", "xargs", "env", "find", "nice", "nohup", "stdbuf", "time", "chroot", "sed":
		return short
	}
	return program
}

// mountValues are the flags of mount whose value is the next word.
var mountValues = strings.Fields("-o -t -L -U --options --types")

// through are programs that are there to run another one.
var through = []string{
	"sh", "bash", "dash", "zsh", "ksh", "eval", "sudo", "doas", "env", "nice", "nohup", "time", "exec", "command", "builtin", "xargs", "setsid", "timeout",
	"stdbuf", "ionice",
}

// subscripts follows what runs in the names of elements of lists: those that a shell is
// told in words are expanded once more.
func (w *walker) subscripts(sh *shell, program string, args []field) {
	for i, a := range args {
		switch program {
		case "test", "[", "printf", "wait":
			if i == 0 || args[i-1].text != "-v" && args[i-1].text != "-p" {
				continue
			}
		case "unset", "read", "let", "mapfile", "readarray", "declare", "typeset", "local", "export", "readonly":
		default:
			return
		}
		w.subscript(sh, a.text)
	}
}

// subscript follows what runs in an expression of numbers that is a text.
func (w *walker) subscript(sh *shell, text string) {
	if strings.Contains(text, "[") {
		w.expanded(sh, text)
	}
}

// expanded follows what runs in a text that a shell expands as if it stood in double
// quotes.
func (w *walker) expanded(sh *shell, text string) {
	if strings.ContainsAny(text, "$`") {
		w.code(sh.child(), `: "`+strings.ReplaceAll(text, `"`, "")+`"`, unread)
	}
}

// prompts follows what runs in the prompts of a shell.
func (w *walker) prompts(sh *shell) {
	for _, name := range prompts {
		if v, ok := sh.vars[name]; ok && len(v.list) > 0 {
			w.expanded(sh, v.list[0])
		}
	}
}

// readsOn are flags of interpreters that still read a program.
var readsOn = []string{"-", "-i", "-q", "-u", "-B", "-E", "-I", "-s", "--vanilla", "--slave", "--no-save", "--quiet"}

// special follows what a shell does itself, shells, and programs whose way to run
// others is their own. It reports whether it was one.
func (w *walker) special(sh *shell, program string, fields []field, stdin string) (string, bool) {
	args := fields[1:]
	for _, kind := range []func(*shell, string, []field, string) (string, bool){w.builtin, w.writer} {
		if out, ok := kind(sh, program, args, stdin); ok {
			return out, true
		}
	}
	if isShell(program) {
		return w.shell(sh, program, args, stdin), true
	}
	table := program
	if same, ok := sameTerminals[program]; ok {
		table = same
	}
	if _, ok := terminals()[table]; ok {
		w.keeps(sh, program, table, args, stdin)
		return string(anything), true
	}
	if slices.Contains(containers, program) {
		return w.container(sh, program, args, stdin), true
	}
	switch program {
	case "mount": // of what is there at another place
		if operands := operandsBehind(mountValues, args); len(operands) == 2 && slices.ContainsFunc(args, func(f field) bool { return strings.Contains(f.text, "bind") || f.text == "-B" }) {
			sh.links.add(resolve(sh.dir, operands[1].text), resolve(sh.dir, operands[0].text))
		}
	case "direnv": // whose file is a shell's
		w.code(sh.child(), w.file(sh, field{text: ".envrc"}, unread), unread)
	case "cmake": // which starts the builder
		if i := slices.IndexFunc(args, func(f field) bool { return f.text == "--" }); i >= 0 && args[0].text == "--build" {
			w.options(sh, "make", args[i+1:])
			w.makefile(sh, args[i+1:], unread)
		}
	case "yarn", "corepack": // which have others in them
		if len(args) > 1 && slices.Contains([]string{"node", "yarn", "npm", "pnpm"}, args[0].text) {
			return w.run(sh, args, stdin), true
		}
	case "xdotool", "ydotool", "wtype", "kitty", "wezterm": // which type into others
		if i := slices.IndexFunc(args, func(f field) bool { return f.text == "type" || f.text == "send-text" }); i >= 0 {
			for _, keys := range operandsBehind(nil, args[i+1:]) {
				w.typedKeys(program, unescape(keys.text, false))
			}
			return string(anything), true
		}
	case "at", "batch":
		w.later(sh, program, args, stdin)
		return string(outside), true
	case "pwsh", "powershell":
		if stdin != unread {
			w.typed(sh.child(), program, stdin)
			return string(anything), true
		}
		fallthrough
	case "python", "pypy", "ipython", "perl", "ruby", "irb", "node", "nodejs", "php", "lua", "luajit", "r", "octave", "julia", "tclsh", "wish",
		"jshell", "guile", "racket", "sbcl", "clisp", "ghci", "iex", "erl", "scala", "clojure", "ocaml", "utop":
		// What a program of theirs does is not looked at. One that nobody has seen is
		// as any other code that is only known when it runs.
		if open(stdin) && !slices.ContainsFunc(args, func(f field) bool { return !slices.Contains(readsOn, f.text) }) {
			w.give(program, "it reads a program that is only known when it runs")
		}
		return string(anything), true
	case "buildah":
		if len(args) > 0 && slices.Contains(builds, args[0].text) {
			return w.container(sh, program, args, stdin), true
		}
	case "k3s", "microk8s", "minikube": // which have others in them
		if len(args) > 0 && slices.Contains(containers, args[0].text) {
			return w.run(sh, args, stdin), true
		}
	case "busybox", "toybox", "busybox-static", "busybox.static":
		if len(args) > 0 && !strings.HasPrefix(args[0].text, "-") {
			return w.run(sh, args, stdin), true
		}
		return string(outside), true
	case "socat":
		for _, a := range args {
			w.addresses(sh, a.text)
		}
		return string(anything), true
	case "crontab":
		switch {
		case len(args) == 0 || args[len(args)-1].text == "-":
			w.schedule(sh, stdin)
		case !strings.HasPrefix(args[len(args)-1].text, "-"):
			w.schedule(sh, w.file(sh, args[len(args)-1], stdin))
		}
		return string(anything), true
	case "pee", "mispipe":
		for _, a := range args {
			w.code(sh.child(), a.text, stdin)
		}
		return string(anything), true
	case "xargs":
		return w.xargs(sh, args, stdin), true
	case "find", "fd", "fdfind":
		return w.find(sh, args, stdin), true
	case "parallel", "env_parallel":
		return w.parallel(sh, args, stdin), true
	case "env":
		return w.env(sh, args, stdin), true
	case "git":
		return w.git(sh, fields, stdin), true
	case "autossh": // whose -M has a value
		if i := slices.IndexFunc(args, func(f field) bool { return f.text == "-M" }); i >= 0 && i+1 < len(args) {
			args = slices.Delete(slices.Clone(args), i, i+2)
		}
		w.ssh(sh, args, stdin)
		return string(anything), true
	case "ssh":
		w.ssh(sh, args, stdin)
		return string(anything), true
	case "make", "gmake", "bmake", "remake", "mingw32-make":
		w.makefile(sh, args, stdin)
		return string(anything), true
	case "just":
		w.justfile(sh, args, stdin)
		return string(anything), true
	case "runuser":
		if !slices.ContainsFunc(args, func(f field) bool { return strings.HasPrefix(f.text, "-u") || strings.HasPrefix(f.text, "--user") }) {
			return w.runner(sh, runners()["su"], fields, stdin), true
		}
	}
	if name, ok := strings.CutPrefix(program, "git-"); ok {
		return w.git(sh, append([]field{{text: "git"}, {text: name}}, args...), stdin), true
	}
	return "", false
}

// changeDir follows cd.
func (w *walker) changeDir(sh *shell, args []field) {
	for len(args) > 0 && len(args[0].text) > 1 && strings.HasPrefix(args[0].text, "-") {
		args = args[1:]
	}
	target := sh.lookup("HOME")
	if len(args) > 0 {
		target = args[0].text
	}
	switch {
	case target == "-":
		sh.dir = string(someDir)
		return
	case target == string(outside), target == string(solid):
		// A variable of the environment: somewhere, but not the root.
		sh.dir = string(someDir)
		return
	case target == "" && len(args) > 0:
		return
	}
	if _, ok := sh.vars["CDPATH"]; ok && !absolute(target) && !strings.HasPrefix(target, ".") {
		sh.dir = string(anything)
		return
	}
	sh.dir = limited(resolve(sh.dir, target))
}

// setOptions follows set.
func (w *walker) setOptions(sh *shell, args []field) {
	for i, a := range args {
		switch {
		case a.text == "--":
			sh.params = slices.Clone(args[i+1:])
			return
		case a.text == "-o" || a.text == "+o":
		case a.text == "allexport", strings.HasPrefix(a.text, "-") && strings.Contains(a.text, "a") && !strings.HasPrefix(a.text, "--"):
			sh.allOut = true
		case !strings.HasPrefix(a.text, "-") && !strings.HasPrefix(a.text, "+"):
			if i > 0 && args[i-1].text == "-o" || i > 0 && args[i-1].text == "+o" {
				continue
			}
			sh.params = slices.Clone(args[i:])
			return
		}
	}
}

// readInto sets what read takes from a text that is known. With flags that read another
// way it may be anything.
func (s *shell) readInto(args []field, stdin string) {
	var names []string
	for i := 0; i < len(args); i++ {
		flags, ok := strings.CutPrefix(args[i].text, "-")
		switch {
		case !ok && syntax.ValidName(args[i].text):
			names = append(names, args[i].text)
		case ok && strings.Trim(flags, "rs") != "":
			if strings.HasSuffix(flags, "p") && strings.Trim(flags, "rsp") == "" {
				i++ // the prompt
				continue
			}
			stdin = string(anything)
		}
	}
	line, _, _ := strings.Cut(stdin, "\n")
	if len(names) == 0 {
		names = []string{"REPLY"}
	}
	if open(stdin) || strings.Contains(stdin, "\x00") || !known(s.lookup("IFS")) || s.lookup("IFS") != " \t\n" {
		s.forget(names...)
		return
	}
	words := strings.Fields(line)
	for i, name := range names {
		switch {
		case i >= len(words):
			s.set(name, "")
		case i == len(names)-1:
			s.set(name, strings.Join(words[i:], " "))
		default:
			s.set(name, words[i])
		}
	}
	if strings.Count(stdin, "\n") > 1 || !known(stdin) {
		// A loop may read on.
		for _, name := range names {
			if known(stdin) {
				s.set(name, string(anything))
			} else {
				s.set(name, stdin)
			}
		}
	}
}

func (w *walker) alias(sh *shell, args []field) {
	for _, a := range args {
		name, value, ok := strings.Cut(a.text, "=")
		if !ok {
			continue
		}
		if !known(name) {
			w.give("alias "+a.text, "what it names is only known when it runs")
			continue
		}
		sh.aliases[name] = value
	}
}
