package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/rpc"
	"github.com/caisson-dev/caisson/rpc/protocol"
	"github.com/caisson-dev/caisson/session"
)

func (a *app) sessionCommand() *cobra.Command {
	return group("session", "List, fork, close and delete sessions",
		a.sessionListCommand(), a.sessionForkCommand(), a.sessionCloseCommand(), a.sessionDeleteCommand())
}

func (a *app) sessionListCommand() *cobra.Command {
	var asJSON bool
	var state string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the sessions, those of running services included",
		Example: `  caisson session list
  caisson session list --state closed --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd, func(ctx context.Context, m *session.Manager) error {
				list, err := m.List(ctx, session.Filter{State: session.State(state)})
				if err != nil {
					return err
				}
				return a.printSessions(list, asJSON)
			})
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "only sessions in this `state`: bound, connecting, ready, disconnected, closed, failed")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, in the shape of session/list")
	completeFlag(cmd, "state", oneOf("bound", "connecting", "ready", "disconnected", "closed", "failed"))
	return cmd
}

func (a *app) printSessions(list []session.Session, asJSON bool) error {
	if asJSON {
		out := protocol.SessionListResult{Sessions: make([]protocol.Session, len(list))}
		for i, s := range list {
			out.Sessions[i] = rpc.SessionData(s)
		}
		return a.printJSON(out)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SESSION\tSTATE\tPROFILE\tBACKEND\tHELD BY\tLAST USED\tWORKSPACE")
	for _, s := range list {
		holder := "-"
		if s.HeldBy != 0 {
			holder = fmt.Sprintf("pid %d", s.HeldBy)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", s.ID, s.State, s.Profile, s.Backend, holder, s.LastUsedAt.Local().Format(time.DateTime), s.Workspace)
	}
	return w.Flush()
}

func (a *app) sessionForkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "fork SESSION [NEW]",
		Short: "Make a session like another one",
		Long: `Makes a session with the profile that another one was bound to, whatever the
configuration says now, and on the same folder. It has an environment of its own,
into which nothing is copied, unless the profile is shared: then both work in one.
NEW names it; without, an id is made. The id is printed.`,
		Example: `  caisson session fork s-4f1c0d3b9a7e6625d1c8
  caisson session fork demo second-try`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: a.sessionIDs,
		RunE: func(cmd *cobra.Command, ids []string) error {
			r := session.ForkRequest{SessionID: ids[0]}
			if len(ids) == 2 {
				r.NewSessionID = ids[1]
			}
			return a.with(cmd, func(ctx context.Context, m *session.Manager) error {
				s, err := m.Fork(ctx, r, nil)
				if err == nil {
					fmt.Fprintln(a.out, s.ID)
				}
				return err
			})
		},
	}
}

func (a *app) sessionCloseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "close SESSION...",
		Short: "Close sessions; what is persistent is kept",
		Long: `Closes sessions: their processes are stopped and their environments removed,
unless they are persistent or another session is bound to them. Opening a
session again by its id resumes it when its environment was kept.`,
		Example:           "  caisson session close s-4f1c0d3b9a7e6625d1c8",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.sessionIDs,
		RunE: func(cmd *cobra.Command, ids []string) error {
			return a.with(cmd, func(ctx context.Context, m *session.Manager) error {
				return each(ids, func(id string) error {
					s, err := m.Close(ctx, id)
					if err == nil {
						fmt.Fprintf(a.out, "%s is closed\n", s.ID)
					}
					return err
				})
			})
		},
	}
}

func (a *app) sessionDeleteCommand() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "delete SESSION...",
		Short: "Delete sessions with their environments",
		Long: `Closes sessions, removes their environments, persistent or not, unless another
session is bound to them, and forgets them. Artifacts stay until they expire.

An environment that stays, and in which nothing of a session runs any more, need not
be reached. With --force one that cannot be reached is forgotten in any case. What may
be left there is printed.`,
		Example: `  caisson session delete s-4f1c0d3b9a7e6625d1c8
  caisson session delete --force old-build`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.sessionIDs,
		RunE: func(cmd *cobra.Command, ids []string) error {
			return a.with(cmd, func(ctx context.Context, m *session.Manager) error {
				return each(ids, func(id string) error {
					left, err := m.Delete(ctx, id, force)
					if err != nil {
						return err
					}
					fmt.Fprintf(a.out, "%s is deleted\n", id)
					if left != "" {
						fmt.Fprintf(a.errs, "caisson: %s: %s\n", id, indented(left))
					}
					return nil
				})
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "forget an environment that cannot be reached")
	return cmd
}

// each does the work for every id, also after one has failed.
func each(ids []string, work func(id string) error) error {
	var failed []error
	for _, id := range ids {
		if err := work(id); err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) == 1 {
		return failed[0]
	}
	return errors.Join(failed...)
}

func (a *app) sessionIDs(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var ids []string
	_ = a.with(cmd, func(ctx context.Context, m *session.Manager) error {
		list, err := m.List(ctx, session.Filter{})
		for _, s := range list {
			ids = append(ids, fmt.Sprintf("%s\t%s, %s", s.ID, s.Profile, s.State))
		}
		return err
	}) // completion has nobody to tell an error to
	return ids, cobra.ShellCompDirectiveNoFileComp
}
