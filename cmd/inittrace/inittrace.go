// Package inittrace lets tests bound what the initialisation of a program's packages
// costs. No command can avoid that: it comes before main.
package inittrace

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// Package is what the initialisation of one package took.
type Package struct {
	Name           string
	Bytes, Objects int // allocated
}

// Budget is what all packages of a program may allocate. The time is in proportion,
// and different on every machine.
type Budget struct{ Bytes, Objects int }

// Run runs the command, with the runtime's trace of initialisation (GODEBUG, see
// package runtime) on its stderr, and returns what that tells.
func Run(t *testing.T, cmd *exec.Cmd) []Package {
	t.Helper()
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, stderr.Bytes())
	}
	var all []Package
	for line := range bytes.Lines(stderr.Bytes()) {
		if !bytes.HasPrefix(line, []byte("init ")) {
			continue // the program has its say there too
		}
		var p Package
		var at, clock float64
		// "init NAME @AT ms, CLOCK ms clock, SIZE bytes, OBJECTS allocs"
		if _, err := fmt.Sscanf(string(line), "init %s @%f ms, %f ms clock, %d bytes, %d allocs", &p.Name, &at, &clock, &p.Bytes, &p.Objects); err != nil {
			t.Fatalf("the line %q of the trace: %v", line, err)
		}
		all = append(all, p)
	}
	return all
}

// Check fails the test when the packages, of which there must be atLeast so many, take
// more than the budget.
func Check(t *testing.T, all []Package, atLeast int, most Budget) {
	t.Helper()
	var sum Budget
	for _, p := range all {
		sum.Bytes += p.Bytes
		sum.Objects += p.Objects
	}
	t.Logf("%d packages allocate %d bytes in %d objects", len(all), sum.Bytes, sum.Objects)
	if len(all) < atLeast || sum.Bytes > most.Bytes || sum.Objects > most.Objects {
		t.Errorf("the initialisation of %d packages allocates %d bytes in %d objects, want at most %d and %d", len(all), sum.Bytes, sum.Objects, most.Bytes, most.Objects)
	}
}
