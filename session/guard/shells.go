package guard

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

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
	if text, ok := f.stream(stdin); ok {
		return text
	}
	text := sh.content(f.text)
	w.charge(len(text))
	if _, ok := sh.files[resolve(sh.dir, f.text)]; ok && !strings.HasPrefix(text, copied) {
		return text
	}
	if text == string(outside) && known(f.text) || strings.HasPrefix(text, copied) {
		return ""
	}
	if !known(f.text) && !open(f.text) {
		return "" // a file of somebody's, by a name from the environment or a glob
	}
	return text
}

// startup are the names of the files that shells read when they begin or end.
var startup = strings.Fields(`.bashrc .bash_profile .bash_login .bash_logout .profile .zshenv .zshrc .zprofile .zlogin
.zlogout .kshrc .mkshrc .cshrc .tcshrc .login bash.bashrc zshenv config.fish`)

// shell follows a shell that is started.
func (w *walker) shell(sh *shell, program string, args []field, stdin string) string {
	inner := sh.child()
	inner.zero = program
	inner.bash = slices.Contains([]string{"bash", "rbash", "zsh"}, program)
	inner.echoes = inner.bash && program != "zsh" && !slices.ContainsFunc(args, func(f field) bool { return !known(f.text) || strings.Contains(f.text, "xpg_echo") })
	if inner.depth > maxDepth {
		w.give("the line", "its shells start shells too deep")
		return string(anything)
	}
	inline, typed := false, false
	for _, name := range []string{"BASH_ENV", "ENV"} { // a file that it reads at first
		if _, ok := inner.vars[name]; ok {
			w.expanded(sh, inner.lookup(name))
			w.code(inner, w.file(sh, field{text: inner.lookup(name)}, stdin), stdin)
		}
	}
	for _, name := range w.fileNames(sh) { // as one of a later day may
		if slices.Contains(startup, base(name)) {
			w.code(inner, w.file(sh, field{text: name}, stdin), unread)
		}
	}
	w.prompts(inner)
	for len(args) > 0 {
		arg := args[0].text
		if !strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "+") || arg == "-" || arg == "--" {
			break
		}
		args = args[1:]
		switch {
		case arg == "--rcfile", arg == "--init-file", arg == "-o", arg == "+o", arg == "-O", arg == "+O":
			if len(args) > 0 {
				if strings.HasPrefix(arg, "--") {
					w.code(inner, w.file(sh, args[0], stdin), stdin)
				}
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
			typed = true
		}
	}
	if len(args) > 0 && (args[0].text == "--" || args[0].text == "-" && len(args) > 1) {
		args = args[1:]
	}
	switch {
	case typed && !inline:
		inner.params = args
		w.typed(inner, program, stdin)
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

// schedule follows a table of commands that run later, behind five fields of time or
// one word such as @daily.
func (w *walker) schedule(sh *shell, table string) {
	if open(table) {
		w.give("crontab -", "it reads commands that are only known when it runs")
	}
	for line := range strings.SplitSeq(table, "\n") {
		words := 5
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "@") {
			words = 1
		}
		for range words {
			_, line, _ = strings.Cut(line, " ")
			line = strings.TrimLeft(line, " \t")
		}
		w.code(sh.child(), line, unread)
	}
}

// scripts are the files that describe a package, the member of them that holds its scripts by
// name, and the programs that run those.
var scripts = []struct {
	file, member string
	programs     []string
}{
	{"package.json", "scripts", []string{"npm", "pnpm", "yarn", "bun", "npm-run-all"}},
	{"composer.json", "scripts", []string{"composer"}},
	{"deno.json", "tasks", []string{"deno"}},
}

// packageScripts follows the scripts of a package that the line itself describes.
func (w *walker) packageScripts(sh *shell, program string) {
	for _, s := range scripts {
		if !slices.Contains(s.programs, program) {
			continue
		}
		text, ok := sh.files[resolve(sh.dir, s.file)]
		w.charge(len(text))
		if strings.HasPrefix(text, fetched) {
			w.give(program, "it reads scripts that are only known when it runs")
		}
		var described map[string]json.RawMessage
		var all map[string]any
		if !ok || json.Unmarshal([]byte(text), &described) != nil || json.Unmarshal(described[s.member], &all) != nil {
			continue // nor would it be read as one
		}
		w.describedIn(resolve(sh.dir, s.file), func() {
			for _, name := range slices.Sorted(maps.Keys(all)) {
				list, ok := all[name].([]any)
				if !ok {
					list = []any{all[name]}
				}
				for _, script := range list {
					if code, ok := script.(string); ok {
						w.code(sh.child(), code, unread)
					}
				}
			}
		})
	}
}

// interpreted follows a job's script: shells are followed, other interpreters are
// programs as any other, which are given a file that the line wrote.
func (w *walker) interpreted(sh *shell, job script) {
	fields := literal(strings.Fields(job.Interpreter))
	if len(fields) == 0 {
		return
	}
	last := fields[len(fields)-1].text
	w.note(sh, fields)
	name := base(last)
	for _, f := range fields {
		if isShell(called(f.text)) {
			name = base(f.text)
		}
	}
	if name = called(name); isShell(name) {
		inner := sh.child()
		inner.bash = name == "bash"
		w.code(inner, job.Source, unread)
		return
	}
	script := dirText(sh.dir) + "/script"
	sh.files[script] = authored(job.Source)
	w.run(sh, append(fields, field{text: script}), unread)
}

func isShell(name string) bool {
	return slices.Contains([]string{"bash", "sh", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish", "yash", "csh", "tcsh", "hush", "osh", "oksh", "posh", "nu", "xonsh", "elvish"}, name)
}
