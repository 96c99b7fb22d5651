package guard

import (
	"slices"
	"strings"
)

// codeSettings are variables whose values other programs run.
var codeSettings = strings.Fields(`GIT_SSH_COMMAND GIT_EXTERNAL_DIFF GIT_SSH GIT_PROXY_COMMAND PROMPT_COMMAND LESSOPEN LESSCLOSE LESSEDIT
VISUAL FCEDIT SVN_SSH FZF_DEFAULT_COMMAND FZF_CTRL_T_COMMAND FZF_ALT_C_COMMAND RESTIC_PASSWORD_COMMAND BORG_PASSCOMMAND ABDUCO_CMD
RSYNC_CONNECT_PROG RUSTC`)

// codeKinds end the names of variables that are of the same kind whatever program looks at
// them, such as GIT_EDITOR.
var codeKinds = []string{"PAGER", "EDITOR", "ASKPASS", "BROWSER", "_RSH", "RUSTC_WRAPPER"}

// builders are variables that name programs to build with. Lines often make them of what is
// in the environment already.
var builders = []string{"CC", "CXX", "LD", "AR"}

// codeSetting follows a variable whose value is run by other programs.
func (w *walker) codeSetting(sh *shell, name, value string) {
	switch {
	case name == "LESS": // flags of a pager that others start
		_, value, _ = strings.Cut(value, "+!")
	case slices.Contains(codeSettings, name):
	case slices.ContainsFunc(codeKinds, func(end string) bool { return strings.HasSuffix(name, end) }):
	case slices.Contains(builders, name) && known(value):
	default:
		return
	}
	if strings.HasPrefix(name, "LESS") {
		value = strings.TrimLeft(value, "|-") // marks that say how it is run
	}
	w.code(sh.fork(), value, unread)
}

// flagSettings are variables that hold flags of a program.
var flagSettings = map[string]string{
	"tar": "TAR_OPTIONS", "make": "MAKEFLAGS", "gmake": "MAKEFLAGS", "less": "LESS", "man": "MANOPT", "go": "GOFLAGS", "fzf": "FZF_DEFAULT_OPTS",
	"java": "JAVA_TOOL_OPTIONS", "ruby": "RUBYOPT",
}

// withSettings are the words of a command with those that a variable of the line adds.
func withSettings(sh *shell, program string, fields []field) []field {
	v, ok := sh.vars[flagSettings[program]]
	if !ok || len(v.list) != 1 || v.array {
		return fields
	}
	b := &splitter{ifs: " \t\n"}
	b.split(v.list[0])
	b.end()
	return slices.Concat(fields[:1], b.fields, fields[1:])
}
