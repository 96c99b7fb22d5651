package guard

import (
	"slices"
	"strings"
	"sync"
)

// runner is how a program that runs another one is called.
type runner struct {
	// values are the flags whose value is the next word, apart by spaces.
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

// runners are the programs that run what stands behind them.
var runners = sync.OnceValue(func() map[string]runner {
	return map[string]runner{
		"sudo":     {values: "-u -g -h -p -C -r -t -T -U -R --user --group --host --prompt --close-from --role --type --command-timeout --other-user --chroot", dirs: "-D --chdir", settings: true, shells: "-s -i --shell --login"},
		"doas":     {values: "-u -C", shells: "-s"},
		"pkexec":   {values: "--user", shell: true},
		"nice":     {values: "-n --adjustment"},
		"ionice":   {values: "-c -n -p --class --classdata"},
		"nohup":    {},
		"setsid":   {},
		"setpriv":  {values: "--reuid --regid --ruid --rgid --euid --egid --selinux-label --apparmor-profile --landlock-access --landlock-rule --groups --inh-caps --ambient-caps --bounding-set --securebits --pdeathsig"},
		"timeout":  {values: "-s -k --signal --kill-after", skip: 1},
		"stdbuf":   {values: "-i -o -e --input --output --error"},
		"time":     {values: "-f -o --format --output"},
		"chrt":     {values: "-p -T -P -D --sched-runtime --sched-period --sched-deadline", skip: 1},
		"taskset":  {values: "-p", skip: 1},
		"numactl":  {values: "-N -m -C -i -p"},
		"strace":   {values: "-e -o -p -s -u -a -b -E -I -O -P -S -U -X --output --attach --user --env --trace --string-limit --columns"},
		"ltrace":   {values: "-e -o -p -s -u -a -n -l -x --output --library --indent --align"},
		"gdb":      {values: "-x -ex -ix -iex --ex --command --eval-command"},
		"valgrind": {},
		"perf":     {values: "-e -o -p -F -r --event --output --repeat", skip: 1},
		"watch":    {values: "-n --interval", joined: true},
		"entr":     {},
		"exec":     {values: "-a"},
		"builtin":  {},
		"coproc":   {},
		"unshare":  {values: "-S -G -R -w -l --setuid --setgid --root --wd --propagation --map-user --map-users --map-group --map-groups --setgroups --monotonic --boottime --load-interp --owner", shell: true},
		"nsenter":  {values: "-t -S -G --target --setuid --setgid", shell: true},
		"chroot":   {values: "--userspec --groups", skip: 1, shell: true},
		"su":       {values: "-s -g -G -w --shell --group --supp-group", code: "-c --command --session-command", skip: 1, shell: true, programs: "-s --shell"},
		"runuser":  {values: "-u -s -g -G --user --shell", code: "-c --command --session-command", programs: "-s --shell"},
		"script":   {values: "-o -m -T -I -O -B -E -l", code: "-c --command", skip: 1, shell: true},
		"flock":    {values: "-w -E --timeout --wait --conflict-exit-code", code: "-c --command", skip: 1},
		"firejail": {shell: true},
		"bwrap": {
			dirs:   "--chdir",
			values: "--uid --gid --hostname --unsetenv --dev --proc --tmpfs --dir --mqueue --remount-ro --lock-file --sync-fd --info-fd --seccomp --size --perms --cap-add --cap-drop --argv0",
			pairs:  "--bind --bind-try --dev-bind --dev-bind-try --ro-bind --ro-bind-try --symlink --setenv --file --bind-data --ro-bind-data --chmod",
		},
		"proot":            {values: "-r -b -w -0", shell: true},
		"fakeroot":         {values: "-l -s -i -b", shell: true},
		"fakechroot":       {shell: true},
		"systemd-run":      {values: "-p -u -M -H --property --unit --slice --uid --gid --working-directory", shells: "-S --shell"},
		"systemd-inhibit":  {},
		"dbus-run-session": {},
		"unbuffer":         {},
		"rlwrap":           {},
		"setarch":          {skip: 1},
		"linux64":          {},
		"caffeinate":       {values: "-t -w"},
		"cgexec":           {values: "-g"},
		"prlimit":          {},
		"eatmydata":        {},
		"torsocks":         {},
		"proxychains":      {values: "-f"},
		"proxychains4":     {values: "-f"},
		"wsl":              {values: "-d -u --cd"},
		"hyperfine":        {values: "-w -r -n -m -M", joined: true},
		"expect":           {},
		"chpst":            {values: "-u -U -e -n -l -L"},
		"softlimit":        {},
		"daemonize":        {values: "-c -e -o -p -l -u"},
		"sg":               {code: "-c", skip: 1, joined: true, shell: true},
		"noglob":           {},
		"nocorrect":        {},
		"repeat":           {skip: 1},
		"and":              {},
		"or":               {},
		"not":              {},
		"dotenv":           {values: "-f"},
		"aws-vault":        {skip: 2},
		"gosu":             {skip: 1},
		"su-exec":          {skip: 1},
		"s6-setuidgid":     {skip: 1},
		"setuidgid":        {skip: 1},
		"watchexec":        {values: "-w -e -i -f -d -s -o -W -E --watch --exts --ignore --filter --debounce --signal --workdir"},
		"tini":             {values: "-p -e"},
		"dumb-init":        {values: "-r --rewrite"},
		"catatonit":        {},
		"xvfb-run":         {values: "-n -e -f -p -s -w --server-num --error-file --auth-file --xauth-protocol --server-args --wait"},
		"ssh-agent":        {values: "-a -E -O -P -t"},
		"cpulimit":         {values: "-l -p -e -P -c --limit --pid --exe --path --cpu"},
		"chronic":          {},
		"faketime":         {values: "-f", skip: 1},
		"trickle":          {values: "-d -u -w -t -l -n -p -P"},
		"sem":              {values: "-j --jobs --id"},
		"npx":              {values: "-p --package -w --workspace"},
		"uvx":              {values: "-p -w --python --with --from --index-url"},
		"pipx":             {values: "--spec --python", skip: 1, verbs: "run"},
		"poetry":           {values: "-C -P --directory --project", skip: 1, verbs: "run shell", shells: "shell"},
		"pipenv":           {values: "--python", skip: 1, verbs: "run shell", shells: "shell"},
		"bundle":           {skip: 1, verbs: "exec"},
		"direnv":           {skip: 2, verbs: "exec"},
		"conda":            {values: "-n -p --name --prefix --cwd", skip: 1, verbs: "run"},
		"mamba":            {values: "-n -p --name --prefix --cwd", skip: 1, verbs: "run"},
		"uv":               {values: "-p --python --with --project --directory --group --extra --package --env-file", skip: 1, verbs: "run"},
		"nix-shell":        {values: "-p -A --packages --attr -I", code: "--run --command", skip: 1, shell: true},
		"mise":             {skip: 1, verbs: "exec x"},
		"rbenv":            {skip: 1, verbs: "exec"},
		"pyenv":            {skip: 1, verbs: "exec"},
		"doppler":          {values: "-p -c --project --config", skip: 1, verbs: "run"},
		"lxc":              {values: "--env --user --group --cwd --mode --project", skip: 2, verbs: "exec shell console", shells: "shell console"},
		"incus":            {values: "--env --user --group --cwd --mode --project", skip: 2, verbs: "exec shell console", shells: "shell console"},
		"vagrant":          {values: "-p", code: "-c --command", skip: 2, verbs: "ssh", shells: "ssh"},
		"apptainer":        {values: "-B --bind --env --pwd -H --home --env-file --overlay -W --workdir -S --scratch --network --app", skip: 2, verbs: "exec run shell", shells: "shell", programs: "-s --shell"},
		"singularity":      {values: "-B --bind --env --pwd -H --home --env-file --overlay -W --workdir -S --scratch --network --app", skip: 2, verbs: "exec run shell", shells: "shell", programs: "-s --shell"},
		"systemd-nspawn":   {values: "-D -i -M -u --directory --image --machine --user --bind --setenv", shell: true},
		"machinectl":       {values: "--uid -E --setenv -M --machine", skip: 2, verbs: "shell login", shells: "shell login"},
		"toolbox":          {values: "-c --container -d --distro -r --release", skip: 1, verbs: "run enter", shells: "enter"},
		"distrobox":        {values: "-n --name", skip: 2, verbs: "enter", shells: "enter"},
		"flatpak-spawn":    {},
		"crictl":           {skip: 2, verbs: "exec"},
		"nix":              {values: "-f --file -I -k --keep --override-flake --option", verbs: "run develop shell", skip: 1, shells: "develop shell", rest: "-c --command", packages: true},
		"guix":             {skip: 1, verbs: "shell environment"},
		"devbox":           {skip: 1, verbs: "run"},
		"asdf":             {skip: 1, verbs: "exec"},
		"rtx":              {skip: 1, verbs: "exec x"},
		"op":               {values: "--env-file --account", skip: 1, verbs: "run"},
		"chamber":          {skip: 2, verbs: "exec"},
		"envdir":           {skip: 1},
		"envchain":         {skip: 1},
		"rvm":              {skip: 1, verbs: "do"},
		"foreman":          {values: "-e --env -f", skip: 1, verbs: "run"},
		"hatch":            {values: "-e --env", skip: 1, verbs: "run"},
		"bunx":             {values: "-p --package"},
		"dbus-launch":      {},
		"torify":           {},
		"catchsegv":        {},
		"runcon":           {values: "-t -u -r -l --type --user --role --range"},
		"newgrp":           {skip: 1, shell: true},
		"xterm":            {values: "-T -title -geometry -fn -fa -fs -bg -fg -name", shell: true, rest: "-e"},
		"choom":            {values: "-n --adjust"},
		"dzdo":             {values: "-u -g -p"},
		"rr":               {skip: 1, verbs: "record"},
		"lldb":             {values: "-o -O -s -S -b -p -n -f --one-line --source --file"},
		"tsocks":           {},
		"ts":               {values: "-L -D -N -S"},
		"tsp":              {values: "-L -D -N -S"},
		"nq":               {},
		"pueue":            {values: "-g -w -d -l", skip: 1, verbs: "add", joined: true},
		"retry":            {values: "-t -d -n --times --delay"},
		"ifne":             {},
		"with-contenv":     {},
		"heroku":           {values: "-a --app", skip: 1, verbs: "run"},
		"adb":              {values: "-s -t", skip: 1, verbs: "shell", joined: true},
		"pdsh":             {values: "-w -x -g -l -R -u -t", joined: true},
		"snap":             {skip: 1, verbs: "run"},
		"login":            {values: "-f -h -r", skip: 1, shell: true},
		"rsh":              {values: "-l", skip: 1, joined: true},
		"mosh":             {values: "-p --port", skip: 1, shell: true},
		"lxc-attach":       {values: "-n -P -e -s -v -u -g --name --lxcpath --uid --gid --set-var", shell: true},
		"buildah":          {values: "-v -e --volume --env --user --workingdir --network", skip: 2, verbs: "run"},
		"runc":             {values: "--root -u -c -e --user --cwd --env", skip: 2, verbs: "exec"},
		"crun":             {values: "--root -u -c -e --user --cwd --env", skip: 2, verbs: "exec"},
		"limactl":          {values: "--workdir", skip: 2, verbs: "shell", shells: "shell"},
		"lima":             {values: "--workdir", shell: true},
		"multipass":        {values: "-d --working-directory", skip: 2, verbs: "exec shell", shells: "shell"},
		"minikube":         {values: "-p -n --profile --node", skip: 1, verbs: "ssh", shells: "ssh"},
		"colima":           {values: "-p --profile", skip: 1, verbs: "ssh", shells: "ssh"},
		"ttyd":             {values: "-p -i -U -u -g -s -w -I -b -P -C -K -A -t -T -m -c -H", shell: true},
		"gotty":            {values: "-a -p -c --address --port --credential", shell: true},
		"upterm":           {values: "--server --force-command", skip: 1, verbs: "host", shells: "host"},
		"dvtm":             {shell: true},
		"mtm":              {shell: true},
		"alacritty":        {values: "--working-directory -T --title --class --config-file -o --option", shell: true, rest: "-e --command"},
		"kitty":            {values: "-c --config -o --override -d --directory -T --title --class --name", shell: true},
		"gnome-terminal":   {shell: true, rest: "-x"},
		"pixi":             {values: "-e --environment --manifest-path", skip: 1, verbs: "run exec shell", shells: "shell"},
		"rye":              {skip: 1, verbs: "run"},
		"pdm":              {skip: 1, verbs: "run"},
		"nvm":              {skip: 2, verbs: "exec"},
		"fnm":              {values: "--using", skip: 1, verbs: "exec"},
		"volta":            {values: "--node --npm --yarn", skip: 1, verbs: "run"},
		"cmd":              {skip: 1, joined: true},
	}
})

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
			args = args[1:]
			skip = min(skip, max(0, len(args)-1))
			return w.runRest(inner, r, args, skip, ran, stdin)
		case arg == "-" && r.shell:
		case len(arg) < 2 || arg[0] != '-' && arg[0] != '+':
			if r.settings && cut && isName(name) {
				inner.set(name, value)
				inner.exported[name] = true
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
	case len(args) == 0 && r.shell && !ran:
		return w.shell(sh, "sh", nil, stdin)
	case len(args) == 0:
		return string(anything)
	case r.joined:
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

// sameRunners are the words of programs that are called as a runner is.
var sameRunners = map[string]string{
	"npm exec": "npx", "npm x": "npx", "pnpm exec": "npx", "pnpm dlx": "npx", "yarn exec": "npx", "yarn dlx": "npx",
	"bun x": "bunx", "uv tool run": "uvx",
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
		if same, ok := sameRunners[name]; ok {
			return runners()[same], fields[i:], true
		}
	}
	r, ok := runners()[program]
	return r, fields, ok
}
