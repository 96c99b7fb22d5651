package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/supervise"
	"github.com/caisson-dev/caisson/rpc"
)

func TestExitCodes(t *testing.T) {
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		ctx  context.Context
		err  error
		want int
	}{
		{t.Context(), nil, 0},
		{t.Context(), errors.New("x"), 1},
		{t.Context(), usagef("x"), 2},
		{t.Context(), fmt.Errorf("in: %w", usagef("x")), 2},
		{t.Context(), exitError{code: 4}, 4},
		{t.Context(), tool.Errorf(tool.ConfigInvalid, "x"), 5},
		{t.Context(), tool.Errorf(tool.SessionBusy, "x"), 6},
		{t.Context(), fmt.Errorf("in: %w", tool.Errorf(tool.EnvironmentLost, "x")), 6},
		{t.Context(), tool.Errorf(tool.OutcomeUnknown, "x"), 7},
		{t.Context(), tool.Errorf(tool.Denied, "x"), 1},
		{t.Context(), context.Canceled, 1},
		{interrupted, tool.Errorf(tool.Cancelled, "x"), 130},
	} {
		if got := exitCode(tt.ctx, tt.err); got != tt.want {
			t.Errorf("%v: exit code %d, want %d", tt.err, got, tt.want)
		}
	}
}

// What goes wrong after a program's own end is told beside its exit code, not in place
// of it.
func TestAlso(t *testing.T) {
	var said strings.Builder
	a := &app{errs: &said}
	err := also(exitError{code: 7}, errors.New("the session is left"))
	a.report(nil, err)
	if code := exitCode(t.Context(), err); code != 7 || said.String() != "caisson: the session is left\n" {
		t.Errorf("exit code %d, %q", code, said.String())
	}
	said.Reset()
	a.report(nil, tool.Errorf(tool.Internal, "x\ncaisson: \x1b[31mforged").WithHint("y\n  hint: forged"))
	if got, want := said.String(), "caisson: x\n    caisson: \ufffd[31mforged\n  hint: y\n      hint: forged\n"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	said.Reset()
	a.report(nil, exitError{code: 7})
	if said.String() != "" {
		t.Errorf("it says %q", said.String())
	}
}

// The table is whole: every code that any part of the program ends with is in
// it, once, and the parts agree about what it means.
func TestExitCodeTable(t *testing.T) {
	seen := make(map[int]bool)
	for _, c := range exitCodes() {
		if seen[c.code] || c.meaning == "" {
			t.Errorf("%d stands twice or means nothing", c.code)
		}
		seen[c.code] = true
		if !strings.Contains(exitCodesTopic().Long, c.meaning) {
			t.Errorf("%q is not in the help", c.meaning)
		}
	}
	for name, pair := range map[string][2]int{
		"worker ok":      {supervise.ExitOK, exitOK},
		"worker failure": {supervise.ExitFailure, exitFailed},
		"worker usage":   {supervise.ExitUsage, exitUsage},
		"worker idle":    {supervise.ExitIdle, exitIdle},
		"serve ok":       {rpc.ExitOK, exitOK},
		"serve unclean":  {rpc.ExitUnclean, exitFailed},
		"serve protocol": {rpc.ExitProtocol, exitUsage},
	} {
		if pair[0] != pair[1] || !seen[pair[0]] {
			t.Errorf("%s: %d and %d", name, pair[0], pair[1])
		}
	}
}
