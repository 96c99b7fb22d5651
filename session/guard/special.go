package guard

import (
	"slices"
	"strings"
)

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

// readsOn are flags of interpreters that still read a program.
var readsOn = []string{"-", "-i", "-q", "-u", "-B", "-E", "-I", "-s", "--vanilla", "--slave", "--no-save", "--quiet"}
