// Caisson runs an agent's tools in the environment that a profile names: on
// this machine, in a container, behind ssh. "caisson serve" is the service
// beside an editor; the other subcommands do by hand what it does for one.
//
// One file here is one subcommand, and services.go is where all rooms of the
// program meet.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/backends/tool"
)

// version is stamped by the linker (-X main.version=...).
var version = "devel"

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	if handled, code := runWorkerCommand(args); handled {
		return code
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// A reader that goes away is an error of the write, not the end of a service
	// that still has environments to let go of. Taken, not ignored: what is
	// ignored stays ignored in every program that is started.
	drop := make(chan os.Signal, 1)
	signal.Notify(drop, syscall.SIGPIPE)
	defer signal.Stop(drop)

	a := &app{in: os.Stdin, out: os.Stdout, errs: os.Stderr}
	root := a.rootCommand()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !a.parsed {
		err = usageError{err}
	}
	a.report(cmd, err)
	if a.closeErrs != nil {
		a.closeErrs()
	}
	return exitCode(ctx, err)
}

// app is what the subcommands share: the standard streams and the flags that
// all of them take.
type app struct {
	in        io.ReadCloser
	out, errs io.Writer
	// closeErrs, unless it is nil, is called when the last has been said.
	closeErrs func()

	config, state, data string
	logLevel            string
	// parsed says that the command line was understood, so that what fails from
	// then on is no mistake in it.
	parsed bool
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "caisson",
		Short: "Run an agent's tools on this machine, in containers and on other hosts",
		Long: `Caisson runs an agent's tools (files, search, commands, git, processes) in the
environment that a profile names: on this machine, in a container, behind ssh, in
a WebAssembly sandbox, or in what a program of your own provides.

Editors start "caisson serve" and speak JSON-RPC to it; the other commands do by
hand what it does for them. Without a configuration file there is one profile,
"local", which works in the current folder.`,
		Example: `  caisson doctor
  caisson call bash '{"command":"uname -a"}'
  caisson call --profile isolated read_file '{"path":"go.mod"}'`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			a.parsed = true
			return nil
		},
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.errs)
	flags := root.PersistentFlags()
	flags.StringVar(&a.config, "config", "", "configuration `file` (default: $CAISSON_CONFIG, else the user's)")
	flags.StringVar(&a.state, "state-dir", "", "`directory` of sessions and environments (default: the user's)")
	flags.StringVar(&a.data, "data-dir", "", "`directory` of artifacts (default: the user's)")
	flags.StringVar(&a.logLevel, "log-level", "", "least `level` to log: debug, info, warn, error (default: info for serve, else warn)")
	completeFlag(root, "log-level", oneOf("debug", "info", "warn", "error"))
	root.AddCommand(
		a.serveCommand(), a.callCommand(), a.jobCommand(), a.profileCommand(), a.toolsCommand(), a.sessionCommand(), a.runtimeCommand(), a.pruneCommand("prune", ""),
		a.doctorCommand(), a.adapterCommand(), a.schemaCommand(), a.versionCommand(), exitCodesTopic(),
	)
	root.AddCommand(farEndCommands()...)
	return root
}

// group is a command that only has subcommands. Cobra's own answer to a missing
// or unknown one is the help and success.
func group(use, short string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unknown command %q for %q", args[0], cmd.CommandPath())
			}
			return usagef("%q needs a subcommand: \"%s --help\" lists them", cmd.CommandPath(), cmd.CommandPath())
		},
	}
	cmd.AddCommand(subs...)
	return cmd
}

// farEndCommands describe what runWorkerCommand has taken before: they are here
// for the help texts only.
func farEndCommands() []*cobra.Command {
	var all []*cobra.Command
	for name, short := range map[string]string{
		"worker": "Serve one session's tools inside an environment (started by Caisson itself)",
		"init":   "Be the first process of a container (started by Caisson itself)",
		"attach": "Join the standard streams to a worker (started by Caisson itself)",
		"site":   "Look after the directories of environments (started by Caisson itself)",

		"wasm-engine": "Run the WebAssembly modules of one environment (started by Caisson itself)",
		"limit":       "Become a program whose processes are limited (started by Caisson itself)",
	} {
		all = append(all, &cobra.Command{
			Use: name, Short: short, Long: short + ".\n\nIts flags are told by \"caisson " + name + " -h\".",
			Hidden: name != "worker", DisableFlagParsing: true,
			RunE: func(*cobra.Command, []string) error { return errors.New("unreachable: it is run before") },
		})
	}
	return all
}

// report tells a person what went wrong in cmd and what to do next.
func (a *app) report(cmd *cobra.Command, err error) {
	var done exitError
	if err == nil || errors.As(err, &done) && done.err == nil {
		return
	}
	fmt.Fprintf(a.errs, "caisson: %s\n", indented(err.Error()))
	var e *tool.Error
	var usage usageError
	switch {
	case errors.As(err, &e) && e.Hint != "":
		fmt.Fprintf(a.errs, "  hint: %s\n", indented(e.Hint))
	case errors.As(err, &usage):
		fmt.Fprintf(a.errs, "  hint: \"%s --help\" tells what it takes\n", cmd.CommandPath())
	}
}

// indented is a text of which no line but the first can be taken for one that this
// program begins: what an error tells may come from anywhere.
func indented(text string) string { return strings.ReplaceAll(harmless(text), "\n", "\n    ") }
