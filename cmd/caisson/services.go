package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/artifacts"
	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/command"
	"github.com/caisson-dev/caisson/backends/docker"
	"github.com/caisson-dev/caisson/backends/local"
	"github.com/caisson-dev/caisson/backends/ssh"
	"github.com/caisson-dev/caisson/backends/wasm"
	"github.com/caisson-dev/caisson/backends/worker/tools"
	"github.com/caisson-dev/caisson/rpc"
	"github.com/caisson-dev/caisson/session"
	"github.com/caisson-dev/caisson/session/config"
	"github.com/caisson-dev/caisson/session/plugins"
)

// shutdownBudget bounds how long a command waits for its environments to be
// let go of. It is longer than the budget of a worker.
const shutdownBudget = 15 * time.Second

// paths are where this run finds and keeps things: what o says, else the
// flags, else the platform's directories.
func (a *app) paths(o rpc.OpenOptions) (config.Paths, error) {
	paths, err := config.DefaultPaths()
	if err != nil {
		return config.Paths{}, err
	}
	for _, p := range []struct {
		to           *string
		chosen, flag string
	}{
		{&paths.Config, o.ConfigPath, a.config},
		{&paths.State, o.StateDir, a.state},
		{&paths.Data, o.DataDir, a.data},
	} {
		if chosen := p.chosen; chosen != "" {
			*p.to = chosen
		} else if p.flag != "" {
			if *p.to, err = filepath.Abs(p.flag); err != nil {
				return config.Paths{}, err
			}
		}
	}
	paths.Named = paths.Named || o.ConfigPath != "" || a.config != ""
	return paths, nil
}

// registry makes the backends of this build. A new one is a line here.
func registry(paths config.Paths, log *slog.Logger) *backends.Registry {
	return backends.NewRegistry(
		command.New(command.Options{Tools: tools.Descriptions(), Log: log}),
		local.New(local.Options{Log: log}),
		docker.New(docker.Options{Version: version, Log: log}),
		ssh.New(ssh.Options{Version: version, Log: log}),
		wasm.New(wasm.Options{CacheDir: filepath.Join(paths.State, "wasm-cache"), Log: log}),
	)
}

// open makes what an editor's connection, or one command, works with.
func (a *app) open(_ context.Context, o rpc.OpenOptions) (rpc.Services, error) {
	paths, err := a.paths(o)
	if err != nil {
		return rpc.Services{}, err
	}
	store, err := artifacts.Open(filepath.Join(paths.Data, "artifacts"), artifacts.Options{Log: o.Log})
	if err != nil {
		return rpc.Services{}, err
	}
	registered, err := plugins.Open(filepath.Join(paths.Data, "plugins"), nil)
	if err != nil {
		return rpc.Services{}, errors.Join(err, store.Close())
	}
	kinds := registry(paths, o.Log)
	manager, err := session.New(session.Options{
		StateDir:   paths.State,
		RuntimeDir: paths.Runtime,
		Config:     paths.Source(),
		Registry:   kinds,
		Artifacts:  store,
		Plugins:    registered,
		Sink:       o.Sink,
		Log:        o.Log,
	})
	if err != nil {
		return rpc.Services{}, errors.Join(err, store.Close(), kinds.Close())
	}
	return rpc.Services{
		Sessions:   manager,
		Artifacts:  store,
		Backends:   kinds.Kinds(),
		ProcessTTY: runtime.GOOS != "windows",
		ConfigPath: paths.Config,
		Close:      kinds.Close,
	}, nil
}

// letGo ends what open made, in the order in which each needs the next.
func letGo(ctx context.Context, s rpc.Services) error {
	return errors.Join(s.Sessions.Shutdown(ctx), s.Artifacts.Close(), s.Close())
}

// with runs one command with its own services and lets go of everything when
// it is over, also after an interrupt.
func (a *app) with(cmd *cobra.Command, work func(ctx context.Context, m *session.Manager) error) error {
	return a.withServices(cmd, func(ctx context.Context, s rpc.Services) error { return work(ctx, s.Sessions) })
}

// withServices is with for what needs more than the sessions.
func (a *app) withServices(cmd *cobra.Command, work func(ctx context.Context, s rpc.Services) error) error {
	log, err := a.logger("warn")
	if err != nil {
		return err
	}
	s, err := a.open(cmd.Context(), rpc.OpenOptions{Log: log})
	if err != nil {
		return err
	}
	err = work(cmd.Context(), s)
	ctx, cancel := afterwards(cmd.Context())
	defer cancel()
	if cerr := letGo(ctx, s); cerr != nil {
		err = errors.Join(err, fmt.Errorf("an environment could not be let go of: %w", cerr))
	}
	return err
}

// afterwards is a context for cleaning up: interrupts do not end it, its
// budget does.
func afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), shutdownBudget)
}
