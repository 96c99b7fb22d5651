package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/rpc"
	"github.com/caisson-dev/caisson/session"
	"github.com/caisson-dev/caisson/session/config"
)

func (a *app) profileCommand() *cobra.Command {
	return group("profile", "List, try and choose the profiles of the configuration",
		a.profileListCommand("list"), a.profileCheckCommand("check [PROFILE]"), a.profileDefaultCommand("default PROFILE"))
}

// profileListCommand is "profile list", and "runtime info" under that name.
func (a *app) profileListCommand(use string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   use,
		Short: "List the profiles; the default one is marked",
		Example: `  caisson profile list
  caisson profile list --json | jq -r .profiles[].name`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd, func(ctx context.Context, m *session.Manager) error {
				list, def, err := m.Profiles(ctx)
				if perr := a.printProfiles(list, def, asJSON); perr != nil {
					return perr
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, in the shape of profile/list")
	return cmd
}

func (a *app) printProfiles(list []session.ProfileInfo, def string, asJSON bool) error {
	if asJSON {
		return a.printJSON(rpc.ProfileData(list, def))
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tPROFILE\tBACKEND\tSUMMARY")
	for _, p := range list {
		mark, summary := "", p.Summary
		if p.Name == def {
			mark = "*"
		}
		if p.Problem != nil {
			summary = "cannot be used: " + p.Problem.Error()
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", mark, p.Name, p.Backend, summary)
	}
	return w.Flush()
}

// profileCheckCommand is "profile check", and "runtime health" under that name.
func (a *app) profileCheckCommand(use string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   use,
		Short: "Really try a profile, step by step",
		Long: `Really tries a profile (the default one when none is named): the engine answers
and has the image, the host key is known, a write that must fail does fail. Exit
code 4 when something does not work.`,
		Example: `  caisson profile check
  caisson profile check isolated --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd, func(ctx context.Context, m *session.Manager) error {
				var name string
				if len(args) == 1 {
					name = args[0]
				} else {
					var err error
					if _, name, err = m.Profiles(ctx); err != nil {
						return err
					}
				}
				health, err := m.CheckProfile(ctx, name)
				if err != nil {
					return err
				}
				return a.printHealth(health, asJSON)
			})
		},
		ValidArgsFunction: a.profileNames,
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, in the shape of profile/check")
	return cmd
}

// profileDefaultCommand is "profile default", and "runtime switch" under that name.
func (a *app) profileDefaultCommand(use string) *cobra.Command {
	return &cobra.Command{
		Use:   use,
		Short: "Make a profile the default one, in the configuration file",
		Long: `Sets execution_environments.default in the user's configuration file, of which
all else stays as it is, comments too. A file that is not there is made. Sessions
that exist keep their profiles.`,
		Example: `  caisson profile default isolated
  caisson profile default local`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			paths, err := a.paths(rpc.OpenOptions{})
			if err != nil {
				return err
			}
			if err := config.SetDefault(paths.Config, args[0]); err != nil {
				return session.ConfigError(err)
			}
			fmt.Fprintf(a.out, "%s is the default, in %s\n", args[0], paths.Config)
			return nil
		},
		ValidArgsFunction: a.profileNames,
	}
}

// printHealth prints what a check found and fails when it is not well.
func (a *app) printHealth(h backends.Health, asJSON bool) error {
	if asJSON {
		if err := a.printJSON(rpc.HealthData(h)); err != nil {
			return err
		}
	} else if err := a.printChecks(h.Checks); err != nil {
		return err
	}
	if !h.OK {
		return exitError{code: exitNegative}
	}
	return nil
}

func (a *app) printChecks(checks []backends.Check) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, c := range checks {
		mark := "ok"
		if !c.OK {
			mark = "FAILED"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", mark, c.Name, harmless(c.Detail))
		if c.Hint != "" {
			fmt.Fprintf(w, "\t\t%s\n", harmless(c.Hint))
		}
	}
	return w.Flush()
}

// completeFlag completes the value of a flag.
func completeFlag(cmd *cobra.Command, name string, values cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(name, values); err != nil {
		panic(err) // the flag is not there: a mistake of the program
	}
}

// oneOf completes a value that is one of a few.
func oneOf(values ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
}

func (a *app) profileNames(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if len(args) == 0 || cmd.Name() == "call" {
		_ = a.with(cmd, func(ctx context.Context, m *session.Manager) error {
			list, _, err := m.Profiles(ctx)
			for _, p := range list {
				names = append(names, p.Name+"\t"+p.Summary)
			}
			return err
		}) // completion has nobody to tell an error to
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
