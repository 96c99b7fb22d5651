// Audit is an adapter that keeps an audit log and otherwise changes nothing: it
// delegates everything to the worker that its command line names.
//
//	audit -log FILE [-grace DURATION] -- caisson worker
//
// Behind it there may be any program that speaks the protocol: the worker in a
// container (docker exec -i NAME caisson worker), on another machine (ssh HOST
// caisson worker), or another adapter. In a profile:
//
//	"audited": {
//	  "backend": "command",
//	  "command": ["/opt/caisson/audit", "-log", "/var/log/caisson.jsonl", "--", "caisson", "worker"],
//	  "workspace": "/srv/project"
//	}
//
// Each line of the log is one JSON object. What is about to happen is written
// before it does; a request that cannot be logged is refused.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/caisson-dev/caisson/backends/adapterkit"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "audit:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("audit", flag.ContinueOnError)
	file := flags.String("log", "", "append to this `file`")
	grace := flags.Duration("grace", adapterkit.DefaultShutdownGrace, "how long the worker may take to exit")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *file == "" || flags.NArg() == 0 {
		return errors.New("usage: audit -log FILE [-grace DURATION] -- COMMAND…")
	}
	worker, err := adapterkit.Delegate(adapterkit.DelegateOptions{Command: flags.Args(), ShutdownGrace: *grace})
	if err != nil {
		return err
	}
	log, err := os.OpenFile(*file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	return adapterkit.Run(ctx, &audit{Delegated: worker, log: journal{to: log}}, adapterkit.Options{})
}
