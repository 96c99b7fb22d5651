package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/confine"
	"github.com/caisson-dev/caisson/backends/worker/self"
)

// Check tries the shell, the confinement by a write that must fail, the program
// that is started as the worker, and the login environment.
func (b *Backend) Check(_ context.Context, p profile.Profile) backends.Health {
	began := time.Now()
	var h backends.Health
	for _, c := range []backends.Check{
		checkPlatform(),
		checkShell(p),
		checkConfinement(p),
		b.checkProgram(),
		b.checkLogin(),
	} {
		h.Add(c)
	}
	h.Duration = time.Since(began)
	return h
}

// errNoCommands is why this system runs no local commands, or nil.
func errNoCommands() error { return noCommands(runtime.GOOS) }

func noCommands(system string) error {
	if system != "windows" {
		return nil
	}
	return tool.Errorf(tool.Unsupported, "local commands do not run on Windows").
		WithHint("use a docker or ssh profile for commands; file and search tools work")
}

func checkPlatform() backends.Check {
	return backends.NewCheck("platform", errNoCommands(), runtime.GOOS+"/"+runtime.GOARCH)
}

func checkShell(p profile.Profile) backends.Check {
	c := backends.Check{Name: "shell", OK: true}
	candidates := []string{p.Shell}
	if p.Shell == "" {
		candidates = []string{"/bin/bash", "/bin/sh"}
	}
	for _, shell := range candidates {
		if path, err := exec.LookPath(shell); err == nil {
			c.Detail = path
			return c
		}
	}
	c.OK = false
	c.Detail = fmt.Sprintf("%s cannot be run", candidates[len(candidates)-1])
	c.Hint = `install it, or name another one as "shell" in the profile`
	return c
}

func checkConfinement(p profile.Profile) backends.Check {
	const name = "confinement"
	if !p.Confined() {
		return backends.NewCheck(name, nil, "not used: the profile lets commands write everywhere")
	}
	dir, err := os.MkdirTemp("", "caisson-check-")
	if err == nil {
		err = errors.Join(confine.Prove(dir), os.RemoveAll(dir))
	}
	abi := 0
	if err == nil {
		abi, err = confine.ABI()
	}
	return backends.NewCheck(name, err, fmt.Sprintf("Landlock ABI %d: a write outside was refused", abi))
}

func (b *Backend) checkProgram() backends.Check {
	c := backends.Check{Name: "worker", OK: true}
	path := b.o.Executable
	var err error
	if path == "" {
		path, err = self.Path()
	}
	if err == nil {
		_, err = exec.LookPath(path)
	}
	c.Detail = self.Name(path)
	if err != nil {
		c.OK, c.Detail = false, fmt.Sprintf("the program cannot be started again as a worker: %v", err)
		c.Hint = "if it was replaced or moved, restart the service"
	}
	return c
}

// checkLogin never fails: there is always an environment.
func (b *Backend) checkLogin() backends.Check {
	c := backends.Check{Name: "login environment", OK: true}
	if runtime.GOOS == "windows" {
		c.Detail = "that of the service"
		return c
	}
	login := b.login()
	c.Detail = fmt.Sprintf("%d variables", len(login.variables))
	if login.problem != nil {
		c.Detail = fmt.Sprintf("that of the service, because %v", login.problem)
		c.Hint = "look at what the shell's startup files do; " + loginMarker + " is set while they run for this"
	}
	return c
}
