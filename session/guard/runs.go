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
	w.note(sh, fields)
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
	program := strings.ToLower(base(name)) // the case of names does not matter everywhere
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
		delete(sh.aliases, name) // it does not stand for itself
		defer func() { sh.aliases[name] = alias }()
		b := &splitter{ifs: " \t\n"}
		b.split(alias)
		b.end()
		return w.run(sh, append(b.fields, fields[1:]...), stdin)
	}
	if text, ok := sh.written(name); ok {
		// A file that the line itself wrote or copied.
		if original, ok := strings.CutPrefix(text, copied); ok {
			return w.run(sh, append([]field{{text: original}}, fields[1:]...), stdin)
		}
		inner := sh.child()
		inner.params = fields[1:]
		w.code(inner, text, stdin)
		return string(anything)
	}
	w.codeIn(sh, fields[1:])
	if out, ok := w.builtin(sh, program, fields, stdin); ok {
		return out
	}
	if r, ok := runners[program]; ok {
		return w.runner(sh, r, fields, stdin)
	}
	return output(sh, program, fields[1:], stdin)
}

// through are programs that are there to run another one.
var through = []string{
	"sh", "bash", "dash", "zsh", "ksh", "eval", "sudo", "doas", "env", "nice", "nohup", "time", "exec", "command", "builtin", "xargs", "setsid", "timeout",
	"stdbuf", "ionice",
}

// written is the content of a program that the line wrote or copied, by its path or,
// where it was copied, by its name.
func (s *shell) written(name string) (string, bool) {
	if strings.Contains(name, "/") {
		text, ok := s.files[resolve(s.dir, name)]
		return text, ok
	}
	for file, text := range s.files {
		if original, ok := strings.CutPrefix(text, copied); ok && base(file) == name && original != name && base(original) != name {
			return text, true
		}
	}
	return "", false
}

// codeFlags begin arguments of other programs that are shell code.
var codeFlags = []string{
	"ProxyCommand=", "LocalCommand=", "--checkpoint-action=exec=", "--to-command=", "--rsh=", "--use-compress-program=",
	"core.sshCommand=", "core.pager=", "core.editor=", "core.fsmonitor=", "sequence.editor=", "diff.external=",
}

// codeIn follows arguments that hold code.
func (w *walker) codeIn(sh *shell, args []field) {
	for _, a := range args {
		for _, flag := range codeFlags {
			if _, code, ok := strings.Cut(a.text, flag); ok {
				w.code(sh.child(), code, unread)
			}
		}
	}
}

// copied begins the content of a file that is a copy of a program, or a link to it.
const copied = "\x00program "

// builtin follows what a shell does itself, shells, and programs whose way to run
// others is their own. It reports whether it was one.
func (w *walker) builtin(sh *shell, program string, fields []field, stdin string) (string, bool) {
	args := fields[1:]
	switch program {
	case "cd", "pushd":
		w.changeDir(sh, args)
		return "", true
	case "popd":
		sh.dir = string(someDir)
		return "", true
	case "eval":
		w.evaluate(sh, strings.Join(texts(args), " "), stdin)
		return string(anything), true
	case "trap":
		if len(args) > 1 {
			w.code(sh.fork(), args[0].text, unread)
		}
		return "", true
	case ".", "source":
		w.source(sh, args, stdin)
		return string(anything), true
	case "at", "batch":
		w.typed(sh.child(), program, stdin)
		return string(outside), true
	case "hash":
		if len(args) == 3 && args[0].text == "-p" {
			sh.aliases[args[2].text] = args[1].text
		}
		return "", true
	case "docker", "podman", "nerdctl", "kubectl", "oc":
		return w.container(sh, args, stdin), true
	case "python", "python2", "python3", "perl", "ruby", "node", "php", "lua", "pwsh":
		// What a program of theirs does is not looked at. One that nobody has seen is
		// as any other code that is only known when it runs.
		if open(stdin) && (len(args) == 0 || len(args) == 1 && args[0].text == "-") {
			w.give(program, "it reads a program that is only known when it runs")
		}
		return string(anything), true
	case "curl", "wget":
		for i, a := range args {
			if (a.text == "-o" || a.text == "-O" || a.text == "--output" || a.text == "--output-document") && i+1 < len(args) {
				w.wrote(sh, args[i+1].text, string(anything))
			}
		}
		return string(anything), true
	case "bash", "sh", "dash", "zsh", "ksh", "ksh93", "mksh", "ash", "rbash", "fish", "yash", "csh", "tcsh":
		return w.shell(sh, program, args, stdin), true
	case "busybox", "toybox":
		if len(args) > 0 && !strings.HasPrefix(args[0].text, "-") {
			return w.run(sh, args, stdin), true
		}
		return string(outside), true
	case "set":
		w.setOptions(sh, args)
		return "", true
	case "shift":
		if len(sh.params) > 0 && !sh.params[0].many {
			sh.params = sh.params[1:]
		}
		return "", true
	case "unset":
		for _, a := range args {
			if syntax.ValidName(a.text) {
				sh.vars[a.text] = variable{}
			}
		}
		return "", true
	case "read", "mapfile", "readarray", "getopts":
		for _, a := range args {
			sh.forget(a.text)
		}
		if program == "read" {
			sh.readInto(args, stdin)
		} else if program != "getopts" {
			sh.forget("MAPFILE")
		}
		return "", true
	case "alias":
		w.alias(sh, args)
		return "", true
	case "export", "declare", "local", "readonly", "typeset": // by way of a variable or command
		for _, a := range args {
			if name, value, ok := strings.Cut(a.text, "="); ok && syntax.ValidName(name) {
				sh.set(name, value)
				sh.exported[name] = true
			}
		}
		return "", true
	case "command", "type", "which":
		for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
			if program == "command" && strings.ContainsAny(args[0].text, "vV") {
				program = "which"
			}
			args = args[1:]
		}
		if program == "command" {
			inner := sh.fork()
			clear(inner.funcs)
			return w.run(inner, args, stdin), true
		}
		return strings.Join(texts(args), "\n") + "\n", true
	case "xargs":
		return w.xargs(sh, args, stdin), true
	case "find", "fd", "fdfind":
		return w.find(sh, args, stdin), true
	case "parallel":
		return w.parallel(sh, args, stdin), true
	case "env":
		return w.env(sh, args, stdin), true
	case "git":
		return w.git(sh, fields, stdin), true
	case "ssh":
		w.ssh(sh, args, stdin)
		return string(anything), true
	case "cp", "mv", "ln", "install":
		sh.copy(args)
		return "", true
	case "tee":
		for _, a := range args {
			if !strings.HasPrefix(a.text, "-") {
				w.wrote(sh, a.text, stdin)
			}
		}
		return stdin, true
	case "printf":
		if len(args) > 2 && args[0].text == "-v" {
			sh.set(args[1].text, output(sh, program, args[2:], stdin))
			return "", true
		}
	case "awk", "gawk", "mawk", "nawk":
		w.awk(sh, args)
	case "sudo", "doas":
		if len(args) == 1 && (args[0].text == "-s" || args[0].text == "-i") {
			return w.shell(sh, "sh", nil, stdin), true
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

// evaluate follows code in this shell.
func (w *walker) evaluate(sh *shell, text, stdin string) {
	if sh.depth > maxDepth {
		w.give("the line", "its code makes code too deep")
		return
	}
	w.code(sh, text, stdin)
}

// source follows a file of commands.
func (w *walker) source(sh *shell, args []field, stdin string) {
	if len(args) == 0 {
		return
	}
	w.evaluate(sh, w.file(sh, args[0], stdin), stdin)
}

// file is the code in a file. One that was there before the line is a program as
// any other: what it does is not looked at.
func (w *walker) file(sh *shell, f field, stdin string) string {
	switch {
	case f.output != nil:
		return *f.output
	case f.text == "-", f.text == "/dev/stdin", f.text == "/dev/fd/0", f.text == "/proc/self/fd/0":
		return stdin
	}
	text := sh.content(f.text)
	if text == string(outside) && known(f.text) || strings.HasPrefix(text, copied) {
		return ""
	}
	if !known(f.text) && !open(f.text) {
		return "" // a file of somebody's, by a name from the environment or a glob
	}
	return text
}

// shell follows a shell that is started.
func (w *walker) shell(sh *shell, program string, args []field, stdin string) string {
	inner := sh.child()
	inner.zero = program
	if inner.depth > maxDepth {
		w.give("the line", "its shells start shells too deep")
		return string(anything)
	}
	inline := false
	for len(args) > 0 {
		arg := args[0].text
		if !strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "+") || arg == "-" || arg == "--" {
			break
		}
		args = args[1:]
		switch {
		case arg == "--rcfile", arg == "--init-file", arg == "-o", arg == "+o", arg == "-O", arg == "+O":
			if len(args) > 0 {
				args = args[1:]
			}
		case arg == "--version", arg == "--help":
			return string(outside)
		case open(arg):
			w.give(program+" "+arg, "its flags are only known when it runs")
			inline = true
		case strings.HasPrefix(arg, "--command="):
			w.code(inner, strings.TrimPrefix(arg, "--command="), stdin)
			return string(anything)
		case arg == "--command":
			inline = true
		case !strings.HasPrefix(arg, "--") && strings.Contains(arg, "o"): // such as -eo pipefail
			if len(args) > 0 {
				args = args[1:]
			}
			inline = inline || arg[0] == '-' && strings.Contains(arg, "c")
		case !strings.HasPrefix(arg, "--") && strings.Contains(arg, "c") && arg[0] == '-':
			inline = true
		case !strings.HasPrefix(arg, "--") && strings.Contains(arg, "s") && arg[0] == '-':
			inner.params = args
			w.typed(inner, program, stdin)
			return string(anything)
		}
	}
	if len(args) > 0 && (args[0].text == "--" || args[0].text == "-" && len(args) > 1) {
		args = args[1:]
	}
	switch {
	case len(args) == 0 || args[0].text == "-":
		w.typed(inner, program, stdin)
	case inline:
		if len(args) > 1 {
			inner.zero, inner.params = args[1].text, args[2:]
		}
		if args[0].many && !known(args[0].text) {
			w.give(program+" -c …", "it is code that is only known when it runs")
			break
		}
		w.code(inner, args[0].text, stdin)
	case args[0].many && open(args[0].text):
		w.give(program+" …", "which code it runs is only known then")
	default:
		inner.zero, inner.params = args[0].text, args[1:]
		w.code(inner, w.file(sh, args[0], stdin), stdin)
	}
	return string(anything)
}

// typed follows a shell that reads its commands from its standard input.
func (w *walker) typed(sh *shell, program, stdin string) {
	if stdin == string(outside) {
		return // a file that was there before
	}
	if open(stdin) {
		w.give(program, "it reads commands that are only known when it runs")
		if stdin == string(anything) {
			return
		}
	}
	w.code(sh, stdin, string(anything))
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

// readInto sets what read takes from a text that is known.
func (s *shell) readInto(args []field, stdin string) {
	var names []string
	for _, a := range args {
		if syntax.ValidName(a.text) {
			names = append(names, a.text)
		}
	}
	line, _, _ := strings.Cut(stdin, "\n")
	if len(names) == 0 {
		names = []string{"REPLY"}
	}
	if open(stdin) || !known(s.lookup("IFS")) || s.lookup("IFS") != " \t\n" {
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

// copy notes the programs that cp, mv, ln and install give another name.
func (s *shell) copy(args []field) {
	var operands []field
	for _, a := range args {
		if !strings.HasPrefix(a.text, "-") {
			operands = append(operands, a)
		}
	}
	if len(operands) != 2 || len(s.files) >= maxSteps {
		return
	}
	from, to := operands[0].text, resolve(s.dir, operands[1].text)
	text, ok := s.files[resolve(s.dir, from)]
	if !ok {
		text = copied + from
		if !known(from) {
			text = string(anything)
		}
	}
	s.files[to] = text
	s.files[to+"/"+base(from)] = text // where it is a directory
}

// output is what well-known programs print.
func output(sh *shell, program string, args []field, stdin string) string {
	words := texts(args)
	plain := func() []string {
		return slices.DeleteFunc(slices.Clone(words), func(s string) bool { return strings.HasPrefix(s, "-") })
	}
	switch program {
	case "echo":
		return echo(words)
	case "printf":
		return printf(words)
	case "true", ":", "false", "test", "[", "mkdir", "rm", "touch", "chmod", "sleep", "export", "exit", "return", "break", "continue", "wait", "rmdir":
		return ""
	case "pwd":
		return sh.dir + "\n"
	case "mktemp":
		return string(below) + "\n"
	case "cat", "head", "tail", "sort", "uniq", "grep", "egrep", "fgrep", "rg", "shuf", "tac":
		if program == "rg" || slices.ContainsFunc(words, func(s string) bool {
			return strings.HasPrefix(s, "-") && !strings.HasPrefix(s, "--") && strings.Contains(s, "l")
		}) && strings.HasSuffix(program, "grep") {
			return "./" + string(outside)
		}
		if files := plain(); program == "cat" && len(files) > 0 {
			out := ""
			for _, f := range files {
				text := sh.content(f)
				if text == string(outside) {
					text = string(anything) // now it is what is in it that counts
				}
				out += text
			}
			return limited(out)
		}
		if stdin == unread {
			return string(anything)
		}
		return stdin
	case "ls":
		for _, f := range plain() {
			if !known(f) || strings.HasPrefix(f, "/") && slices.ContainsFunc(words, func(s string) bool { return strings.HasPrefix(s, "-") && strings.Contains(s, "d") }) {
				return strings.Join(plain(), "\n") + "\n"
			}
		}
		return "./" + string(outside)
	case "dirname":
		return string(someDir) + "\n"
	case "basename":
		if p := plain(); len(p) == 1 && known(p[0]) {
			return base(p[0]) + "\n"
		}
	case "realpath", "readlink":
		if p := plain(); len(p) == 1 && !open(p[0]) {
			return resolve(sh.dir, p[0]) + "\n"
		}
	case "date", "whoami", "id", "uname", "hostname", "nproc", "seq", "wc", "pgrep", "pidof", "lsof", "arch", "tty", "stat", "du":
		return string(outside)
	case "yes":
		return strings.Join(words, " ") + "\n"
	}
	return string(anything)
}

func echo(words []string) string {
	newline, escapes := "\n", false
	for len(words) > 0 && len(words[0]) > 1 && words[0][0] == '-' && strings.Trim(words[0][1:], "neE") == "" {
		if strings.Contains(words[0], "n") {
			newline = ""
		}
		if strings.Contains(words[0], "e") {
			escapes = true
		}
		words = words[1:]
	}
	text := strings.Join(words, " ")
	if escapes {
		text = unescape(text, false)
	}
	return limited(text + newline)
}

// printf is what a format with %s, %b and %% makes of its words.
func printf(words []string) string {
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		return ""
	}
	format, rest := unescape(words[0], false), words[1:]
	var out strings.Builder
	for {
		before := len(rest)
		for i := 0; i < len(format); i++ {
			if format[i] != '%' || i+1 >= len(format) {
				out.WriteByte(format[i])
				continue
			}
			i++
			word := ""
			if len(rest) > 0 && format[i] != '%' {
				word, rest = rest[0], rest[1:]
			}
			switch format[i] {
			case '%':
				out.WriteByte('%')
			case 's':
				out.WriteString(word)
			case 'b':
				out.WriteString(unescape(word, false))
			case 'd', 'i':
				out.WriteString(word)
			default:
				return string(anything)
			}
		}
		if len(rest) == 0 || len(rest) == before || out.Len() > maxText {
			break
		}
	}
	return limited(out.String())
}

// interpreted follows a job's script: shells are followed, other interpreters are
// programs as any other.
func (w *walker) interpreted(sh *shell, job script) {
	b := &splitter{ifs: " \t\n"}
	b.quoted("")
	fields := literal(strings.Fields(job.Interpreter))
	if len(fields) == 0 {
		return
	}
	last := fields[len(fields)-1].text
	w.note(sh, fields)
	name := base(last)
	for _, f := range fields {
		if isShell(base(f.text)) {
			name = base(f.text)
		}
	}
	if isShell(name) {
		inner := sh.child()
		w.line(inner, job.Source)
	}
}

func isShell(name string) bool {
	return slices.Contains([]string{"bash", "sh", "dash", "zsh", "ksh", "ksh93", "mksh", "ash", "rbash", "fish", "yash"}, name)
}
