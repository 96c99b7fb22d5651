package guard

import (
	"slices"
	"strings"
)

// runner is how a program that runs another one is called.
type runner struct {
	// values are the flags whose value is the next word, separated by spaces.
	values string
	// pairs are the flags whose values are the next two words.
	pairs string
	// dirs are the flags whose value is the directory that the command runs in.
	dirs string
	// skip is how many words stand before the command.
	skip int
	// verbs are the words of which one must stand before the command, as the first;
	// behind another one there is none.
	verbs string
	// code are flags whose value is shell code.
	code string
	// each: every word is a line of shell code.
	each bool
	// joined: what stands behind is one line of shell code.
	joined bool
	// settings: words like NAME=value may stand before the command.
	settings bool
	// shell: without a command it starts a shell, which reads commands.
	shell bool
	// shells are the verbs and flags that make it start one.
	shells string
	// rest are the flags behind which the command stands.
	rest string
	// packages: the other words are names of packages, such as nixpkgs#hello. With the verb
	// run the first one's program is run.
	packages bool
	// programs are the flags whose value is a program that is run.
	programs string
}

// runner follows what the program runs.
func (w *walker) runner(sh *shell, r runner, fields []field, stdin string) string {
	inner := sh.fork()
	args := fields[1:]
	values, code, rest, programs := strings.Fields(r.values), strings.Fields(r.code), strings.Fields(r.rest), strings.Fields(r.programs)
	shells := strings.Fields(r.shells)
	ran, verb := false, ""
	skip := r.skip
	// Code may also stand behind the other words, as in su root -c code.
	for i, a := range args {
		if i+1 < len(args) && takesNext(programs, a.text) && !isShell(called(args[i+1].text)) {
			w.run(sh.child(), args[i+1:i+2], stdin)
			ran = true
		}
		if i+1 < len(args) && (slices.Contains(code, a.text) || shortened(code, a.text)) {
			w.code(sh.child(), args[i+1].text, stdin)
			ran = true
		}
	}
	for len(args) > 0 {
		arg := args[0].text
		name, value, cut := strings.Cut(arg, "=")
		r.shell = r.shell || begins(shells, arg)
		switch {
		case arg == "--" && r.packages:
			return w.runRest(inner, r, nil, 0, ran, stdin) // what follows is for the package's program
		case slices.Contains(rest, arg):
			return w.runRest(inner, r, args[1:], 0, ran, stdin)
		case arg == "--":
			args = w.givenSettings(inner, r, args[1:])
			skip = min(skip, max(0, len(args)-1))
			return w.runRest(inner, r, args, skip, ran, stdin)
		case arg == "-" && r.shell:
		case len(arg) < 2 || arg[0] != '-' && arg[0] != '+':
			if r.settings && cut && isName(name) {
				w.setting(inner, name, value)
				args = args[1:]
				continue
			}
			if skip > 0 {
				if skip == r.skip && r.verbs != "" {
					if verb = arg; !slices.Contains(strings.Fields(r.verbs), verb) {
						return string(anything)
					}
					r.shell = r.shell || slices.Contains(shells, verb)
				}
				skip--
				args = args[1:]
				continue
			}
			if r.packages {
				if _, program, ok := strings.Cut(arg, "#"); ok && verb == "run" {
					ran = true
					w.run(inner, slices.Concat(literal([]string{program[strings.LastIndexByte(program, '.')+1:]}), slices.DeleteFunc(slices.Clone(args[1:]), func(f field) bool { return f.text == "--" })), stdin)
				}
				args = args[1:]
				continue
			}
			return w.runRest(inner, r, args, 0, ran, stdin)
		case (slices.Contains(code, arg) || shortened(code, arg)) && len(args) > 1:
			w.code(sh.child(), args[1].text, stdin)
			args, ran = args[2:], true
			continue
		case cut && (slices.Contains(code, name) || shortened(code, name)):
			w.code(sh.child(), value, stdin)
			ran = true
		case len(arg) > 2 && slices.Contains(code, arg[:2]):
			w.code(sh.child(), arg[2:], stdin)
			ran = true
		case slices.ContainsFunc(code, func(c string) bool {
			return len(c) == 2 && !strings.HasPrefix(arg, "--") && strings.Contains(arg, c[1:])
		}) && len(args) > 1:
			w.code(sh.child(), args[1].text, stdin) // such as -qc
			args, ran = args[2:], true
			continue
		case takesNext(strings.Fields(r.dirs), arg) && len(args) > 1:
			w.changeDir(inner, args[1:2])
			args = args[1:]
		case cut && (slices.Contains(strings.Fields(r.dirs), name) || shortened(strings.Fields(r.dirs), name)):
			w.changeDir(inner, []field{{text: value}})
		case len(arg) > 2 && arg[1] != '-' && slices.Contains(strings.Fields(r.dirs), arg[:2]):
			w.changeDir(inner, []field{{text: strings.TrimPrefix(arg[2:], "=")}})
		case slices.Contains(strings.Fields(r.pairs), arg) && len(args) > 2:
			args = args[2:]
		case takesNext(values, arg) && len(args) > 1:
			args = args[1:]
		}
		args = args[1:]
	}
	return w.runRest(inner, r, nil, 0, ran, stdin)
}

// givenSettings takes words like NAME=value that stand before the command.
func (w *walker) givenSettings(sh *shell, r runner, args []field) []field {
	for r.settings && len(args) > 0 {
		name, value, cut := strings.Cut(args[0].text, "=")
		if !cut || !isName(name) {
			break
		}
		w.setting(sh, name, value)
		args = args[1:]
	}
	return args
}

// begins reports whether a flag is one of those, alone or among others, as in -iu root.
func begins(flags []string, arg string) bool {
	if len(arg) < 2 || arg[0] != '-' {
		return false
	}
	return slices.Contains(flags, arg) || shortened(flags, arg) || arg[1] != '-' && slices.ContainsFunc(flags, func(f string) bool {
		return len(f) == 2 && strings.Contains(arg[1:], f[1:])
	})
}

// shortened reports whether a flag is the beginning of a long one.
func shortened(values []string, arg string) bool {
	return len(arg) > 2 && strings.HasPrefix(arg, "--") && slices.ContainsFunc(values, func(long string) bool { return strings.HasPrefix(long, arg) })
}

// takesNext reports whether the value of a flag is the next word: -u, and -iu.
func takesNext(values []string, arg string) bool {
	if slices.Contains(values, arg) || shortened(values, arg) {
		return true
	}
	return len(arg) > 2 && arg[1] != '-' && isName(arg[1:]) && slices.Contains(values, "-"+arg[len(arg)-1:]) &&
		!slices.Contains(values, arg[:2]) // else the rest is its value
}

func (w *walker) runRest(sh *shell, r runner, args []field, skip int, ran bool, stdin string) string {
	args = args[min(skip, len(args)):]
	switch {
	case r.each:
		for _, a := range args {
			if !strings.HasPrefix(a.text, "-") {
				w.code(sh.child(), a.text, stdin)
			}
		}
		return string(anything)
	case len(args) == 0 && r.shell && !ran:
		return w.shell(sh, "sh", nil, stdin)
	case len(args) == 0:
		return string(anything)
	case r.joined, strings.ContainsAny(args[0].text, " \t\n"): // the name of no program
		w.code(sh.child(), strings.Join(texts(args), " "), stdin)
		return string(anything)
	}
	return w.run(sh, args, stdin)
}

func isName(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

// replaced puts the word where the mark stands.
func replaced(args []field, mark string, word field) []field {
	out := slices.Clone(args)
	for i, a := range out {
		if strings.Contains(a.text, mark) {
			out[i] = field{text: limited(strings.ReplaceAll(a.text, mark, word.text)), many: word.many && a.text == mark}
		}
	}
	return out
}

// listed are the lines of files, as words.
func (w *walker) listed(sh *shell, files []field, stdin string) (words []field) {
	for _, f := range files {
		text := w.arguments(sh, f, stdin)
		if text == string(anything) { // names, as those that are piped into xargs
			text = string(outside)
		}
		for line := range strings.Lines(text) {
			words = append(words, field{text: strings.TrimSuffix(line, "\n")})
		}
	}
	return words
}

// find follows the commands of -exec and its like, with the names that it finds.
func (w *walker) find(sh *shell, args []field, stdin string) string {
	start := "./"
	for _, a := range args {
		if strings.HasPrefix(a.text, "-") || a.text == "(" || a.text == "!" {
			break
		}
		if start == "./" || absolute(a.text) || !known(a.text) {
			start = a.text
		}
	}
	name := start + string(outside)
	for i := 0; i < len(args); i++ {
		flag, joined, cut := strings.Cut(args[i].text, "=")
		if rest, short := strings.CutPrefix(args[i].text, "-x"); short && rest != "" && !slices.Contains([]string{"-xdev", "-xtype"}, args[i].text) {
			joined, cut = rest, true
		} else {
			cut = cut && slices.Contains([]string{"--exec", "--exec-batch"}, flag)
		}
		if cut { // of fd
			w.run(sh.fork(), append(literal([]string{joined}), args[i+1:]...), stdin)
		}
		switch args[i].text {
		case "-fprintf":
			if i+2 < len(args) {
				w.wrote(sh, args[i+1].text, args[i+2].text)
			}
			continue
		case "-exec", "-execdir", "-ok", "-okdir", "-x", "--exec", "-X", "--exec-batch":
		default:
			continue
		}
		end := i + 1
		for end < len(args) && args[end].text != ";" && (args[end].text != "+" || args[end-1].text != "{}") {
			end++
		}
		command := args[i+1 : end]
		if len(command) > 0 {
			if !slices.ContainsFunc(command, func(f field) bool { return strings.Contains(f.text, "{}") }) {
				command = append(slices.Clone(command), field{text: "{}"})
			}
			w.run(sh.fork(), replaced(command, "{}", field{text: name, many: true}), stdin)
		}
		i = end
	}
	return name + "\n"
}

// parallel follows GNU parallel: a line of code with words put in.
func (w *walker) parallel(sh *shell, args []field, stdin string) string {
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		if slices.Contains(strings.Fields("-j -n -N -L -I -S -a --jobs --max-args --delay --timeout --results --joblog --colsep --tmpdir --wd --workdir --env --memfree --retries --tagstring --block --sshlogin --basefile --return --load --nice --halt --recstart --recend"), args[0].text) && len(args) > 1 {
			args = args[1:]
		}
		args = args[1:]
	}
	command, words := args, []field(nil)
	for i, a := range args {
		if strings.HasPrefix(a.text, ":::") {
			command, words = args[:i], args[i+1:]
			if strings.HasPrefix(a.text, "::::") {
				words = w.listed(sh, words, stdin)
			}
			break
		}
	}
	if words == nil {
		for word := range strings.FieldsSeq(stdin) {
			words = append(words, field{text: word})
		}
	}
	if len(words) > maxTurns {
		words = []field{{text: string(anything)}}
	}
	for _, word := range words {
		if strings.HasPrefix(word.text, ":::") {
			continue
		}
		line := strings.Join(texts(command), " ")
		if strings.Contains(line, "{") && len(command) > 0 {
			for _, mark := range []string{"{}", "{1}", "{2}", "{.}", "{/}"} {
				line = strings.ReplaceAll(line, mark, word.text)
			}
		} else {
			line += " " + word.text
		}
		w.code(sh.child(), limited(line), stdin)
	}
	return string(anything)
}

// runnerOf is how a program runs another one, and the words from its own last one on.
func runnerOf(program string, fields []field) (runner, []field, bool) {
	name, words := program, 0
	for i, f := range fields {
		if i == 0 || strings.HasPrefix(f.text, "-") {
			continue
		}
		if words++; words > 2 {
			break
		}
		name += " " + f.text
		if same, ok := sameRunners()[name]; ok {
			return runners()[same], fields[i:], true
		}
	}
	r, ok := runners()[program]
	return r, fields, ok
}
