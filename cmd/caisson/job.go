package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/rpc"
	"github.com/caisson-dev/caisson/rpc/protocol"
	"github.com/caisson-dev/caisson/session"
)

func (a *app) jobCommand() *cobra.Command {
	return group("job", "Run programs to their end and collect what they leave", a.jobRunCommand())
}

// jobFlags are the flags of "caisson job run".
type jobFlags struct {
	at                                       callFlags // where: profile, session, workspace, mode, timeout, maxOutput, json
	script, interpreter, cwd, memory, output string
	inputs, env, collect                     []string
	stdin                                    bool
	cpuTime                                  time.Duration
}

func (a *app) jobRunCommand() *cobra.Command {
	var f jobFlags
	cmd := &cobra.Command{
		Use:   "run [flags] -- PROGRAM [ARGUMENT]...",
		Short: "Run one program in a fresh directory and collect what it leaves",
		Long: `Runs one program, or a script, in a fresh directory of an environment: that of the
session that --session names, or of a temporary one. The directory is gone
afterwards, and so is whatever the program has started. What it left, its input
files and the script aside, is saved below the directory that --out names, which is
made, and tried, before the program starts. What cannot be saved there afterwards is
put into a directory of its own, which is named then.

With --cwd the program runs in the workspace instead: nothing is removed there, and
only what --collect names is collected.

The program's standard output and error are printed, and its exit code is that of
this command: 128 and the signal's number where one ended it, 124 where it was
ended at its time limit. What Caisson itself has to say begins with "caisson: ",
on stderr; "caisson exit-codes" tells its own codes.`,
		Example: `  caisson job run -- uname -a
  caisson job run --profile isolated --script plot.py --interpreter python3 --input data.csv=today.csv --out plots
  caisson job run --timeout 30s --memory 512m --collect '*.o' --input main.c=main.c -- cc -c main.c
  sort -u names | caisson job run --stdin -- wc -l`,
		Args: cobra.ArbitraryArgs, // none with --script; request checks
		RunE: func(cmd *cobra.Command, argv []string) error {
			r, err := f.request(cmd, argv)
			if err == nil {
				err = f.prepareOut()
			}
			if err != nil {
				return err
			}
			return a.withServices(cmd, func(ctx context.Context, s rpc.Services) error {
				return a.runJob(ctx, cmd, s, f, r)
			})
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false) // what follows the program is the program's
	flags.StringVarP(&f.at.profile, "profile", "p", "", "`profile` of the session (default: the configured one)")
	flags.StringVarP(&f.at.session, "session", "s", "", "run in this session and keep it: its `id`")
	flags.StringVarP(&f.at.workspace, "workspace", "w", ".", "`folder` of a new session; empty: a session without one")
	flags.StringVar(&f.at.mode, "mode", "", "permission `mode`: read_only, standard, unconfined (default: the profile's)")
	flags.StringVar(&f.script, "script", "", "run the script in this `file`; needs --interpreter")
	flags.StringVar(&f.interpreter, "interpreter", "", "`program` that runs the script, such as python3")
	flags.StringArrayVar(&f.inputs, "input", nil, "put a file of this machine into the directory: `path=file` (repeatable)")
	flags.BoolVar(&f.stdin, "stdin", false, "hand standard input on to the program")
	flags.StringArrayVar(&f.env, "env", nil, "variable of the program: `NAME=value`, or NAME for this machine's (repeatable)")
	flags.StringVar(&f.cwd, "cwd", "", "run in this `directory` of the workspace, which stays as it is then")
	flags.DurationVar(&f.at.timeout, "timeout", 0, "end the program after this `time` (default: the profile's)")
	flags.DurationVar(&f.cpuTime, "cpu-time", 0, "`time` of the processor that each of its processes may use")
	flags.StringVar(&f.memory, "memory", "", "memory that each of its processes may have: a `size` such as 512m")
	flags.Int64Var(&f.at.maxOutput, "max-output-bytes", 0, "most `bytes` of output that are returned (default: the profile's)")
	flags.StringArrayVar(&f.collect, "collect", nil, "collect only what this `glob` matches, relative to the directory (repeatable)")
	flags.StringVarP(&f.output, "out", "o", "", "save what was collected below this `directory`; what is there already is replaced")
	flags.BoolVar(&f.at.json, "json", false, "print the whole result as JSON, in the shape of job/run, and not the output itself")
	completeFlag(cmd, "profile", a.profileNames)
	completeFlag(cmd, "session", a.sessionIDs)
	completeFlag(cmd, "mode", oneOf("read_only", "standard", "unconfined"))
	return cmd
}

// request makes the job out of the command line.
func (f jobFlags) request(cmd *cobra.Command, argv []string) (r session.JobRequest, err error) {
	mode := tool.Mode(f.at.mode)
	switch {
	case (len(argv) == 0) == (f.script == ""):
		return r, usagef("a job is either a program with its arguments, behind \"--\", or a --script")
	case (f.script == "") != (f.interpreter == ""):
		return r, usagef("--script and --interpreter belong together")
	case mode != "" && !mode.Valid():
		return r, usagef("the mode %q is none of read_only, standard, unconfined", mode)
	case f.at.timeout < 0 || f.at.maxOutput < 0 || f.cpuTime < 0:
		return r, usagef("limits cannot be negative")
	}
	r.Job = backends.JobRequest{Argv: argv, CWD: f.cwd, Mode: mode, Collect: f.collect, Environment: map[string]string{}}
	r.Constraints = session.Constraints{Timeout: f.at.timeout, MaxOutputBytes: f.at.maxOutput, CPUTime: f.cpuTime}
	if f.memory != "" {
		if r.Constraints.Memory, err = profile.ParseSize(f.memory); err != nil || r.Constraints.Memory <= 0 {
			return r, usagef("--memory %q is no size above 0, such as 512m", f.memory)
		}
	}
	if f.script != "" {
		source, err := os.ReadFile(f.script)
		if err != nil {
			return r, usagef("the script cannot be read: %w", err)
		}
		r.Job.Script = &backends.JobScript{Interpreter: f.interpreter, Source: string(source)}
	}
	for _, in := range f.inputs {
		path, file, ok := strings.Cut(in, "=")
		if !ok {
			return r, usagef("--input %q is not path=file", in)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return r, usagef("the input %s cannot be read: %w", path, err)
		}
		r.Job.Inputs = append(r.Job.Inputs, backends.JobInput{Path: path, Data: data})
	}
	for _, variable := range f.env {
		name, value, ok := strings.Cut(variable, "=")
		if !ok {
			if value, ok = os.LookupEnv(name); !ok {
				return r, usagef("--env %s: this machine has no such variable", name)
			}
		}
		r.Job.Environment[name] = value
	}
	if f.stdin {
		r.Job.Stdin, err = io.ReadAll(io.LimitReader(cmd.InOrStdin(), tool.MaxJobBytes+1))
		if err != nil {
			return r, fmt.Errorf("standard input cannot be read: %w", err)
		}
	}
	return r, r.Job.Check()
}

// runJob opens the session, runs the job and lets a temporary session go.
func (a *app) runJob(ctx context.Context, cmd *cobra.Command, s rpc.Services, f jobFlags, r session.JobRequest) error {
	open, err := f.at.open(ctx, cmd, s.Sessions)
	if err != nil {
		return err
	}
	return a.inSession(ctx, s.Sessions, open, f.at.session != "", func(id string) error {
		r.SessionID, r.Confirm = id, a.confirm()
		result, err := s.Sessions.RunJob(ctx, r)
		if err != nil {
			return err
		}
		return a.handOver(ctx, s, f, result)
	})
}

// handOver saves and prints what a job gave. Its exit code is told whatever becomes of
// that: the job will not run again. For that reason it is saved first, also after an
// interrupt: the output may go to a pager, which takes its time, and where Ctrl-C is meant
// for that.
func (a *app) handOver(ctx context.Context, s rpc.Services, f jobFlags, r session.JobResult) error {
	var err error
	if f.output != "" {
		saving, cancel := outlast(ctx, saveGrace)
		err = save(saving, s, f.output, r.Artifacts)
		cancel()
	}
	perr := a.printJob(f, r)
	if perr != nil && !errors.Is(perr, syscall.EPIPE) { // who reads no further wants no more
		perr = fmt.Errorf("its output cannot be printed: %w%s", perr, keepOutput(r))
	}
	err = errors.Join(err, perr)
	code := jobExitCode(r)
	switch {
	case err != nil:
		return exitError{code: cmp.Or(code, exitFailed), err: fmt.Errorf("the program ended with exit code %d; %w", code, err)}
	case code != exitOK:
		return exitError{code: code}
	}
	return nil
}

// printJob prints the output of the program where it belongs, and what else there
// is to say.
func (a *app) printJob(f jobFlags, r session.JobResult) error {
	if f.at.json {
		return a.printJSON(rpc.JobData(r, protocol.EncodingUTF8))
	}
	_, err := a.out.Write(r.Stdout)
	_, eerr := a.errs.Write(r.Stderr)
	if err = errors.Join(err, eerr); err != nil {
		return err
	}
	if r.TimedOut {
		fmt.Fprintln(a.errs, "caisson: the program was ended at its time limit")
	}
	if r.Truncated {
		fmt.Fprintln(a.errs, "caisson: the output was longer than is shown; --max-output-bytes shows more, up to the profile's limit")
	}
	if n := len(r.Artifacts); n > 0 && f.output == "" {
		fmt.Fprintf(a.errs, "caisson: the program left %s, which --out saves\n", counted(n, "file"))
	}
	if r.FilesDropped > 0 {
		fmt.Fprintf(a.errs, "caisson: %s more could not be collected: too many, too large, or no room\n", counted(r.FilesDropped, "file"))
	}
	return nil
}

// jobExitCode is the exit code that a job's end means.
func jobExitCode(r session.JobResult) int {
	const ended, signalled = 124, 128 // as with timeout(1) and shells
	switch {
	case r.TimedOut:
		return ended
	case r.ExitCode >= 0:
		return r.ExitCode
	default:
		return signalled + signalNumber(r.Signal)
	}
}

// signalNumber is the number that a signal has on Linux, where jobs run; 0 for
// one that is rare.
func signalNumber(name string) int {
	return map[string]int{
		"SIGHUP": 1, "SIGINT": 2, "SIGQUIT": 3, "SIGILL": 4, "SIGTRAP": 5, "SIGABRT": 6, "SIGBUS": 7, "SIGFPE": 8,
		"SIGKILL": 9, "SIGUSR1": 10, "SIGSEGV": 11, "SIGUSR2": 12, "SIGPIPE": 13, "SIGALRM": 14, "SIGTERM": 15,
		"SIGXCPU": 24, "SIGXFSZ": 25, "SIGSYS": 31,
	}[name]
}
