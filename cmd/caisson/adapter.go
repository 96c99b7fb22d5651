package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/backends/adapterkit/check"
)

func (a *app) adapterCommand() *cobra.Command {
	return group("adapter", "Help authors of adapters", a.adapterCheckCommand())
}

func (a *app) adapterCheckCommand() *cobra.Command {
	var asJSON, list bool
	var o check.Options
	cmd := &cobra.Command{
		Use:   "check [flags] -- COMMAND [ARGUMENT…]",
		Short: "Try whether a program keeps to the worker protocol",
		Long: `Starts the program, as the backend "command" would, and drives the worker
protocol against it clause by clause, as far as it announces and answers them.
Prints a table of what is kept and broken, and for what is broken the frames that
show it, without the token and the values of variables. A clause that is not
offered is about what the program does not have; one that is not driven would show
nothing, because another one is broken.

The program runs in the current directory, and has a directory of its own for its root, TMPDIR and
XDG_STATE_HOME. Commands are run in the mode standard or, where that is
refused, in unconfined: they only print, sleep and write below the root. What the
program leaves running is reported and ended.

Exit code 1 when a clause is broken, or when the program is no adapter.`,
		Example: `  caisson adapter check -- python3 adapter.py
  caisson adapter check --clause cancel --clause token-wrong -- ./adapter
  caisson adapter check --list`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 && !list {
				return usagef("the command of the adapter is missing: caisson adapter check -- COMMAND…")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if list {
				return a.printClauses(asJSON)
			}
			o.Command = args
			o.Progress = func(text string) { fmt.Fprintln(a.errs, "caisson: "+text) }
			report, err := check.Run(cmd.Context(), o)
			if errors.Is(err, check.ErrNoClause) {
				return usagef("%w; caisson adapter check --list names them", err)
			}
			if err != nil && len(report.Results) == 0 {
				return err
			}
			if asJSON {
				err = errors.Join(err, a.printJSON(report))
			} else {
				err = errors.Join(err, a.printReport(report))
			}
			if n := report.Count(check.Broken); err == nil && n > 0 {
				return exitError{code: exitFailed}
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	flags.BoolVar(&list, "list", false, "list the clauses and check nothing")
	flags.StringArrayVar(&o.Clauses, "clause", nil, "check the clause of this `name` only; may be repeated")
	flags.DurationVar(&o.Patience, "patience", check.DefaultPatience, "how long a reply may take")
	flags.DurationVar(&o.Ending, "ending", check.DefaultEnding, "how long the exit may take from the end of the input")
	flags.IntVar(&o.Parallel, "parallel", check.DefaultParallel, "how many of the program run at once")
	completeFlag(cmd, "clause", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var names []string
		for _, c := range check.Clauses() {
			names = append(names, c.Name+"\t"+c.Says)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

// printReport prints what the adapter says too, which may be anything.
func (a *app) printReport(r check.Report) error {
	var b strings.Builder
	if err := r.Print(&b); err != nil {
		return err
	}
	_, err := io.WriteString(a.out, harmless(b.String()))
	return err
}

func (a *app) printClauses(asJSON bool) error {
	if asJSON {
		return a.printJSON(check.Clauses())
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CLAUSE\tSECTION\tRULE")
	for _, c := range check.Clauses() {
		fmt.Fprintf(w, "%s\t%s\t%s\n", c.Name, c.Section, c.Says)
	}
	return w.Flush()
}
