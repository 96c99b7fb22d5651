package main

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/remote"
	"github.com/caisson-dev/caisson/backends/worker/endpoint"
	"github.com/caisson-dev/caisson/rpc"
	"github.com/caisson-dev/caisson/session"
	"github.com/caisson-dev/caisson/session/config"
)

// doctorBudget bounds all checks together. A daemon that does not answer is
// found out in 3 s.
const doctorBudget = 60 * time.Second

func (a *app) doctorCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find out what does not work here, and why",
		Long: `Tries what sessions need: the configuration file, the directories and their
permissions, the program as a worker, the confinement of commands (by a write
that must fail), and the backends. Exit code 4 when something does not work that
is needed: a backend that no profile uses is only reported.

"caisson profile check" tries one profile in depth.`,
		Example: `  caisson doctor
  caisson doctor --json | jq '.checks[] | select(.ok | not)'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), doctorBudget)
			defer cancel()
			health, err := a.examine(ctx)
			if err != nil {
				return err
			}
			return a.printHealth(health, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, in the shape of profile/check")
	return cmd
}

// examine makes all checks.
func (a *app) examine(ctx context.Context) (backends.Health, error) {
	begun := time.Now()
	log, err := a.logger("error")
	if err != nil {
		return backends.Health{}, err
	}
	paths, err := a.paths(rpc.OpenOptions{})
	if err != nil {
		return backends.Health{}, err
	}
	cfg, configCheck := checkConfig(paths)
	h := backends.Health{Checks: []backends.Check{
		{Name: "program", OK: true, Detail: programDetail()},
		configCheck,
		checkDirectory("state directory", paths.State),
		checkDirectory("data directory", paths.Data),
		checkRuntime(paths.Runtime),
		checkWorker(),
	}}
	s, err := a.open(ctx, rpc.OpenOptions{Log: log})
	if err != nil {
		h.Checks = append(h.Checks, failed("services", err, "repair what failed above and try again"))
	} else {
		h.Checks = append(h.Checks, checkBackends(ctx, s.Sessions, cfg)...)
		ctx, cancel := afterwards(ctx)
		defer cancel()
		if err := letGo(ctx, s); err != nil {
			h.Checks = append(h.Checks, failed("services", err, ""))
		}
	}
	h.OK = true
	for _, c := range h.Checks {
		h.OK = h.OK && c.OK
	}
	h.Duration = time.Since(begun)
	return h, nil
}

func failed(name string, err error, hint string) backends.Check {
	return backends.Check{Name: name, Detail: err.Error(), Hint: hint}
}

func programDetail() string {
	v := build()
	return fmt.Sprintf("caisson %s, %s/%s, %s", v.Version, v.OS, v.Arch, v.Go)
}

// checkConfig reads the user's file as sessions do. The default one that is not
// there is in order.
func checkConfig(paths config.Paths) (*config.Config, backends.Check) {
	const name = "configuration"
	cfg, err := paths.Source().Load()
	if err != nil {
		return config.Empty(), failed(name, err, "no new session opens until the file is right; \"caisson schema config\" describes it")
	}
	if _, err := os.Stat(paths.Config); errors.Is(err, fs.ErrNotExist) {
		return cfg, backends.Check{Name: name, OK: true, Detail: paths.Config + " is not there: the one profile is local"}
	}
	return cfg, backends.Check{Name: name, OK: true, Detail: paths.Config + ": " + counted(len(cfg.Names()), "profile")}
}

// counted is a number of things, as people write it.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// checkDirectory tries a directory that must be private: one that is not there
// yet must be makable.
func checkDirectory(name, dir string) backends.Check {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return failed(name, err, "make it, or choose another one")
		}
	case err != nil:
		return failed(name, err, "choose another one")
	case !info.IsDir():
		return failed(name, fmt.Errorf("%s is not a directory", dir), "choose another one")
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return failed(name, fmt.Errorf("%s can be entered by others (mode %04o)", dir, info.Mode().Perm()), "chmod 700 "+dir)
	}
	probe, err := os.CreateTemp(dir, ".doctor-")
	if err == nil {
		_, err = probe.WriteString("caisson")
		err = errors.Join(err, probe.Close(), os.Remove(probe.Name()))
	}
	if err != nil {
		return failed(name, err, "it must be writable, and its disk not full")
	}
	return backends.Check{Name: name, OK: true, Detail: dir}
}

func checkRuntime(dir string) backends.Check {
	const name = "runtime directory"
	c := checkDirectory(name, dir)
	if err := endpoint.CheckSocketPath(endpoint.SocketPath(dir, "any session")); c.OK && err != nil {
		return failed(name, err, "set XDG_RUNTIME_DIR to a shorter path")
	}
	return c
}

// checkWorker looks at what is put into environments of this machine's own
// platform: a Linux program without libraries runs in any image.
func checkWorker() backends.Check {
	const name = "worker"
	var programs remote.Programs
	p, err := programs.Find("", "linux", runtime.GOARCH)
	if err != nil && runtime.GOOS != "linux" {
		return backends.Check{Name: name, OK: true, Detail: err.Error() + ": containers and other hosts cannot be used",
			Hint: "install the whole release: it has the workers beside the program"}
	}
	if err != nil {
		return failed(name, err, "start the program by its path")
	}
	path := p.Path
	if resolved, err := os.Readlink(path); err == nil {
		path = resolved // this program itself
	}
	static, err := isStatic(p.Path)
	switch {
	case err != nil:
		return failed(name, err, "install the program again")
	case !static:
		return backends.Check{Name: name, OK: true, Detail: path + " needs libraries of this system: not every image can run it",
			Hint: "build it with CGO_ENABLED=0, as \"make build\" does"}
	default:
		return backends.Check{Name: name, OK: true, Detail: path + ", static: runs in any Linux image"}
	}
}

// isStatic reports whether a Linux program asks for no loader of libraries.
func isStatic(path string) (bool, error) {
	f, err := elf.Open(path)
	if err != nil {
		return false, err
	}
	static := !slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
	return static, f.Close()
}

// checkBackends tries the local profile in depth, and of the others whether
// they can be used. One that no profile uses does not count.
func checkBackends(ctx context.Context, m *session.Manager, cfg *config.Config) []backends.Check {
	var checks []backends.Check
	health, err := m.CheckProfile(ctx, profile.Local)
	if err != nil {
		checks = append(checks, failed(profile.Local, err, ""))
	}
	for _, c := range health.Checks {
		c.Name = profile.Local + ": " + c.Name
		checks = append(checks, c)
	}
	needed := make(map[string]bool)
	for _, name := range cfg.Names() {
		if p, ok := cfg.Profile(name); ok {
			needed[p.Backend] = true
		}
	}
	for _, b := range m.Backends(ctx) {
		if b.Kind == profile.Local || !b.Built && !needed[b.Kind] {
			continue
		}
		c := backends.Check{Name: b.Kind, OK: b.Usable || !needed[b.Kind], Detail: b.Detail, Hint: b.Hint}
		switch {
		case !b.Usable && c.OK:
			c.Detail += " (no profile uses it)"
		case c.Detail == "":
			c.Detail = "can be used"
		}
		checks = append(checks, c)
	}
	return checks
}
