package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/backends/worker/supervise"
	"github.com/caisson-dev/caisson/rpc"
)

// serviceThreads are on stock in a service, as in a worker: it reads and searches files of
// this machine itself.
const serviceThreads = 40

func (a *app) serveCommand() *cobra.Command {
	var events eventFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve an editor over stdin and stdout",
		Long: `Serves one client, an editor or any other program, over stdin and stdout with
JSON-RPC 2.0 in Content-Length frames. Logs go to stderr, and to the client.

The service ends with its client. Environments are let go of, not removed: a
session that is opened again by its id finds its processes running, until the
idle limit of its profile.

--event-log writes the events of calls, sessions, processes and artifacts, refusals
among them, without what calls were given: no arguments, command lines or output.`,
		Example: `  caisson serve
  caisson serve --config ./caisson.json --log-level debug 2>caisson.log
  caisson serve --event-log "$HOME/caisson-events.jsonl"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			errs := newSpool(a.errs)
			a.errs, a.closeErrs = errs, errs.close
			log, err := a.logger("info")
			if err != nil {
				return err
			}
			open, closeEvents, err := events.logEvents(a, log, a.open)
			if err != nil {
				return err
			}
			go supervise.StockThreads(serviceThreads) // nobody waits for it
			out := os.Stdout
			// Frames only: whatever else is printed by mistake goes to stderr.
			os.Stdout = os.Stderr
			code, err := rpc.Serve(cmd.Context(), rpc.Options{
				In: a.in, Out: out, Log: log, Version: version, Open: open,
			})
			err = errors.Join(err, closeEvents())
			if code == rpc.ExitOK && err == nil {
				return nil
			}
			return exitError{code: code, err: err}
		},
	}
	events.add(cmd.Flags())
	return cmd
}
