// Package rlimit starts a program whose processes are limited one by one. The
// limits must be there before the program's first instruction and must not touch
// the one who starts it, and Go can set none between fork and exec: so this
// program is started first, as "caisson limit", limits itself and becomes the
// other one.
package rlimit

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/caisson-dev/caisson/backends/worker/self"
)

// Command is the word with which this program's arguments begin, and is followed
// by those of [Main].
const Command = "limit"

// Limits bound each process of a program. The zero value limits nothing.
type Limits struct {
	// CPUTime is the processor's time, rounded up to seconds: the process gets
	// SIGXCPU then, and SIGKILL a second later. 0 is no limit.
	CPUTime time.Duration
	// Memory bounds what it may write of its own, in bytes: heap, anonymous
	// mappings and thread stacks, not what is only reserved or shared. An
	// allocation beyond it fails. 0 is no limit. Unsupported where the system keeps
	// no such limit, which is everywhere but on Linux.
	Memory int64
}

// Wrap is the path and the argument list with which the program that they name
// is started within l. The program that calls it must call [Main] first of all
// when its arguments begin with [Command].
func (l Limits) Wrap(path string, argv []string) (string, []string, error) {
	if err := l.supported(); err != nil {
		return "", nil, err
	}
	program, err := self.Path()
	if err != nil {
		return "", nil, err
	}
	args := []string{"caisson", Command}
	if l.CPUTime > 0 {
		args = append(args, "--cpu-time="+l.CPUTime.String())
	}
	if l.Memory > 0 {
		args = append(args, fmt.Sprintf("--memory=%d", l.Memory))
	}
	return program, append(append(args, "--", path), argv...), nil
}

// The exit codes of a program that could not be started, as shells have them.
const (
	exitUsage  = 2
	exitFailed = 126
)

// Main is "caisson limit": it limits this process and becomes the program that
// args name, behind the flags: its path, and its argument list from its own name
// on. It returns the exit code when that cannot be.
func Main(args []string) int { return main(args, os.Stderr) }

func main(args []string, errs io.Writer) int {
	flags := flag.NewFlagSet("caisson "+Command, flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.Usage = func() {
		fmt.Fprintf(errs, "Usage: caisson %s [flags] -- PATH NAME [ARGUMENT]...\n", Command)
		flags.PrintDefaults()
	}
	var l Limits
	flags.DurationVar(&l.CPUTime, "cpu-time", 0, "`time` of the processor that each process may use")
	flags.Int64Var(&l.Memory, "memory", 0, "`bytes` that each process may have of its own")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return exitUsage
	}
	if flags.NArg() < 2 || l.CPUTime < 0 || l.Memory < 0 {
		flags.Usage()
		return exitUsage
	}
	err := l.become(flags.Arg(0), flags.Args()[1:])
	fmt.Fprintf(errs, "caisson: start %s: %v\n", flags.Arg(0), err)
	return exitFailed
}
