package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/rpc"
	"github.com/caisson-dev/caisson/session"
)

// maxArguments bounds what is read from stdin: as much as an editor may send.
const maxArguments = 64 << 20

// callFlags are the flags of "caisson call".
type callFlags struct {
	profile, session, workspace string
	mode                        string
	timeout                     time.Duration
	maxOutput                   int64
	json                        bool
}

func (a *app) callCommand() *cobra.Command {
	var f callFlags
	cmd := &cobra.Command{
		Use:   "call [flags] TOOL [ARGUMENTS]",
		Short: "Run one tool call and print its result",
		Long: `Runs one tool call in a temporary session, which is deleted afterwards, or in the
session that --session names, which is made when it is not there and kept.

ARGUMENTS is one JSON object, "-" reads it from stdin; none is {}. What a model
would read is printed; --json prints the whole result, in the shape of tool/call
of the editor protocol. A tool's own error is printed on stderr, exit code 4. The
exit code of a command that bash ran is part of the result.`,
		Example: `  caisson call read_file '{"path":"go.mod"}'
  caisson call --profile isolated bash '{"command":"uname -a"}'
  caisson call --session demo bash '{"command":"make -j","run_in_background":true}'
  caisson call --json grep '{"pattern":"func main"}' | jq .structuredContent
  jq -n --rawfile c notes.md '{path:"notes.md",content:$c}' | caisson call write_file -`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := f.request(cmd, args)
			if err != nil {
				return err
			}
			return a.with(cmd, func(ctx context.Context, m *session.Manager) error {
				return a.call(ctx, cmd, m, f, r)
			})
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return tool.BuiltIn(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.profile, "profile", "p", "", "`profile` of the session (default: the configured one)")
	flags.StringVarP(&f.session, "session", "s", "", "work in this session and keep it: its `id`")
	flags.StringVarP(&f.workspace, "workspace", "w", ".", "`folder` of a new session; empty: a session without one, which is local unless --profile names another")
	flags.StringVar(&f.mode, "mode", "", "permission `mode`: read_only, standard, unconfined (default: the profile's)")
	flags.DurationVar(&f.timeout, "timeout", 0, "cancel the call after this `time` (default: the profile's)")
	flags.Int64Var(&f.maxOutput, "max-output-bytes", 0, "most `bytes` of output that a command returns (default: the profile's)")
	flags.BoolVar(&f.json, "json", false, "print the whole result as JSON")
	completeFlag(cmd, "profile", a.profileNames)
	completeFlag(cmd, "session", a.sessionIDs)
	completeFlag(cmd, "mode", oneOf("read_only", "standard", "unconfined"))
	return cmd
}

// request makes the call out of the command line.
func (f callFlags) request(cmd *cobra.Command, args []string) (session.CallRequest, error) {
	raw := "{}"
	if len(args) == 2 {
		raw = args[1]
	}
	if raw == "-" {
		data, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), maxArguments+1))
		if err != nil {
			return session.CallRequest{}, fmt.Errorf("the arguments cannot be read: %w", err)
		}
		if len(data) > maxArguments {
			return session.CallRequest{}, usagef("the arguments are larger than %d MiB", maxArguments>>20)
		}
		raw = string(data)
	}
	raw = strings.TrimSpace(raw)
	if !strings.HasPrefix(raw, "{") || !json.Valid([]byte(raw)) {
		return session.CallRequest{}, usagef("the arguments are not a JSON object: %.60q", raw)
	}
	mode := tool.Mode(f.mode)
	if mode != "" && !mode.Valid() {
		return session.CallRequest{}, usagef("the mode %q is none of read_only, standard, unconfined", f.mode)
	}
	if f.timeout < 0 || f.maxOutput < 0 {
		return session.CallRequest{}, usagef("limits cannot be negative")
	}
	return session.CallRequest{
		Name:        args[0],
		Arguments:   json.RawMessage(raw),
		Mode:        mode,
		Constraints: session.Constraints{Timeout: f.timeout, MaxOutputBytes: f.maxOutput},
	}, nil
}

// call opens the session, makes the call and lets a temporary session go.
func (a *app) call(ctx context.Context, cmd *cobra.Command, m *session.Manager, f callFlags, r session.CallRequest) error {
	open, err := f.open(ctx, cmd, m)
	if err != nil {
		return err
	}
	return a.inSession(ctx, m, open, f.session != "", func(id string) error {
		r.SessionID, r.Confirm = id, a.confirm()
		res, err := m.Call(ctx, r)
		if err != nil {
			return err
		}
		if f.json {
			data, derr := rpc.ToolCallData(res)
			err = errors.Join(derr, a.printJSON(json.RawMessage(data)))
		} else {
			err = a.printResult(res.Result)
		}
		if err == nil && res.IsError {
			err = exitError{code: exitNegative}
		}
		return err
	})
}

// inSession opens a session, does the work in it and deletes it unless it is
// kept.
func (a *app) inSession(ctx context.Context, m *session.Manager, open session.OpenRequest, keep bool, work func(id string) error) (err error) {
	s, _, err := m.Open(ctx, open, nil)
	if err != nil {
		return err
	}
	if !keep {
		defer func() {
			ctx, cancel := afterwards(ctx)
			defer cancel()
			left, derr := m.Delete(ctx, s.ID, false)
			if left != "" {
				fmt.Fprintf(a.errs, "caisson: %s: %s\n", s.ID, indented(left))
			}
			if derr != nil {
				err = also(err, fmt.Errorf("the temporary session %s is left: %w", s.ID, derr))
			}
		}()
	}
	return work(s.ID)
}

// open says which session to open.
func (f callFlags) open(ctx context.Context, cmd *cobra.Command, m *session.Manager) (session.OpenRequest, error) {
	r := session.OpenRequest{SessionID: f.session, Profile: f.profile, Workspace: f.workspace}
	if f.session != "" {
		_, err := m.Get(ctx, f.session)
		if err == nil && !cmd.Flags().Changed("workspace") {
			r.Workspace = "" // it has the one it was made with
			return r, nil
		}
		if err != nil && tool.KindOf(err) != tool.SessionNotFound {
			return r, err
		}
	} else {
		r.Labels = map[string]string{"caisson.command": "call"}
	}
	if r.Workspace == "" {
		return r, nil
	}
	folder, err := absFolder(r.Workspace)
	r.Workspace = folder
	return r, err
}

// printResult prints what a model would read; what is not text is named.
func (a *app) printResult(res tool.Result) error {
	out := a.out
	if res.IsError {
		out = a.errs
	}
	for _, p := range res.Content {
		var line string
		switch p.Type {
		case tool.PartText:
			line = p.String()
		case tool.PartResourceLink:
			line = p.URI
		default:
			line = fmt.Sprintf("[%s %s, %d bytes in base64]", p.Type, p.MIMEType, len(p.Data))
		}
		if line != "" && !strings.HasSuffix(line, "\n") {
			line += "\n"
		}
		if _, err := io.WriteString(out, line); err != nil {
			return err
		}
	}
	return nil
}

// printJSON prints a value for programs and people.
func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// absFolder is the absolute path of a folder that exists.
func absFolder(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", usagef("the workspace cannot be used: %w", err)
	}
	if !info.IsDir() {
		return "", usagef("the workspace %s is not a folder", path)
	}
	return filepath.Abs(path)
}
