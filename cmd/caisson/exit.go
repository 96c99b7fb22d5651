package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/backends/tool"
)

// The exit codes. [exitCodes] is the table that users see.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitIdle        = 3
	exitNegative    = 4
	exitConfig      = 5
	exitUnavailable = 6
	exitUnknown     = 7
	exitInterrupted = 130
)

// exitCodes are all exit codes with their meaning.
func exitCodes() []struct {
	code    int
	meaning string
} {
	return []struct {
		code    int
		meaning string
	}{
		{exitOK, "done. A command that \"call bash\" ran may have failed: its own exit code is in the result. job run: the exit code is the program's"},
		{exitFailed, "it failed; the reason is on stderr. serve: the client ended without shutdown. adapter check: a clause is broken"},
		{exitUsage, "the command line is wrong. serve: the input is not the editor protocol"},
		{exitIdle, "worker: nobody was connected for its lifetime"},
		{exitNegative, "a check failed (doctor, profile check), or the tool's result is an error (call)"},
		{exitConfig, "the configuration file is invalid; stderr names file, line and column"},
		{exitUnavailable, "no such session or profile, or it is busy, unreachable or lost"},
		{exitUnknown, "the outcome is not known: it may have happened. Look before you try again"},
		{exitInterrupted, "ended by a signal"},
	}
}

// usageError is a command line that cannot be understood.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// exitError ends the program with a code of its own. Without an error nothing
// more is said: the command has said it.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e exitError) Unwrap() error { return e.err }

// also is err, and another one that is to be told with it; the exit code stays err's.
func also(err, other error) error {
	var exit exitError
	if errors.As(err, &exit) {
		exit.err = errors.Join(exit.err, other)
		return exit
	}
	return errors.Join(err, other)
}

// exitCode is the code that err means, for a command that ran under ctx.
func exitCode(ctx context.Context, err error) int {
	var exit exitError
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &usage):
		return exitUsage
	case ctx.Err() != nil:
		return exitInterrupted
	}
	switch tool.KindOf(err) {
	case tool.InvalidParams:
		return exitUsage
	case tool.ConfigInvalid:
		return exitConfig
	case tool.SessionNotFound, tool.SessionBusy, tool.ProfileNotFound, tool.BackendUnavailable,
		tool.ProtocolMismatch, tool.EnvironmentLost, tool.Overloaded:
		return exitUnavailable
	case tool.OutcomeUnknown:
		return exitUnknown
	default:
		return exitFailed
	}
}

func exitCodesTopic() *cobra.Command {
	var b strings.Builder
	b.WriteString("What the exit codes of caisson mean:\n\n")
	for _, c := range exitCodes() {
		fmt.Fprintf(&b, "  %3d  %s\n", c.code, c.meaning)
	}
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: b.String()}
}
