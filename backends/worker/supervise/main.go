package supervise

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker"
	"github.com/caisson-dev/caisson/backends/worker/rlimit"
	"github.com/caisson-dev/caisson/backends/worker/site"
)

// Exit codes of the far end's subcommands.
const (
	ExitOK      = 0
	ExitFailure = 1
	ExitUsage   = 2
	// ExitIdle is a worker that ended because nobody was connected for its
	// lifetime.
	ExitIdle = 3
	// ExitGone is an attach that found its environment gone.
	ExitGone = 4
)

// Main runs the subcommands worker, init, attach, site and limit on the standard streams
// when args, without the program's name, begin with one of them; handled is
// false otherwise. A program that is to be started as a worker, such as a test's,
// calls it first. Whatever args are, files are their owner's to use from then on.
func Main(args []string) (handled bool, code int) {
	keepOwn()
	if len(args) == 0 {
		return false, 0
	}
	var run func(context.Context, []string) error
	switch args[0] {
	case "worker":
		run = workerMain
	case "init":
		run = initMain
	case "attach":
		run = attachMain
	case "site":
		run = siteMain
	case rlimit.Command:
		return true, rlimit.Main(args[1:]) // with no signal taken: it becomes another program
	default:
		return false, 0
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// Taken, not ignored: what is ignored stays ignored in every command that is
	// started. A broken pipe is an error of the write then, and a terminal that
	// goes away takes nothing along.
	drop := make(chan os.Signal, 1)
	signal.Notify(drop, syscall.SIGPIPE, syscall.SIGHUP)
	defer signal.Stop(drop)
	return true, exitCode(args[0], run(ctx, args[1:]))
}

// usageError is what package flag has told the user already.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

func exitCode(command string, err error) int {
	var usage usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return ExitOK
	case errors.Is(err, worker.ErrIdle):
		return ExitIdle
	case errors.As(err, &usage):
		return ExitUsage
	}
	fmt.Fprintf(os.Stderr, "caisson %s: %v\n", command, err)
	if tool.KindOf(err) == tool.EnvironmentLost {
		return ExitGone
	}
	return ExitFailure
}

// parse parses flags that take no arguments beside them.
func parse(command string, register func(*flag.FlagSet), args []string) error {
	flags := flag.NewFlagSet("caisson "+command, flag.ContinueOnError)
	register(flags)
	if err := flags.Parse(args); err != nil {
		return usageError{err}
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "caisson %s: unexpected argument %q\n", command, flags.Arg(0))
		return usageError{errors.New("unexpected argument")}
	}
	return nil
}

func logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(&limitedWriter{w: os.Stderr, left: maxLog}, nil))
}

func workerMain(ctx context.Context, args []string) error {
	o := worker.Options{In: os.Stdin, Out: os.Stdout, AdoptOrphans: true, Log: logger()}
	var detached bool
	var ready int
	err := parse("worker", func(flags *flag.FlagSet) {
		o.Register(flags)
		flags.BoolVar(&detached, "detach", false, "start the worker in the background and return when it listens")
		flags.IntVar(&ready, "ready-fd", 0, "say on `descriptor` that the worker listens")
	}, args)
	if err != nil {
		return err
	}
	if err := o.Check(); err != nil {
		return err
	}
	if detached {
		if o.Listen == "" {
			return errors.New("a worker in the background needs a socket (--listen)")
		}
		return detach(ctx, o)
	}
	if ready > 0 {
		pipe := os.NewFile(uintptr(ready), "ready")
		o.Ready = func() error {
			_, err := io.WriteString(pipe, readyWord)
			return errors.Join(err, pipe.Close())
		}
	}
	if o.Listen != "" {
		// Taken for what it starts, too: no terminal stops a worker in the background.
		drop := make(chan os.Signal, 1)
		if stops := stopSignals(); len(stops) > 0 { // none would be all
			signal.Notify(drop, stops...)
			defer signal.Stop(drop)
		}
		go StockThreads(workerThreads)
	}
	err = worker.Run(ctx, o)
	if errors.Is(err, worker.ErrIdle) && o.RemoveWhenIdle && o.Site != "" {
		if left := site.Leave(context.WithoutCancel(ctx), o.Site); left != nil {
			return left
		}
	}
	return err
}

func initMain(ctx context.Context, args []string) error {
	o := InitOptions{Log: logger()}
	if err := parse("init", o.Register, args); err != nil {
		return err
	}
	go StockThreads(initThreads)
	return Init(ctx, o)
}

func attachMain(ctx context.Context, args []string) error {
	o := AttachOptions{Stdin: os.Stdin, Stdout: os.Stdout}
	if err := parse("attach", o.Register, args); err != nil {
		return err
	}
	if o.Worker.Site != "" {
		site.Locate(&o.Worker)
	}
	return Attach(ctx, o)
}

func siteMain(ctx context.Context, args []string) error {
	var mark string
	err := parse("site", func(flags *flag.FlagSet) {
		flags.StringVar(&mark, "mark", "", "print `word` on a line of its own before the reply")
	}, args)
	if err != nil {
		return err
	}
	return site.Serve(ctx, mark, os.Stdin, os.Stdout)
}
