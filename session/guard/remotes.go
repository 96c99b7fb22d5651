package guard

import (
	"slices"
	"strings"
)

// sshCode are the options of ssh, in small letters, whose values are code; that of the last
// is run on the other machine.
var sshCode = strings.Fields("proxycommand localcommand knownhostscommand pkcs11provider xauthlocation remotecommand")

// sshPrograms take the options of ssh.
var sshPrograms = []string{"ssh", "scp", "sftp", "sshfs", "autossh", "mosh", "ssh-copy-id", "rsync"}

// sshOptions follows the options of ssh that are code: those in words, and those of files
// that the line itself wrote or names.
func (w *walker) sshOptions(sh *shell, program string, args []field, stdin string) {
	if !slices.Contains(sshPrograms, program) {
		return
	}
	for i, a := range args {
		if program != "rsync" && len(a.text) > 2 && !strings.HasPrefix(a.text, "--") && takesNext([]string{"-o"}, a.text) && i+1 < len(args) {
			w.sshOption(sh, args[i+1].text) // behind other flags
		}
		switch option, joined := strings.CutPrefix(a.text, "-o"); {
		case joined && option != "":
			w.sshOption(sh, option)
		case joined && i+1 < len(args):
			w.sshOption(sh, args[i+1].text)
		case a.text == "-F" && i+1 < len(args):
			w.sshConfiguration(sh, w.file(sh, args[i+1], stdin))
		}
	}
	for _, name := range w.fileNames(sh) {
		if strings.HasSuffix(name, "/.ssh/config") {
			w.sshConfiguration(sh, w.text(sh, name))
		}
	}
}

func (w *walker) sshConfiguration(sh *shell, text string) {
	if strings.HasPrefix(text, copied) {
		return
	}
	if open(text) {
		w.give("ssh", "it reads settings that are only known when it runs")
		return
	}
	for line := range strings.Lines(text) {
		w.sshOption(sh, strings.TrimSpace(line))
	}
}

// sshOption follows name=value, or name and value separated by blanks.
func (w *walker) sshOption(sh *shell, text string) {
	i := strings.IndexAny(text, "= \t")
	if i < 0 {
		return
	}
	name, value := strings.ToLower(text[:i]), strings.Trim(text[i:], "= \t")
	if len(value) > 1 && value[0] == '"' {
		value = strings.Trim(value, `"`)
	}
	switch {
	case slices.Contains(sshCode, name) && value != "none":
		w.code(sh.child(), value, unread)
	case name == "match":
		if _, code, ok := strings.Cut(value, "exec "); ok {
			text, quoted := quotedText(code)
			if !quoted {
				text = code
			}
			w.code(sh.child(), text, unread)
		}
	}
}

// ssh follows the command that is run on another machine: a rule about a command
// is about it wherever it runs.
func (w *walker) ssh(sh *shell, args []field, stdin string) string {
	values := strings.Fields("-B -b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -P -Q -R -S -W -w")
	silent := false // it opens no shell
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		silent = silent || slices.Contains([]string{"-W", "-O"}, args[0].text) ||
			strings.Trim(args[0].text, "-46AaCfGgKkMNnqTtVvXxYy") == "" && strings.ContainsAny(args[0].text, "NG")
		if slices.Contains(values, args[0].text) && len(args) > 1 {
			args = args[1:]
		}
		args = args[1:]
	}
	if len(args) == 0 {
		return string(anything)
	}
	remote := newShell("")
	remote.depth = sh.depth + 1
	args = args[1:]
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") { // flags may follow the host
		if slices.Contains(values, args[0].text) && len(args) > 1 {
			args = args[1:]
		}
		args = args[1:]
	}
	if len(args) == 0 && silent && stdin == unread {
		return string(anything)
	}
	if len(args) == 0 {
		w.typed(remote, "ssh", stdin)
		return string(anything)
	}
	w.code(remote, strings.Join(texts(args), " "), stdin)
	return string(anything)
}
