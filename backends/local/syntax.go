package local

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"strings"

	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// A line that cannot be parsed cannot be checked, and is never run: a shell runs
// the commands before the one that it does not understand. Most such lines are
// mistakes, though, and who made one is to hear of it as everywhere else: so the
// shell is asked to read the line without running any of it. What the shell does
// understand, and we do not, stays denied.

func unparsed(err error) error {
	return tool.Errorf(tool.Denied, "the command line cannot be parsed, so that the profile's command lists cannot be checked: %w", err).
		WithHint("write it in plain shell, or put it into a script; denied_commands and allowed_commands in the profile are what is checked")
}

// misspelt is the result of a call of bash, as if the line had been run, when the
// shell finds it wrong; else it fails with denied.
func (e *environment) misspelt(ctx context.Context, r tool.Request, denied error) (tool.Result, error) {
	var arguments map[string]json.RawMessage
	if err := json.Unmarshal(r.Arguments, &arguments); err != nil {
		return tool.Result{}, denied
	}
	line := arguments["command"]
	var text string
	if err := json.Unmarshal(line, &text); err != nil {
		return tool.Result{}, denied
	}
	command, err := json.Marshal(readLine(e.at.Profile, text))
	if err != nil {
		return tool.Result{}, denied
	}
	arguments["command"] = command
	delete(arguments, "run_in_background")
	if r.Arguments, err = json.Marshal(arguments); err != nil {
		return tool.Result{}, denied
	}
	far, err := e.worker(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	result, err := far.Call(ctx, r)
	if err != nil || result.IsError {
		return result, err
	}
	var ran map[string]json.RawMessage
	var status struct {
		ExitCode int    `json:"exit_code"`
		Signal   string `json:"signal"`
	}
	err = errors.Join(json.Unmarshal(result.StructuredContent, &ran), json.Unmarshal(result.StructuredContent, &status))
	if err != nil || status.ExitCode <= 0 || status.Signal != "" {
		return tool.Result{}, denied
	}
	ran["command"] = line
	if result.StructuredContent, err = json.Marshal(ran); err != nil {
		return tool.Result{}, denied
	}
	result.Content = nil // it is made of the structured content
	return result, nil
}

// misspeltStart is the error of a process whose line cannot be parsed.
func (e *environment) misspeltStart(ctx context.Context, r tool.StartRequest, denied error) error {
	arguments, err := json.Marshal(map[string]string{"command": r.Command})
	if err != nil {
		return denied
	}
	result, err := e.misspelt(ctx, tool.Request{
		ID: r.OperationID, Name: "bash", Arguments: arguments, Actor: tool.Actor{ID: r.Actor, Kind: r.ActorKind},
		Mode: r.PermissionMode, Timeout: e.at.Profile.Timeout,
	}, denied)
	var ran struct {
		Stderr string `json:"stderr"`
	}
	if err != nil || result.IsError || json.Unmarshal(result.StructuredContent, &ran) != nil {
		return denied
	}
	return tool.Errorf(tool.InvalidParams, "the shell cannot read the command line; it said: %s", strings.TrimSpace(ran.Stderr)).WithPath("command")
}

// readLine has the profile's shell read a line and run none of it.
func readLine(p profile.Profile, line string) string {
	shell := p.Shell
	if shell == "" {
		shell = "/bin/bash"
	}
	read := quoted(shell) + " -n -c " + quoted(line)
	if path.Base(shell) == "bash" {
		return "exec -a bash " + read // which it then calls itself, as always
	}
	return "exec " + read
}

// quoted is a word that a shell takes as it is.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
