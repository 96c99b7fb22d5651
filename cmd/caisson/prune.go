package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/rpc"
	"github.com/caisson-dev/caisson/session"
)

// pruneCommand is "prune"; with a backend it looks at what that one made.
func (a *app) pruneCommand(use, backend string) *cobra.Command {
	r := session.PruneRequest{Backend: backend}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   use,
		Short: "Remove what crashes left behind",
		Long: `Removes containers, volumes and the like that Caisson made and whose owner is
proven gone: an environment that no session knows, made by a process of this
machine that is dead. Nothing of another machine is touched. It looks at the
default engine and at every engine and machine that a profile or a session names;
one that cannot be reached is named, and passed over.`,
		Example: `  caisson prune --dry-run
  caisson prune --backend docker --older-than 24h`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd, func(ctx context.Context, m *session.Manager) error {
				var unreached []string
				r.Unreached = func(_ string, err error) { unreached = append(unreached, err.Error()) }
				removed, err := m.Prune(ctx, r)
				if asJSON {
					return errors.Join(a.printJSON(rpc.PruneData(removed, unreached)), err)
				}
				for _, why := range unreached {
					fmt.Fprintf(cmd.ErrOrStderr(), "caisson: passed over: %s\n", harmless(why))
				}
				return errors.Join(a.printResources(removed), err)
			})
		},
	}
	if backend == "" {
		cmd.Flags().StringVar(&r.Backend, "backend", "", "only what this `backend` made")
	}
	cmd.Flags().BoolVar(&r.DryRun, "dry-run", false, "only say what would be removed")
	cmd.Flags().DurationVar(&r.OlderThan, "older-than", 0, "only what is older than this `time`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, in the shape of backend/prune")
	return cmd
}

func (a *app) printResources(list []backends.Resource) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, r := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.Backend, r.Kind, harmless(r.ID), r.CreatedAt.Local().Format(time.DateTime), r.Reason)
	}
	return w.Flush()
}
