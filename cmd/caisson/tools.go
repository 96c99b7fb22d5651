package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/rpc/protocol"
	"github.com/caisson-dev/caisson/session"
	"github.com/caisson-dev/caisson/session/plugins"
)

func (a *app) toolsCommand() *cobra.Command {
	cmd := group("tools", "Register, list and remove WebAssembly tools",
		a.toolsRegisterCommand(), a.toolsListCommand("list"), a.toolsRemoveCommand())
	cmd.Long = `Registered tools are WebAssembly modules (WASI preview 1 commands) whose tools new
sessions have beside the built-in ones, and instead of those of the same name.
Each call runs in a fresh instance, with the limits and directories of a wasm
profile. docs/tools.md tells how to write one.`
	return cmd
}

func (a *app) toolsRegisterCommand() *cobra.Command {
	var r session.RegisterRequest
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "register MODULE",
		Short: "Register a module, which is asked what tools it has",
		Long: `Takes a copy of the module, asks it what tools it has, and gives them to every
session that is opened from then on. One of the same name is replaced; sessions
that have it keep it.`,
		Example: `  caisson tools register my-tool.wasm --name my-tool
  caisson tools register my-tool.wasm --name my-tool --profile pure`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			if r.File = file; r.Name == "" {
				r.Name = strings.TrimSuffix(filepath.Base(file), ".wasm")
			}
			return a.with(cmd, func(ctx context.Context, m *session.Manager) error {
				p, err := m.RegisterTool(ctx, r)
				if err != nil {
					return err
				}
				if asJSON {
					return a.printJSON(toolData(session.RegisteredTool{Plugin: p}))
				}
				fmt.Fprintf(a.out, "%s is registered: %s\n", p.Name, toolNames(p))
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&r.Name, "name", "", "what to call it: a `name` (default: the file's)")
	cmd.Flags().StringVar(&r.Profile, "profile", "", "wasm `profile` that it runs in (default: the session's choice)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	completeFlag(cmd, "profile", a.profileNames)
	return cmd
}

// toolNames are the names of a plugin's tools, for a person.
func toolNames(p plugins.Plugin) string {
	var names []string
	for _, t := range p.Tools {
		names = append(names, t.Name)
	}
	return strings.Join(names, ", ")
}

// toolsListCommand is "tools list", and "runtime wasm list" under that name.
func (a *app) toolsListCommand(use string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   use,
		Short: "List the registered WebAssembly tools",
		Example: `  caisson tools list
  caisson tools list --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd, func(ctx context.Context, m *session.Manager) error {
				list, err := m.RegisteredTools(ctx)
				if err != nil {
					return err
				}
				return a.printTools(list, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// registeredTool is a registered module as JSON.
type registeredTool struct {
	Name       string          `json:"name"`
	SHA256     string          `json:"sha256"`
	Profile    string          `json:"profile,omitempty"`
	Source     string          `json:"source,omitempty"`
	Configured bool            `json:"configured,omitempty"`
	Problem    string          `json:"problem,omitempty"`
	Tools      []protocol.Tool `json:"tools"`
}

func toolData(t session.RegisteredTool) registeredTool {
	d := registeredTool{
		Name: t.Name, SHA256: t.SHA256, Profile: t.Profile, Source: t.Source, Configured: t.Configured,
		Tools: make([]protocol.Tool, len(t.Tools)),
	}
	for i, x := range t.Tools {
		d.Tools[i] = protocol.Tool{
			Name: x.Name, Group: protocol.ToolGroup(x.Group), Description: x.Description,
			InputSchema: protocol.RawObject(x.InputSchema), Annotations: protocol.ToolAnnotations(x.Annotations),
			Profile: t.Profile,
		}
	}
	if t.Problem != nil {
		d.Problem = t.Problem.Error()
	}
	return d
}

func (a *app) printTools(list []session.RegisteredTool, asJSON bool) error {
	if asJSON {
		out := struct {
			Tools []registeredTool `json:"tools"`
		}{make([]registeredTool, len(list))}
		for i, t := range list {
			out.Tools[i] = toolData(t)
		}
		return a.printJSON(out)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tPROFILE\tMODULE\tFROM\tTOOLS")
	for _, t := range list {
		from, what := t.Source, toolNames(t.Plugin)
		if t.Configured {
			from = "the configuration"
		}
		if t.Problem != nil {
			what = "cannot be used: " + t.Problem.Error()
		}
		fmt.Fprintf(w, "%s\t%s\t%.12s\t%s\t%s\n", t.Name, t.Profile, t.SHA256, from, what)
	}
	return w.Flush()
}

func (a *app) toolsRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME...",
		Short: "Remove registered tools; sessions that have them keep them",
		Long: `Removes registered tools: sessions that are opened from then on do not have them.
A session that has one keeps it, and its module stays until the last of them is
deleted.`,
		Example: "  caisson tools remove my-tool",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			return a.with(cmd, func(ctx context.Context, m *session.Manager) error {
				return each(names, func(name string) error {
					err := m.RemoveTool(ctx, name)
					if err == nil {
						fmt.Fprintf(a.out, "%s is removed\n", name)
					}
					return err
				})
			})
		},
		ValidArgsFunction: a.registeredNames,
	}
}

func (a *app) registeredNames(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	_ = a.with(cmd, func(ctx context.Context, m *session.Manager) error {
		list, err := m.RegisteredTools(ctx)
		for _, t := range list {
			if !t.Configured {
				names = append(names, t.Name+"\t"+toolNames(t.Plugin))
			}
		}
		return err
	}) // completion has nobody to tell an error to
	return names, cobra.ShellCompDirectiveNoFileComp
}
