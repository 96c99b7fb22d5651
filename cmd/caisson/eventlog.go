package main

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"

	"github.com/spf13/pflag"

	"github.com/caisson-dev/caisson/rpc"
	"github.com/caisson-dev/caisson/session/config"
	"github.com/caisson-dev/caisson/session/eventlog"
)

// eventFlags say where events are logged, if anywhere.
type eventFlags struct {
	file     string
	maxBytes int64
}

func (f *eventFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.file, "event-log", "", "append what happens to this `file`, one JSON object a line")
	flags.Int64Var(&f.maxBytes, "event-log-max-bytes", eventlog.DefaultMaxBytes, "move the event log to FILE.1 at this many `bytes`")
}

// opener is what opens the services of a connection.
type opener func(ctx context.Context, o rpc.OpenOptions) (rpc.Services, error)

// logEvents has the services that open makes log their events, where that is asked
// for. The function that it returns ends the log.
func (f *eventFlags) logEvents(a *app, log *slog.Logger, open opener) (opener, func() error, error) {
	if f.file == "" {
		return open, func() error { return nil }, nil
	}
	var source atomic.Pointer[config.Source]
	events, err := eventlog.Open(f.file, eventlog.Options{
		MaxBytes: f.maxBytes, Log: log,
		Secrets: func() []string { return secretValues(source.Load(), os.Environ()) },
	})
	if err != nil {
		return nil, nil, usageError{err}
	}
	return func(ctx context.Context, o rpc.OpenOptions) (rpc.Services, error) {
		paths, err := a.paths(o)
		if err != nil {
			return rpc.Services{}, err
		}
		s := paths.Source()
		source.Store(&s)
		o.Sink = events.Tee(o.Sink)
		return open(ctx, o)
	}, events.Close, nil
}

// secretValues are values that no log may hold: of variables that profiles give to
// commands, and of those of this service whose names say so.
func secretValues(source *config.Source, environ []string) (values []string) {
	given := map[string]bool{}
	if source != nil {
		// What can be read of a file with an error is better than nothing.
		c, _ := (*source).Load()
		for _, p := range c.Profiles {
			for _, v := range p.Profile.Env {
				values = append(values, v)
			}
			for _, name := range p.Profile.ForwardEnv {
				given[name] = true
			}
		}
	}
	for _, pair := range environ {
		if name, v, ok := strings.Cut(pair, "="); ok && (given[name] || eventlog.SecretName(name)) {
			values = append(values, v)
		}
	}
	return values
}
