package rpc

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/backends"
)

// RunJob plays a script, one statement a line:
//
//	out TEXT     writes to standard output; "bytes" is what is no UTF-8
//	err TEXT
//	stdin        copies standard input
//	input PATH   shows an input file
//	env NAME
//	limits       shows those of the job
//	left PATH    leaves a file
//	exit CODE
//	signal NAME
//	late         is out of time
//	block        until it is cancelled
//
// Of an argument list it shows what it has got.
func (e *doubleEnv) RunJob(ctx context.Context, r backends.JobRequest) (out backends.JobResult, err error) {
	if r.Script == nil {
		out.Stdout = fmt.Appendf(nil, "%q in %q as %s %s", r.Argv, r.CWD, r.Actor.ID, r.Mode)
		return out, nil
	}
	for line := range strings.Lines(r.Script.Source) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "out":
			out.Stdout = append(out.Stdout, strings.ReplaceAll(rest, "bytes", "\xff\xfe")...)
		case "err":
			out.Stderr = append(out.Stderr, rest...)
		case "stdin":
			out.Stdout = append(out.Stdout, r.Stdin...)
		case "input":
			for _, in := range r.Inputs {
				if in.Path == rest {
					out.Stdout = append(out.Stdout, in.Data...)
				}
			}
		case "env":
			out.Stdout = append(out.Stdout, r.Environment[rest]...)
		case "limits":
			out.Stdout = fmt.Appendf(out.Stdout, "%v %v %d %d %q", r.Timeout, r.CPUTime, r.Memory, r.MaxOutputBytes, r.Collect)
		case "left":
			e.double.mu.Lock()
			e.files["/left/"+rest] = []byte(rest + "\n")
			e.double.mu.Unlock()
			out.Files = append(out.Files, backends.JobFile{Path: rest, Size: int64(len(rest) + 1), Token: "/left/" + rest})
		case "exit":
			out.ExitCode, err = strconv.Atoi(rest)
		case "signal":
			out.ExitCode, out.Signal = -1, rest
		case "late":
			out.TimedOut, out.Truncated, out.FilesDropped = true, true, 3
		case "block":
			e.entered <- r.ID
			<-ctx.Done()
			return out, ctx.Err()
		}
	}
	return out, err
}

var _ backends.JobRunner = (*doubleEnv)(nil)
