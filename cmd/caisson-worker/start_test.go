package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/caisson-dev/caisson/cmd/inittrace"
)

// The worker starts in a container, at the far end of a slow line, beside a prompt.
var initBudget = inittrace.Budget{Bytes: 90_000, Objects: 700}

// TestInitialisationCost looks at this test, which has the worker's packages and
// those of testing.
func TestInitialisationCost(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	inittrace.Check(t, inittrace.Run(t, exec.CommandContext(t.Context(), program, "-test.run=^$")), 20, initBudget)
}
