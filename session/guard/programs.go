package guard

import (
	"slices"
	"strings"
	"sync"
)

// codeFlags begin arguments of other programs that are shell code.
var codeFlags = []string{
	"-XX:OnError=", "-XX:OnOutOfMemoryError=", "--checkpoint-action=exec=", "--to-command=", "--rsh=", "--use-compress-program=",
}

// codeWords are flags, and words, of programs whose next word is shell code or a program.
var codeWords = sync.OnceValue(func() map[string][]string {
	return map[string][]string{
		"tar":    {"-I", "-F", "--use-compress-program", "--info-script", "--new-volume-script", "--to-command", "--rsh-command", "--rmt-command"},
		"cpio":   {"--rsh-command", "--rmt-command"},
		"zip":    {"-TT", "--unzip-command"},
		"split":  {"--filter"},
		"sort":   {"--compress-program"},
		"rsync":  {"-e", "--rsh", "--rsync-path"},
		"scp":    {"-S"},
		"sftp":   {"-S", "-D"},
		"borg":   {"--rsh"},
		"restic": {"--password-command"},
		"rclone": {"--password-command"},
		"nc":     {"-e", "-c", "--exec", "--sh-exec"},
		"wget":   {"--use-askpass"},
		"gpg":    {"--photo-viewer", "--agent-program", "--dirmngr-program", "--pinentry-program"},
		"mysql":  {"--pager"},
		"man":    {"-P", "--pager", "-H", "--html"},
		"nano":   {"-s", "--speller"},
		"entr":   {"-s"},
		"fzf":    {"--preview", "--with-shell"},
		"sk":     {"--preview", "-c", "--cmd"},
		"peco":   {"--exec"},
		"rg":     {"--pre", "--hostname-bin"},
		"pandoc": {"-F", "--filter", "--pdf-engine"},

		"npx":         {"-c", "--call"},
		"npm":         {"-c", "--call"},
		"pnpm":        {"-c", "--shell-mode"},
		"bun":         {"exec"},
		"go":          {"-toolexec", "--toolexec", "-exec", "--exec", "-vettool", "--vettool", "-extld"},
		"gcc":         {"-wrapper"},
		"cargo-watch": {"-s", "--shell"},
		"cargo":       {"-s", "--shell"},
		"just":        {"-c", "--command"},
		"bazel":       {"--run_under", "--workspace_status_command"},
		"ctest":       {"--test-command", "--build-makeprogram"},
		"latexmk":     {"-pdflatex", "-latex", "-lualatex", "-xelatex", "-pdflualatex"},
		"dpkg":        {"--pre-invoke", "--post-invoke"},
		"rpm":         {"--pipe"},
		"mock":        {"--shell", "--chroot"},
		"helm":        {"--post-renderer"},

		"docker":            {"--health-cmd"},
		"podman":            {"--health-cmd"},
		"flatpak":           {"--command"},
		"fly":               {"-C", "--command"},
		"gcloud":            {"--command"},
		"aws":               {"--command"},
		"az":                {"--scripts"},
		"doctl":             {"--ssh-command"},
		"ansible":           {"-a", "--args"},
		"salt":              {"cmd.run", "cmd.shell", "cmd.run_all"},
		"capsh":             {"-c"},
		"start-stop-daemon": {"--exec", "-x", "--startas", "-a"},
		"virt-customize":    {"--run-command", "--firstboot-command"},
		"openvpn":           {"--up", "--down", "--route-up", "--tls-verify", "--ipchange", "--client-connect", "--auth-user-pass-verify"},
		"pppd":              {"connect", "disconnect", "pty", "init"},
		"dhclient":          {"-sf"},
		"udhcpc":            {"-s", "--script"},
		"wpa_cli":           {"-a"},
		"tcpdump":           {"-z"},
		"telnetd":           {"-E", "-l"},
		"bpftrace":          {"-c"},

		"konsole":       {"-e"},
		"asciinema":     {"-c", "--command"},
		"ttyrec":        {"-e"},
		"termtosvg":     {"-c", "--command"},
		"watchman-make": {"--run"},
		"nodemon":       {"-x", "--exec"},
		"chokidar":      {"-c", "--command"},
		"air":           {"--build.cmd", "--build.bin"},
		"compiledaemon": {"-command", "-build"},
		"emacsclient":   {"-a", "--alternate-editor"},
		"pwsh":          {"-c", "-Command", "-command"},

		"hg":  {"--ssh", "-e", "-c", "--command"},
		"svn": {"--editor-cmd", "--diff-cmd", "--diff3-cmd"},
		"git": {
			"--upload-pack", "--receive-pack", "--exec", "--extcmd", "--open-files-in-pager", "--sendmail-cmd", "--to-cmd", "--cc-cmd", "--header-cmd", "--httpd",
			"--access-hook", "--tree-filter", "--index-filter", "--msg-filter", "--env-filter", "--parent-filter", "--commit-filter", "--tag-name-filter",
		},
	}
})

// sameCode are the programs whose flags are those of another one.
var sameCode = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"gtar": "tar", "bsdtar": "tar", "mariadb": "mysql", "g++": "gcc", "cc": "gcc", "c++": "gcc", "c89": "gcc", "c99": "gcc", "clang": "gcc", "powershell": "pwsh",
		"ncat": "nc", "netcat": "nc", "nc.traditional": "nc", "nc.openbsd": "nc", "salt-call": "salt", "flyctl": "fly", "gpg2": "gpg", "gpg-agent": "gpg",
		"gpg-connect-agent": "gpg", "bazelisk": "bazel", "ansible-console": "ansible",
	}
})

// actions stand in arguments of programs before code in brackets, or behind a colon.
var actions = sync.OnceValue(func() map[string][]string {
	return map[string][]string{
		"fzf": {"execute", "execute-silent", "become", "reload", "reload-sync", "transform"},
		"sk":  {"execute", "execute-silent", "reload"},
	}
})

// codeIn follows arguments that hold code.
func (w *walker) codeIn(sh *shell, program string, args []field) {
	table := program
	if same, ok := sameCode()[program]; ok {
		table = same
	}
	words := codeWords()[table]
	code := func(text string) {
		if table == "gcc" {
			text = strings.ReplaceAll(text, ",", " ")
		}
		w.code(sh.child(), text, unread)
	}
	if table == "tar" {
		w.bundled(sh, args)
	}
	for i, a := range args {
		name, value, cut := strings.Cut(a.text, "=")
		switch {
		case !slices.Contains(words, name) && (len(name) < 5 || !shortened(words, name)):
		case cut && len(name) > 2:
			code(value)
		case !cut && i+1 < len(args):
			code(args[i+1].text)
		}
		// The value of a short flag may stand with it, and the flag behind others.
		for _, flag := range words {
			before, joined, ok := strings.Cut(a.text, flag[1:])
			switch {
			case len(flag) != 2 || !ok || before == "" || before[0] != '-':
			case before == "-" && joined != "":
				code(joined)
			case joined == "" && isName(before[1:]) && i+1 < len(args):
				code(args[i+1].text)
			}
		}
		for _, action := range actions()[table] { // such as enter:execute(…)
			for _, after := range strings.Split(a.text, action)[1:] {
				code(withinBrackets(after))
			}
		}
		for _, flag := range codeFlags {
			if _, text, ok := strings.Cut(a.text, flag); ok {
				code(text)
			}
		}
		if begins([]string{"--checkpoint-action"}, name) && table == "tar" {
			if !cut && i+1 < len(args) {
				value = args[i+1].text
			}
			if text, ok := strings.CutPrefix(value, "exec="); ok {
				code(text)
			}
		}
	}
}

// withinBrackets is the text in the brackets of any kind that open here, or behind a colon.
func withinBrackets(text string) string {
	if text == "" || text[0] == '-' || isName(text[:1]) {
		return ""
	}
	closing := text[:1]
	switch i := strings.IndexByte("([{<", text[0]); {
	case text[0] == ':':
		return text[1:]
	case i >= 0:
		closing = ")]}>"[i : i+1]
	}
	code, _, _ := strings.Cut(text[1:], closing)
	return code
}

// bundled follows the code among the values of flags of tar that stand together without a dash,
// whose values are the next words in their order.
func (w *walker) bundled(sh *shell, args []field) {
	if len(args) == 0 || strings.HasPrefix(args[0].text, "-") {
		return
	}
	next := 1
	for _, letter := range args[0].text {
		if !strings.ContainsRune("fbCTXgKLNVHIF", letter) || next >= len(args) {
			continue
		}
		if letter == 'I' || letter == 'F' {
			w.code(sh.child(), args[next].text, unread)
		}
		next++
	}
}

// later follows at and batch, which read commands that run later, from a file where one is
// named.
func (w *walker) later(sh *shell, program string, args []field, stdin string) {
	for i, a := range args {
		switch {
		case begins([]string{"-l", "-c", "-d", "-r", "-V"}, a.text) && program == "at":
			return // they show and remove what is there
		case a.text == "-f" && i+1 < len(args):
			stdin = w.file(sh, args[i+1], stdin)
		}
	}
	w.typed(sh.child(), program, stdin)
}

// addresses follows an address of socat that is a program.
func (w *walker) addresses(sh *shell, text string) {
	for address := range strings.SplitSeq(text, "!!") {
		kind, rest, ok := strings.Cut(address, ":")
		if !ok || !slices.Contains([]string{"EXEC", "SYSTEM", "SHELL"}, strings.ToUpper(kind)) {
			continue
		}
		code, _, _ := strings.Cut(rest, ",")
		w.code(sh.child(), code, unread)
	}
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

// isLoader reports whether a program is one of those that the system runs programs by,
// under the names that it has with the libraries and machines of Linux.
func isLoader(program string) bool {
	return program == "ld.so" || slices.ContainsFunc([]string{"ld.so.", "ld-linux", "ld-musl", "ld64"}, func(begin string) bool {
		return strings.HasPrefix(program, begin)
	})
}

// through are programs that are there to run another one.
var through = []string{
	"sh", "bash", "dash", "zsh", "ksh", "eval", "sudo", "doas", "env", "nice", "nohup", "time", "exec", "command", "builtin", "xargs", "setsid", "timeout",
	"stdbuf", "ionice",
}

// mountValues are the flags of mount whose value is the next word.
var mountValues = strings.Fields("-o -t -L -U --options --types")
