package tools

import (
	"context"
	"crypto/rand"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/process"
	"github.com/caisson-dev/caisson/backends/worker/workspace"
)

type bashArgs struct {
	Command        string `json:"command" required:""`
	TimeoutSeconds *int64 `json:"timeout_seconds"`
	CWD            string `json:"cwd"`
	Background     bool   `json:"run_in_background"`
}

// commandResult tells how a command ended.
type commandResult struct {
	Command         string `json:"command"`
	ExitCode        int    `json:"exit_code"`
	Signal          string `json:"signal,omitempty"`
	Stdout          string `json:"stdout"`
	Stderr          string `json:"stderr"`
	StdoutTruncated bool   `json:"stdout_truncated"`
	StderrTruncated bool   `json:"stderr_truncated"`
	DurationMS      int64  `json:"duration_ms"`
	TimedOut        bool   `json:"timed_out"`
	// PromotedProcessID names the background process that the command is now.
	PromotedProcessID string `json:"promoted_process_id,omitempty"`
	// SandboxDenied says that the permission mode probably made it fail.
	SandboxDenied bool   `json:"sandbox_denied,omitzero"`
	Hint          string `json:"hint,omitempty"`
}

func (s *Set) bash(ctx context.Context, c *call, a bashArgs) (tool.Result, error) {
	if err := checkLine(a.Command); err != nil {
		return tool.Result{}, err
	}
	if err := between("timeout_seconds", a.TimeoutSeconds, minTimeout, maxTimeout); err != nil {
		return tool.Result{}, err
	}
	dir, err := s.directory(a.CWD)
	if err != nil {
		return tool.Result{}, err
	}
	if a.Background {
		return s.background(ctx, c, a.Command, dir)
	}
	return s.run(ctx, c, a.Command, process.Command{
		Command: a.Command, CWD: dir, Timeout: time.Duration(or(a.TimeoutSeconds, defaultTimeout)) * time.Second,
	})
}

// checkLine refuses what no shell can be given.
func checkLine(line string) error {
	switch {
	case strings.TrimSpace(line) == "":
		return refuse("command is empty")
	case len(line) >= maxCommand:
		return refuse("command has %d bytes, at most %d are possible; write it into a file first", len(line), maxCommand-1)
	case strings.IndexByte(line, 0) >= 0:
		return refuse("command holds a NUL byte, which no command line can")
	}
	return nil
}

// directory is the absolute path of a directory in the workspace.
func (s *Set) directory(p string) (string, error) {
	name, err := s.o.Root.Name(p)
	if err != nil {
		return "", err
	}
	info, err := s.o.Root.Stat(name)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", refuse("cwd: %q is not a directory", workspace.Format(name))
	}
	return s.o.Root.Abs(name), nil
}

// run runs a foreground command; line is how its result names it.
func (s *Set) run(ctx context.Context, c *call, line string, cmd process.Command) (tool.Result, error) {
	limit := DefaultOutputBytes
	if s.o.MaxOutputBytes > 0 {
		limit = maxOutputBytes
	}
	limit = s.limit(c, limit)
	cmd.Actor, cmd.Mode, cmd.MaxOutputBytes = c.Actor, c.mode, int64(limit)
	r, err := s.o.Commands.Run(ctx, cmd)
	if err != nil {
		return tool.Result{}, err
	}
	res := commandResult{
		Command: line, ExitCode: r.ExitCode, Signal: r.Signal, DurationMS: r.Duration.Milliseconds(),
		StdoutTruncated: r.StdoutTruncated, StderrTruncated: r.StderrTruncated,
		TimedOut: r.TimedOut, PromotedProcessID: r.PromotedProcessID, SandboxDenied: r.SandboxDenied,
	}
	stdout, stderr := r.Stdout, r.Stderr
	// Each stream has half of what a result may hold encoded, and what the
	// other leaves.
	cutErr := fit(stderr, max(maxEncoded/2, maxEncoded-6*len(stdout)))
	cutOut := fit(stdout, maxEncoded-encoded(stderr[:cutErr]))
	res.Stdout, res.StdoutTruncated = output(stdout, cutOut, res.StdoutTruncated)
	res.Stderr, res.StderrTruncated = output(stderr, cutErr, res.StderrTruncated)
	if r.SandboxDenied {
		res.Hint = deniedHint(r.Mode)
	}
	return result(res)
}

// encoded bounds what b takes as a JSON string.
func encoded(b []byte) int { return min(6*len(b), maxEncoded/2) }

// output is the text of what a command wrote. Where it was cut, it ends on a
// character.
func output(b []byte, n int, truncated bool) (string, bool) {
	if truncated = truncated || n < len(b); truncated {
		n = whole(b[:n])
	}
	s, _ := text(b[:n])
	return s, truncated
}

// whole is b's length without a character that is cut off at the end.
func whole(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return len(b) - n
			}
			break
		}
	}
	return len(b)
}

func deniedHint(mode tool.Mode) string {
	if mode == tool.ReadOnly {
		return "the permission mode read_only lets commands write to their temporary directory ($TMPDIR) only; call in the mode standard to change the workspace"
	}
	return "the permission mode standard lets commands write to the workspace, their temporary directory ($TMPDIR) and the profile's writable_paths only; add a path there, or call in the mode unconfined"
}

// background starts a command that nobody waits for.
func (s *Set) background(ctx context.Context, c *call, line, dir string) (tool.Result, error) {
	p, err := s.o.Commands.Start(ctx, tool.StartRequest{
		// A call is never repeated, so that its start has no name to recognise.
		OperationID: rand.Text(), Command: line, CWD: dir, Actor: c.Actor.ID, ActorKind: c.sideChat(), PermissionMode: c.mode,
	})
	if err != nil {
		return tool.Result{}, err
	}
	return result(commandResult{
		Command: line, ExitCode: p.ExitCode, PromotedProcessID: p.ID,
		Hint: "it runs in the background; the tool process reads its output and stops it",
	})
}
