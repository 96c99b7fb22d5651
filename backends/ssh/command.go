package ssh

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/backends/remote"
	"github.com/caisson-dev/caisson/backends/ssh/connection"
	"github.com/caisson-dev/caisson/backends/tool"
)

// machine is a machine that was reached.
type machine struct {
	connection.Commands
	// name is the account and the machine, for a person.
	name string
}

// Exit statuses of a shell whose program was not started.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
)

// script runs a script in a POSIX shell.
func (m machine) script(ctx context.Context, timeout time.Duration, stdin io.Reader, script string, args ...string) (connection.Result, error) {
	line, err := commandLine(script, args...)
	if err != nil {
		return connection.Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return m.Run(ctx, line, stdin)
}

// site asks the worker's program something. A program that could not be started
// is a *notStarted.
func (m machine) site(ctx context.Context, timeout time.Duration, program string, r remote.SiteRequest) (remote.SiteReply, error) {
	return m.siteWith(ctx, timeout, program, r, bytes.NewReader(nil))
}

// siteWith is site with a body that follows the request.
func (m machine) siteWith(ctx context.Context, timeout time.Duration, program string, r remote.SiteRequest, body io.Reader) (remote.SiteReply, error) {
	request, err := json.Marshal(r)
	if err != nil {
		return remote.SiteReply{}, err
	}
	mark := random()
	input := io.MultiReader(bytes.NewReader(append(request, '\n')), body)
	result, err := m.script(ctx, timeout, input, runProgram, program, "site", "--mark="+mark)
	if err != nil {
		return remote.SiteReply{}, err
	}
	reply, err := remote.ReadSiteReply(result.Stdout, mark)
	if errors.Is(err, remote.ErrNoMark) {
		return remote.SiteReply{}, &notStarted{machine: m.name, program: program, result: result}
	}
	return reply, err
}

// notStarted is the error of a program that did not say that it is there.
type notStarted struct {
	machine string
	program string
	result  connection.Result
}

func (e *notStarted) Error() string {
	switch {
	case e.missing():
		return "there is no " + e.program + " on " + e.machine
	case e.refused():
		return e.program + " cannot be executed on " + e.machine + ": " + said(e.result)
	}
	return e.program + " on " + e.machine + " is not Caisson's worker, or did not start: " + said(e.result)
}

// missing reports whether there is no such program.
func (e *notStarted) missing() bool { return e.result.Code == exitNotFound }

// refused reports whether the program is there and the system does not run it,
// as on a file system that is mounted noexec.
func (e *notStarted) refused() bool { return e.result.Code == exitNotExecutable }

// said is what a command printed, as far as it tells something, on one line.
func said(r connection.Result) string {
	text := strings.Join(strings.Fields(r.Stderr), " ")
	if text == "" {
		text = strings.Join(strings.Fields(string(r.Stdout)), " ")
	}
	if text == "" {
		if r.Signal != "" {
			return "it was ended by the signal " + r.Signal
		}
		return "it said nothing"
	}
	if len(text) > maxQuoted {
		text = text[len(text)-maxQuoted:]
		for len(text) > 0 && !utf8.RuneStart(text[0]) {
			text = text[1:]
		}
		text = "…" + text
	}
	return "“" + strings.ToValidUTF8(text, "�") + "”"
}

// explain adds what to do to the refusal of a machine's disk.
func explain(e *tool.Error, output string) *tool.Error {
	switch {
	case strings.Contains(output, "No space left"), strings.Contains(output, "quota"):
		return e.WithHint("the disk, or the account's share of it, is full on that machine: make room there")
	case strings.Contains(output, "Read-only file system"):
		return e.WithHint(`the file system there is read-only: name a "workspace" in the profile that can be written`)
	case strings.Contains(output, "Permission denied"):
		return e.WithHint("the account may not write there: look at its home's owner and mode")
	}
	return e
}
