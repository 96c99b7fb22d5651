package ssh

import (
	"context"
	"errors"
	"strings"

	"github.com/caisson-dev/caisson/backends/remote"
	"github.com/caisson-dev/caisson/backends/ssh/connection"
	"github.com/caisson-dev/caisson/backends/tool"
)

// facts are what a machine says about itself.
type facts struct {
	os, arch string // in Go's words
	system   string // in its own
	uid      string
	cache    string // the user's cache directory
	temp     string
}

// lookScript prints the facts, a line each, after the line $1.
const lookScript = `printf "%s\n" "$1" "$(uname -s)" "$(uname -m)" "$(id -u)" "${XDG_CACHE_HOME:-$HOME/.cache}" "${TMPDIR:-/tmp}"`

// look asks the machine what it is. It needs nothing there but a POSIX shell.
func (m machine) look(ctx context.Context) (facts, error) {
	result, err := m.script(ctx, answerTimeout, nil, lookScript)
	lines := strings.Split(string(result.Stdout), "\n")
	if errors.Is(err, remote.ErrNoMark) || err == nil && len(lines) < 5 {
		e := tool.Errorf(tool.BackendUnavailable, "%s does not run commands: it ended with %d: %s", m.name, result.Code, said(result))
		if hint := limited(said(result)); hint != "" {
			return facts{}, e.WithHint("%s", hint)
		}
		return facts{}, e.WithHint("the account needs a login shell that runs commands, /bin/sh, and no ForceCommand: try ssh with the command \"uname -a\"")
	}
	if err != nil {
		return facts{}, err
	}
	if lines[0] == "" || lines[2] == "" {
		return facts{}, tool.Errorf(tool.BackendUnavailable, "%s runs no uname, or no id: %s", m.name, said(connection.Result{Stderr: result.Stderr})).
			WithHint("have the account's startup files leave a PATH with the system's programs")
	}
	f := facts{system: lines[0] + " " + lines[1], uid: lines[2], cache: lines[3], temp: lines[4]}
	f.os, f.arch = goos(lines[0]), remote.GoArch(lines[1])
	if f.os == "" {
		return f, tool.Errorf(tool.Unsupported, "%s runs %s: no worker of Caisson's runs there", m.name, f.system).
			WithHint("use a machine that runs Linux")
	}
	return f, nil
}

// goos is Go's word for what uname -s prints, or empty.
func goos(system string) string {
	switch system {
	case "Linux":
		return "linux"
	case "Darwin":
		return "darwin"
	case "FreeBSD", "OpenBSD", "NetBSD":
		return strings.ToLower(system)
	}
	return ""
}
