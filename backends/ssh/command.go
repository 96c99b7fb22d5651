package ssh

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
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

// Exit statuses: of a shell whose program was not started, and of an attach that
// found the environment gone.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
	exitGone          = 4
)

// gate keeps input back until the far end has printed the mark: what a startup
// file of the account's reads would be missing later.
type gate struct {
	mark string
	open chan struct{}
	once sync.Once
	tail []byte // of the output so far; only who reads uses it
}

func newGate(mark string) *gate { return &gate{mark: mark + "\n", open: make(chan struct{})} }

// lift lets everything through.
func (g *gate) lift() { g.once.Do(func() { close(g.open) }) }

// saw is told of the output, and of its end.
func (g *gate) saw(p []byte, err error) {
	if g.mark == "" {
		return
	}
	g.tail = append(g.tail, p...)
	if err != nil || bytes.Contains(g.tail, []byte(g.mark)) {
		g.mark, g.tail = "", nil
		g.lift()
		return
	}
	g.tail = append(g.tail[:0], g.tail[max(0, len(g.tail)-len(g.mark)):]...)
}

// script runs a script in a POSIX shell. Its first argument is a mark, which it
// prints as a line of its own before it reads any input; the result's Stdout is
// what follows. Without the mark the error is [remote.ErrNoMark], and the result
// says what came instead.
func (m machine) script(ctx context.Context, timeout time.Duration, stdin io.Reader, script string, args ...string) (connection.Result, error) {
	mark := random()
	line, err := commandLine(script, append([]string{mark}, args...)...)
	if err != nil {
		return connection.Result{}, err
	}
	return m.converse(ctx, timeout, stdin, mark, line)
}

// converse runs a command whose input waits for the mark.
func (m machine) converse(parent context.Context, timeout time.Duration, stdin io.Reader, mark, line string) (connection.Result, error) {
	ctx, cancel := context.WithTimeout(parent, timeout)
	defer cancel()
	s, err := m.Exec(ctx, line)
	if err != nil {
		return connection.Result{}, m.late(parent, ctx, err)
	}
	defer s.Close()
	stop := context.AfterFunc(ctx, func() {
		_ = s.Signal("TERM") // it may be over
		s.Close()
	})
	defer stop()
	g := newGate(mark)
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		<-g.open
		if stdin != nil {
			_, _ = io.Copy(s, stdin) // a command need not read all of its input
		}
		_ = s.CloseWrite() // it may be gone
	}()
	result := connection.Result{}
	buf := make([]byte, 32<<10)
	for err == nil && len(result.Stdout) <= maxStdout {
		var n int
		n, err = s.Read(buf)
		g.saw(buf[:n], err)
		result.Stdout = append(result.Stdout, buf[:n]...)
	}
	if errors.Is(err, io.EOF) {
		result.Exit, err = s.Wait(ctx)
	} else if err == nil {
		err = tool.Errorf(tool.BackendUnavailable, "%s printed more than %d bytes in answer to a short command", m.name, maxStdout).
			WithHint("have the account's startup files print only where there is a terminal")
	}
	g.lift()
	s.Close()
	<-fed
	if err != nil {
		return connection.Result{}, m.late(parent, ctx, err)
	}
	result.Stderr = s.Stderr()
	answer, err := remote.AfterMark(result.Stdout, mark)
	if err == nil {
		result.Stdout = answer
	}
	return result, err
}

// late says of an error that it came because the machine took too long.
func (m machine) late(parent, ctx context.Context, err error) error {
	if parent.Err() != nil || ctx.Err() == nil {
		return err
	}
	// What became of the channel then says nothing to a person.
	return &tool.Error{
		Kind: tool.BackendUnavailable, Message: m.name + " did not answer a short command in time", Retryable: true, Err: err,
		Hint: "does something wait for input when the account logs in there, or is the machine overloaded?",
	}
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
	line, err := commandLine(runProgram, program, "site", "--mark="+mark)
	if err != nil {
		return remote.SiteReply{}, err
	}
	result, err := m.converse(ctx, timeout, io.MultiReader(bytes.NewReader(append(request, '\n')), body), mark, line)
	var reply remote.SiteReply
	if err == nil {
		reply, err = remote.ReadSiteReply(result.Stdout)
	}
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
	text := strings.Join(strings.Fields(death(r.Stderr)), " ")
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

// death is why a worker died, where its runtime says so before it shows where, at
// length; else all of the text.
func death(text string) string {
	var why strings.Builder
	died := false
	for line := range strings.Lines(text) {
		fatal := strings.HasPrefix(line, "fatal error: ") || strings.HasPrefix(line, "panic: ")
		if fatal || strings.HasPrefix(line, "runtime: ") {
			why.WriteString(line)
		}
		died = died || fatal
	}
	if !died {
		return text
	}
	return why.String()
}

// limited says what to do when a limit of the account's is in the way, else nothing.
func limited(output string) string {
	switch {
	case strings.Contains(output, "max user processes"), strings.Contains(output, "Resource temporarily unavailable"), strings.Contains(output, "Cannot fork"):
		return "the account may not have more processes and threads on that machine: end some, or raise its limit (ulimit -u)"
	case strings.Contains(output, "fatal error: failed to reserve"), strings.Contains(output, "cannot allocate memory"), strings.Contains(output, "out of memory"):
		return "the account may not have enough memory on that machine: raise the limit that its startup files or limits.conf set (ulimit -v)"
	}
	return ""
}

// explain adds what to do to the refusal of a machine's disk, or of its system.
func explain(e *tool.Error, output string) *tool.Error {
	if hint := limited(output); hint != "" {
		return e.WithHint("%s", hint)
	}
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
