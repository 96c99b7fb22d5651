package guard

import (
	"slices"
	"strings"
	"sync"
)

// containers are the programs that run others in containers, all called much the same way.
var containers = strings.Fields("docker docker-compose podman podman-compose podman-remote nerdctl finch kubectl oc")

// containerVerb is a command of theirs.
type containerVerb struct {
	// skip is how many words stand before the command that it runs.
	skip int
	// first: it is one only as the first word, but for those that say of what it is a command.
	first bool
	// joins: it runs nothing, and lets somebody type into what runs, with flags that say so
	// where there are some.
	joins, flagged bool
	// shell: without a command it starts a shell.
	shell bool
}

var containerVerbs = sync.OnceValue(func() map[string]containerVerb {
	return map[string]containerVerb{
		"exec": {skip: 1}, "run": {skip: 1}, "create": {skip: 1, first: true}, "debug": {skip: 1, first: true},
		"unshare": {first: true, shell: true}, "ssh": {skip: 1, first: true},
		"rsh": {skip: 1, first: true, shell: true}, "attach": {joins: true, first: true}, "start": {joins: true, flagged: true, first: true},
	}
})

// containerSwitches are their long flags without a value, and containerLong those with one.
// Any other one may be either.
var (
	containerSwitches = strings.Fields(`--detach --interactive --tty --stdin --rm --rmi --init --privileged --read-only --no-healthcheck --publish-all
--oom-kill-disable --sig-proxy --disable-content-trust --quiet --quiet-pull --help --no-deps --no-tty --no-TTY --service-ports --use-aliases --build
--remove-orphans --replace --env-host --http-proxy --no-hosts --no-hostname --tls-verify --rootfs --latest --attach --command --leave-stdin-open --expose
--wait --allow-missing-template-keys --arguments-only --keep-labels --share-processes --all --debug`)
	containerLong = strings.Fields(`--name --env --user --workdir --volume --publish --network --net --entrypoint --mount --label --memory --cpus --env-file
--add-host --hostname --platform --pull --restart --gpus --ulimit --cap-add --cap-drop --security-opt --device --tmpfs --ipc --pid --uts --log-driver --log-opt
--container --namespace --context --kubeconfig --image --port --overrides --runtime --cgroup-parent --cidfile --cpu-shares --cpuset-cpus --dns --domainname
--group-add --health-cmd --health-interval --index --ip --link --mac-address --memory-swap --network-alias --pids-limit --pod --shm-size --stop-signal
--stop-timeout --storage-opt --sysctl --userns --volumes-from --project-name --file --profile --target --detach-keys --cpu-quota --blkio-weight`)
)

// containerValues are their short flags whose value is the next word.
var containerValues = strings.Fields("-e -u -w -v -p -l -m -h -a -c -n -f")

// container follows what is run in a container: a rule about a command is about it
// wherever it runs. A container that somebody can type into, and in which nobody knows what
// runs, is a shell that is started to be typed into.
func (w *walker) container(sh *shell, program string, args []field, stdin string) string {
	if i := slices.IndexFunc(args, func(f field) bool { return slices.Contains(builds, f.text) }); i >= 0 && !slices.ContainsFunc(args[:i], func(f field) bool {
		_, ok := containerVerbs()[f.text]
		return ok
	}) {
		w.image(sh, args[i+1:], stdin)
		return string(anything)
	}
	changes := slices.IndexFunc(args, func(f field) bool { return f.text == "commit" || f.text == "import" })
	for i, change := range args { // such as -c 'CMD …' of commit
		if changes >= 0 && i > changes {
			w.described(sh, change.text)
			_, value, _ := strings.Cut(change.text, "=")
			w.described(sh, value)
		}
	}
	name, verb, at := verbOf(args)
	if at < 0 {
		return string(anything)
	}
	composed := strings.HasSuffix(program, "-compose") || slices.ContainsFunc(args[:at], func(f field) bool { return f.text == "compose" })
	program += " " + name
	args = args[at+1:]
	inner := newShell("")
	inner.depth = sh.depth + 1
	inner.mounted(sh.dir, args)
	if i := slices.IndexFunc(args, func(f field) bool { return f.text == "--" }); i >= 0 && !verb.joins {
		return w.run(inner, args[i+1:], stdin)
	}
	c := contained{verb: verb, start: name == "start", typed: composed && name == "run"}
	for _, valued := range []bool{true, false} {
		read := c
		sure := read.read(args, valued)
		switch {
		case verb.joins && (!verb.flagged || read.typed):
			w.give(program, "what is typed into the shell that it joins is only known then")
		case verb.joins:
		case len(read.command) > 0:
			w.run(inner, read.command, stdin)
		case read.typed || verb.shell:
			w.typed(inner, program, stdin)
		}
		if sure {
			break
		}
	}
	return string(anything)
}

// mounted notes the directories of this machine that a container has elsewhere, and where
// its command runs.
func (s *shell) mounted(dir string, args []field) {
	mount := func(from, to string) {
		if absolute(from) || strings.HasPrefix(from, ".") { // else it is a volume
			s.links.add(resolve("/", to), resolve(dir, from))
		}
	}
	for _, f := range named(args, "-v", "--volume") {
		from, to, _ := strings.Cut(f.text, ":")
		to, _, _ = strings.Cut(to, ":")
		mount(from, to)
	}
	for _, f := range named(args, "--mount") {
		var from, to string
		for part := range strings.SplitSeq(f.text, ",") {
			switch name, value, _ := strings.Cut(part, "="); name {
			case "src", "source":
				from = value
			case "dst", "destination", "target":
				to = value
			}
		}
		mount(from, to)
	}
	for _, f := range named(args, "-w", "--workdir") {
		s.dir = resolve(s.dir, f.text)
	}
}

// contained is what a command for containers runs.
type contained struct {
	verb    containerVerb
	start   bool    // it starts one that is there, with flags that join it
	typed   bool    // its input goes in
	command []field // none where it is not told
}

// read takes flags and words apart, and reports whether they can only be read so: flags that
// are not known have a value, or not.
func (c *contained) read(args []field, valued bool) (sure bool) {
	sure = true
	skip := c.verb.skip
	for len(args) > 0 && (skip > 0 || strings.HasPrefix(args[0].text, "-") && len(c.command) == 0) {
		arg := args[0].text
		args = args[1:]
		if !strings.HasPrefix(arg, "-") {
			skip--
			continue
		}
		flag, value, cut := strings.Cut(arg, "=")
		long := strings.HasPrefix(arg, "--")
		next := !long && takesNext(containerValues, arg)
		switch {
		case flag == "--entrypoint":
			if !cut && len(args) > 0 {
				value = args[0].text
			}
			c.command, next = literal(strings.Fields(value)), !cut
		case flag == "--interactive", flag == "--stdin", flag == "--attach" && c.start:
			c.typed = value != "false"
		case long && !cut && slices.Contains(containerLong, flag):
			next = true
		case long && !cut && !slices.Contains(containerSwitches, flag):
			next, sure = valued, false
		case c.start && !long:
			c.typed, next = c.typed || strings.ContainsAny(arg, "ai"), false
		case !long && !slices.Contains(containerValues, arg[:min(2, len(arg))]):
			c.typed = c.typed || strings.Contains(arg, "i")
		}
		if next && len(args) > 0 {
			args = args[1:]
		}
	}
	c.command = slices.Concat(c.command, args)
	return sure
}

// verbOf finds the command among the words behind the program's own flags.
func verbOf(args []field) (name string, v containerVerb, at int) {
	for i, a := range args {
		v, ok := containerVerbs()[a.text]
		if !ok {
			continue
		}
		if first := !slices.ContainsFunc(args[:i], func(f field) bool {
			return !strings.HasPrefix(f.text, "-") && !slices.Contains([]string{"container", "compose", "pod", "service", "machine"}, f.text)
		}); first || !v.first || i > 0 && strings.HasPrefix(args[i-1].text, "-") {
			return a.text, v, i
		}
	}
	return "", containerVerb{}, -1
}
