package guard

import (
	"slices"
	"strings"
)

// codeFlags begin arguments of other programs that are shell code.
var codeFlags = []string{
	"-XX:OnError=", "-XX:OnOutOfMemoryError=", "--checkpoint-action=exec=", "--to-command=", "--rsh=", "--use-compress-program=",
}

// codeWords are flags of other programs whose next word is shell code.
var codeWords = map[string][]string{
	"tar":               {"-I", "-F", "--use-compress-program", "--info-script", "--new-volume-script", "--to-command", "--rsh-command"},
	"rsync":             {"-e", "--rsh", "--rsync-path"},
	"nc":                {"-e", "-c", "--exec", "--sh-exec"},
	"ncat":              {"-e", "-c", "--exec", "--sh-exec"},
	"capsh":             {"-c"},
	"ansible":           {"-a", "--args"},
	"npx":               {"-c", "--call"},
	"npm":               {"-c", "--call"},
	"fly":               {"-C", "--command"},
	"gcloud":            {"--command"},
	"konsole":           {"-e"},
	"flatpak":           {"--command"},
	"start-stop-daemon": {"--exec", "-x", "--startas", "-a"},
	"watchman-make":     {"--run"},
	"man":               {"-P", "--pager", "-H", "--html"},
	"entr":              {"-s"},
	"nano":              {"-s", "--speller"},
	"mysql":             {"--pager"},
	"mariadb":           {"--pager"},
	"fzf":               {"--preview", "--with-shell"},
	"sk":                {"--preview", "-c", "--cmd"},
	"go":                {"-toolexec", "--toolexec", "-exec", "--exec", "-vettool", "--vettool"},
	"docker":            {"--health-cmd"},
	"gcc":               {"-wrapper"},
	"g++":               {"-wrapper"},
	"pwsh":              {"-c", "-Command", "-command"},
	"powershell":        {"-c", "-Command", "-command"},
	"podman":            {"--health-cmd"},
	"scp":               {"-S"},
	"sftp":              {"-S"},
	"nodemon":           {"-x", "--exec"},
	"zip":               {"-TT", "--unzip-command"},
	"split":             {"--filter"},
	"sort":              {"--compress-program"},
	"virt-customize":    {"--run-command", "--firstboot-command"},
	"openvpn":           {"--up", "--down", "--route-up", "--tls-verify"},
	"just":              {"-c", "--command"},
	"cargo-watch":       {"-s", "--shell"},
	"git": {
		"--upload-pack", "--receive-pack", "--exec", "--extcmd", "--open-files-in-pager", "--sendmail-cmd", "--to-cmd", "--cc-cmd", "--httpd",
	},
}

// actions stand in arguments of programs before code in brackets.
var actions = map[string][]string{
	"fzf": {"execute(", "execute-silent(", "become(", "reload(", "reload-sync(", "transform("},
	"sk":  {"execute(", "execute-silent(", "reload("},
}

// codeIn follows arguments that hold code.
func (w *walker) codeIn(sh *shell, program string, args []field) {
	for i, a := range args {
		name, value, cut := strings.Cut(a.text, "=")
		switch {
		case !slices.Contains(codeWords[program], name):
		case cut && len(name) > 2:
			w.code(sh.child(), value, unread)
		case !cut && i+1 < len(args):
			w.code(sh.child(), args[i+1].text, unread)
		}
		// The value of a short flag may stand with it, and the flag behind others.
		for _, flag := range codeWords[program] {
			before, code, ok := strings.Cut(a.text, flag[1:])
			switch {
			case len(flag) != 2 || !ok || before == "" || before[0] != '-':
			case before == "-" && code != "":
				w.code(sh.child(), code, unread)
			case code == "" && isName(before[1:]) && i+1 < len(args):
				w.code(sh.child(), args[i+1].text, unread)
			}
		}
		if a.text == "--checkpoint-action" && i+1 < len(args) {
			if code, ok := strings.CutPrefix(args[i+1].text, "exec="); ok {
				w.code(sh.child(), code, unread)
			}
		}
		for _, action := range actions[program] { // such as enter:execute(…)
			for _, after := range strings.Split(a.text, action)[1:] {
				code, _, _ := strings.Cut(after, ")")
				w.code(sh.child(), code, unread)
			}
		}
		for _, flag := range codeFlags {
			if _, code, ok := strings.Cut(a.text, flag); ok {
				w.code(sh.child(), code, unread)
			}
		}
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

// justfile follows the recipes that the line gives to just: the lines that are set in.
func (w *walker) justfile(sh *shell, args []field, stdin string) {
	list := literal([]string{"justfile", "Justfile", ".justfile"})
	for i, a := range args {
		name, value, cut := strings.Cut(a.text, "=")
		switch {
		case name != "-f" && name != "--justfile":
		case cut:
			list = []field{{text: value, output: a.output}}
		case i+1 < len(args):
			list = args[i+1 : i+2]
		}
	}
	for _, f := range list {
		text := w.file(sh, f, stdin)
		if text == string(outside) {
			continue
		}
		if open(text) {
			w.give("just", "it reads recipes that are only known when it runs")
		}
		for line := range strings.SplitSeq(text, "\n") {
			if recipe := strings.TrimLeft(line, " \t"); recipe != line {
				w.code(sh.child(), strings.TrimLeft(recipe, "@-"), unread)
			}
			for i, code := range strings.Split(line, "`") {
				if i%2 == 1 {
					w.code(sh.child(), code, unread)
				}
			}
		}
	}
}
