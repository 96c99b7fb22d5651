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
	case "mount":
		w.mount(sh, args)
	case "direnv":
		w.direnv(sh)
	case "cmake":
		w.cmakeBuild(sh, args)
	case "yarn", "corepack":
		return w.oneOf(sh, packageManagers, args, stdin)
	case "k3s", "microk8s", "minikube":
		return w.oneOf(sh, containers, args, stdin)
	case "xdotool", "ydotool", "wtype", "kitty", "wezterm":
		return w.typing(program, args)
	case "at", "batch":
		w.later(sh, program, args, stdin)
		return string(outside), true
	case "pwsh", "powershell":
		return w.powershell(sh, program, args, stdin), true
	case "python", "pypy", "ipython", "perl", "ruby", "irb", "node", "nodejs", "php", "lua", "luajit", "r", "octave", "julia", "tclsh", "wish",
		"jshell", "guile", "racket", "sbcl", "clisp", "ghci", "iex", "erl", "scala", "clojure", "ocaml", "utop":
		return w.readProgram(program, args, stdin), true
	case "buildah":
		return w.buildah(sh, program, args, stdin)
	case "busybox", "toybox", "busybox-static", "busybox.static":
		return w.busybox(sh, args, stdin), true
	case "socat":
		return w.socat(sh, args), true
	case "crontab":
		return w.crontab(sh, args, stdin), true
	case "pee", "mispipe":
		return w.pee(sh, args, stdin), true
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
	case "autossh":
		return w.autossh(sh, args, stdin), true
	case "ssh":
		return w.ssh(sh, args, stdin), true
	case "make", "gmake", "bmake", "remake", "mingw32-make":
		return w.makefile(sh, args, stdin), true
	case "just":
		return w.justfile(sh, args, stdin), true
	case "runuser":
		return w.runuser(sh, fields, stdin)
	}
	if name, ok := strings.CutPrefix(program, "git-"); ok {
		return w.git(sh, append([]field{{text: "git"}, {text: name}}, args...), stdin), true
	}
	return "", false
}

// packageManagers are those that others have in them.
var packageManagers = []string{"node", "yarn", "npm", "pnpm"}

// mount follows mount, which shows what is there at another place too.
func (w *walker) mount(sh *shell, args []field) {
	operands := operandsBehind(mountValues, args)
	if len(operands) == 2 && slices.ContainsFunc(args, func(f field) bool { return strings.Contains(f.text, "bind") || f.text == "-B" }) {
		sh.links.add(resolve(sh.dir, operands[1].text), resolve(sh.dir, operands[0].text))
	}
}

// direnv follows direnv, whose file is a shell's.
func (w *walker) direnv(sh *shell) {
	w.code(sh.child(), w.file(sh, field{text: ".envrc"}, unread), unread)
}

// cmakeBuild follows a build by cmake, which starts the builder.
func (w *walker) cmakeBuild(sh *shell, args []field) {
	if i := slices.IndexFunc(args, func(f field) bool { return f.text == "--" }); i >= 0 && args[0].text == "--build" {
		w.options(sh, "make", args[i+1:])
		w.makefile(sh, args[i+1:], unread)
	}
}

// oneOf follows a program that has others in it, of these names.
func (w *walker) oneOf(sh *shell, names []string, args []field, stdin string) (string, bool) {
	if len(args) == 0 || !slices.Contains(names, args[0].text) {
		return "", false
	}
	return w.run(sh, args, stdin), true
}

// typing follows a program that types into others.
func (w *walker) typing(program string, args []field) (string, bool) {
	i := slices.IndexFunc(args, func(f field) bool { return f.text == "type" || f.text == "send-text" })
	if i < 0 {
		return "", false
	}
	for _, keys := range operandsBehind(nil, args[i+1:]) {
		w.typedKeys(program, unescape(keys.text, false))
	}
	return string(anything), true
}

// powershell follows PowerShell, whose programs are read as a shell's are.
func (w *walker) powershell(sh *shell, program string, args []field, stdin string) string {
	if stdin == unread {
		return w.readProgram(program, args, stdin)
	}
	w.typed(sh.child(), program, stdin)
	return string(anything)
}

// readsOn are flags of interpreters that still read a program.
var readsOn = []string{"-", "-i", "-q", "-u", "-B", "-E", "-I", "-s", "--vanilla", "--slave", "--no-save", "--quiet"}

// readProgram follows an interpreter. What a program of its does is not looked at. One
// that nobody has seen is as any other code that is only known when it runs.
func (w *walker) readProgram(program string, args []field, stdin string) string {
	if open(stdin) && !slices.ContainsFunc(args, func(f field) bool { return !slices.Contains(readsOn, f.text) }) {
		w.give(program, "it reads a program that is only known when it runs")
	}
	return string(anything)
}

// buildah follows buildah where it does what a program for containers does.
func (w *walker) buildah(sh *shell, program string, args []field, stdin string) (string, bool) {
	if len(args) == 0 || !slices.Contains(builds, args[0].text) {
		return "", false
	}
	return w.container(sh, program, args, stdin), true
}

// busybox follows a program that is many.
func (w *walker) busybox(sh *shell, args []field, stdin string) string {
	if len(args) == 0 || strings.HasPrefix(args[0].text, "-") {
		return string(outside)
	}
	return w.run(sh, args, stdin)
}

// socat follows the addresses of socat.
func (w *walker) socat(sh *shell, args []field) string {
	for _, a := range args {
		w.addresses(sh, a.text)
	}
	return string(anything)
}

// crontab follows the lines of the table that crontab takes.
func (w *walker) crontab(sh *shell, args []field, stdin string) string {
	switch {
	case len(args) == 0 || args[len(args)-1].text == "-":
		w.schedule(sh, stdin)
	case !strings.HasPrefix(args[len(args)-1].text, "-"):
		w.schedule(sh, w.file(sh, args[len(args)-1], stdin))
	}
	return string(anything)
}

// pee follows a program whose words are command lines.
func (w *walker) pee(sh *shell, args []field, stdin string) string {
	for _, a := range args {
		w.code(sh.child(), a.text, stdin)
	}
	return string(anything)
}

// autossh follows autossh: ssh but for -M, which has a value.
func (w *walker) autossh(sh *shell, args []field, stdin string) string {
	if i := slices.IndexFunc(args, func(f field) bool { return f.text == "-M" }); i >= 0 && i+1 < len(args) {
		args = slices.Delete(slices.Clone(args), i, i+2)
	}
	return w.ssh(sh, args, stdin)
}

// runuser follows runuser, which without a user's name as a flag is called as su is.
func (w *walker) runuser(sh *shell, fields []field, stdin string) (string, bool) {
	if slices.ContainsFunc(fields[1:], func(f field) bool { return strings.HasPrefix(f.text, "-u") || strings.HasPrefix(f.text, "--user") }) {
		return "", false
	}
	return w.runner(sh, runners()["su"], fields, stdin), true
}
