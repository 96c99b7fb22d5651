package tools

import (
	"context"
	"crypto/rand"
	"encoding/json"
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
	SandboxDenied bool `json:"sandbox_denied,omitzero"`
	// OOMKilled says that the kernel ended it for want of memory.
	OOMKilled tool.OOMKilled `json:"oom_killed,omitempty"`
	Hint      string         `json:"hint,omitempty"`
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
	if a.Background && s.o.Foreground {
		return tool.Result{}, noBackground("run_in_background starts a background process")
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
	r, err := s.foreground(ctx, cmd)
	if err != nil {
		return tool.Result{}, err
	}
	res := commandResult{
		Command: line, ExitCode: r.ExitCode, Signal: r.Signal, DurationMS: r.Duration.Milliseconds(),
		StdoutTruncated: r.StdoutTruncated, StderrTruncated: r.StderrTruncated,
		TimedOut: r.TimedOut, PromotedProcessID: r.PromotedProcessID, SandboxDenied: r.SandboxDenied, OOMKilled: r.OOMKilled,
	}
	stdout, stderr := r.Stdout, r.Stderr
	// Each stream has half of what a result may hold encoded, and what the
	// other leaves.
	cutErr := fit(stderr, max(maxEncoded/2, maxEncoded-6*len(stdout)))
	cutOut := fit(stdout, maxEncoded-encoded(stderr[:cutErr]))
	res.Stdout, res.StdoutTruncated = output(stdout, cutOut, res.StdoutTruncated)
	res.Stderr, res.StderrTruncated = output(stderr, cutErr, res.StderrTruncated)
	switch {
	case r.OOMKilled != "":
		res.Hint = r.OOMKilled.Explain() + "; have it use less, or give the environment more (memory_mb in the profile of a container)"
	case r.SandboxDenied:
		res.Hint = deniedHint(r.Mode, c.ceiling)
	case r.TimedOut && s.o.Foreground:
		res.Hint = "it was killed: nothing outlives its call in this environment; give it a longer timeout_seconds"
	}
	return result(res)
}

// foreground runs a command to its end. One that takes too long goes on in the
// background or, where there is none, is killed, and what it wrote is its result:
// what could not be killed ends with the environment, which ends with the call.
func (s *Set) foreground(ctx context.Context, cmd process.Command) (process.Result, error) {
	if !s.o.Foreground || cmd.Timeout <= 0 {
		return s.o.Commands.Run(ctx, cmd)
	}
	limited, cancel := context.WithTimeout(ctx, cmd.Timeout)
	defer cancel()
	cmd.Timeout = 0
	r, err := s.o.Commands.Run(limited, cmd)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		r.TimedOut, err = true, nil
	}
	return r, err
}

// noBackground refuses what cannot be where nothing outlives its call.
func noBackground(what string) error {
	return tool.Errorf(tool.Unsupported, "%s, and in this environment everything ends with its call", what).
		WithHint("run it in the foreground with a timeout_seconds that is long enough, or use a profile with container_policy per_session")
}

// foregroundBash describes bash where nothing outlives its call.
func foregroundBash(d tool.Description) tool.Description {
	d.Description = `Run a shell command line in the workspace and return its exit code, stdout and stderr. ` +
		`Each call runs by itself: of what it leaves only the files in the workspace last, and whatever it has started ends with it. ` +
		`A command that takes longer than timeout_seconds is killed.`
	d.InputSchema = json.RawMessage(`{
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "command": {"type": "string", "minLength": 1, "description": "the command line"},
    "timeout_seconds": {"type": "integer", "minimum": 1, "maximum": 3600, "default": 300, "description": "how long the command may take"},
    "cwd": {"type": "string", "description": "directory to run in; the workspace if left out"}
  },
  "required": ["command"]
}`)
	return d
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

// deniedHint says what a command may write in a mode, and how it would be more, where that
// may be asked for.
func deniedHint(mode, ceiling tool.Mode) string {
	if mode == tool.ReadOnly {
		hint := "the permission mode read_only lets commands write to their temporary directory ($TMPDIR) only"
		if ceiling != tool.ReadOnly {
			hint += tool.HintStandardBehind
		}
		return hint
	}
	hint := "the permission mode standard lets commands write to the workspace, their temporary directory ($TMPDIR) and the profile's writable_paths only; add a path there"
	if ceiling == tool.Unconfined {
		hint += ", or call in the mode unconfined"
	}
	return hint
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
