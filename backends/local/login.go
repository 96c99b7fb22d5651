package local

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/backends/profile"
)

const (
	// loginTimeout bounds what the user's shell may take to start: it reads
	// files that somebody may have filled with anything.
	loginTimeout = 10 * time.Second
	// maxLogin bounds what that shell may print, in bytes.
	maxLogin = 4 << 20
	// loginMarker is set while the environment is taken, so that a startup
	// file can leave out what needs a person.
	loginMarker = "CAISSON_RESOLVING_ENVIRONMENT"
)

// loginEnvironment is what the user's shell exports after a login, as
// "NAME=value" in no order.
type loginEnvironment struct {
	variables []string
	// problem says why the variables are those of the service instead.
	problem error
}

// passing are variables of the shell that was asked, not of the user.
var passing = []string{loginMarker, "PWD", "OLDPWD", "SHLVL", "_"}

// readLogin asks the user's shell for the variables that it exports as an
// interactive login shell: an editor started from a desktop has none of what
// the user's startup files set. own are the variables of this process, and the
// result when the shell does not answer.
func readLogin(own []string) loginEnvironment {
	own = withHome(own)
	variables, err := askShell(own)
	if err != nil {
		variables = slices.Clone(own)
	}
	variables = slices.DeleteFunc(variables, func(v string) bool {
		name, _, ok := strings.Cut(v, "=")
		return !ok || name == "" || slices.Contains(passing, name)
	})
	return loginEnvironment{variables: variables, problem: err}
}

// withHome is the environment with a HOME, which a service that a system has started has
// none of: startup files and commands look for everything there.
func withHome(own []string) []string {
	if slices.ContainsFunc(own, func(v string) bool { return strings.HasPrefix(v, "HOME=") && v != "HOME=" }) {
		return own
	}
	u, err := user.Current()
	if err != nil || u.HomeDir == "" {
		return own
	}
	return append(slices.DeleteFunc(slices.Clone(own), func(v string) bool { return v == "HOME=" }), "HOME="+u.HomeDir)
}

func askShell(own []string) ([]string, error) {
	shell, err := loginShell(own)
	if err != nil {
		return nil, err
	}
	// What startup files print stands before the first mark or after the second.
	mark := rand.Text()
	script := "echo " + mark + "; /usr/bin/env -0; echo " + mark
	ctx, cancel := context.WithTimeout(context.Background(), loginTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, shell, "-l", "-i", "-c", script)
	cmd.Env = append(slices.Clone(own), loginMarker+"=1")
	out := &boundedBuffer{left: maxLogin}
	cmd.Stdout = out
	// Without a terminal, and with all that it started ended at the timeout.
	isolate(cmd)
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%s did not start within %v", shell, loginTimeout)
	}
	printed, complete := between(out.buffer.Bytes(), []byte(mark+"\n"))
	if !complete {
		return nil, errors.Join(fmt.Errorf("%s did not print its environment", shell), err)
	}
	// A shell that printed everything and then failed has still answered.
	var variables []string
	for v := range strings.SplitSeq(string(printed), "\x00") {
		if v != "" {
			variables = append(variables, v)
		}
	}
	return variables, nil
}

func loginShell(own []string) (string, error) {
	candidates := []string{"/bin/bash", "/bin/sh"}
	for _, v := range own {
		if shell, ok := strings.CutPrefix(v, "SHELL="); ok && shell != "" {
			candidates = append([]string{shell}, candidates...)
		}
	}
	for _, c := range candidates {
		if info, err := os.Stat(c); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return c, nil
		}
	}
	return "", errors.New("there is no login shell")
}

// between is what stands between two marks.
func between(b, mark []byte) ([]byte, bool) {
	_, rest, ok := bytes.Cut(b, mark)
	if !ok {
		return nil, false
	}
	inner, _, ok := bytes.Cut(rest, mark)
	return inner, ok
}

// boundedBuffer fails a writer that writes too much.
type boundedBuffer struct {
	buffer bytes.Buffer
	left   int
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if len(p) > b.left {
		return 0, io.ErrShortBuffer
	}
	b.left -= len(p)
	return b.buffer.Write(p)
}

// basic are the variables that programs need to work at all, and localPrefix
// what the language variables begin with.
var basic = []string{"HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "LANGUAGE", "TZ", "TMPDIR", "XDG_RUNTIME_DIR"}

const localePrefix = "LC_"

// commandEnvironment is what a profile lets commands see of the login
// environment. The profile's own variables are not in it: they travel over the
// worker's connection.
func commandEnvironment(login loginEnvironment, p profile.Profile) []string {
	if p.EnvMode != "clean" && p.EnvMode != "allowlist" {
		return slices.Clone(login.variables)
	}
	var env []string
	for _, v := range login.variables {
		name, _, _ := strings.Cut(v, "=")
		if slices.Contains(basic, name) || strings.HasPrefix(name, localePrefix) ||
			p.EnvMode == "allowlist" && listed(name, p) {
			env = append(env, v)
		}
	}
	return env
}

func listed(name string, p profile.Profile) bool {
	return slices.Contains(p.EnvAllowlist, name) || slices.ContainsFunc(p.EnvAllowPrefixes, func(prefix string) bool {
		return strings.HasPrefix(name, prefix)
	})
}
