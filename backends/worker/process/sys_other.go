//go:build !linux && !darwin

package process

import (
	"errors"
	"os"
	"runtime"
	"syscall"

	"github.com/caisson-dev/caisson/backends/tool"
)

// unsupported is what starting anything fails with on this system.
func unsupported() error {
	return tool.Errorf(tool.Unsupported, "commands cannot be run on %s", runtime.GOOS).
		WithHint("use a profile whose environment is a Linux container or host")
}

func (p *proc) spawn(spec) (int, error) { return -1, unsupported() }

func childSignals() []os.Signal { return nil }

const (
	marksKnown = false
	halting    = syscall.SIGKILL // nothing runs that it could be sent to
)

func polled(*os.File) (*os.File, error)             { return nil, errors.ErrUnsupported }
func resizeTerminal(*os.File, tool.TTY) error       { return errors.ErrUnsupported }
func peek(int) (bytes, ended bool)                  { return false, false }
func awaitEnd(int, int) error                       { return errors.ErrUnsupported }
func reap(int) (int, string, error)                 { return -1, "", errors.ErrUnsupported }
func signalNumber(string) (syscall.Signal, bool)    { return 0, false }
func signalJob(*os.File, int, syscall.Signal) error { return errors.ErrUnsupported }
func signalOfKey(*os.File, byte) syscall.Signal     { return 0 }
func dropsTyped(*os.File, syscall.Signal) bool      { return false }
func signalGroup(int, syscall.Signal) error         { return errors.ErrUnsupported }
func signalExactly(procInfo, syscall.Signal) error  { return errors.ErrUnsupported }
func mayEnd(int) bool                               { return false }
func taken(int) bool                                { return false }
func resume(procInfo)                               {}
func beReaper() error                               { return nil }
func nextZombie() (pid int, childless bool)         { return 0, true }

// SealDescriptors has nothing to do: there are no commands.
func SealDescriptors() error { return nil }
