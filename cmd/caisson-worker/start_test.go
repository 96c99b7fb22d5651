package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

const (
	// maxInit bounds what the initialisation of all packages allocates. The worker
	// starts in a container, at the far end of a slow line, beside a prompt.
	maxInitBytes, maxInitObjects = 90_000, 700
)

// TestInitialisationCost looks at this test, which has the worker's packages and
// those of testing.
func TestInitialisationCost(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^$")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	packages, bytesAll, objectsAll := 0, 0, 0
	for line := range bytes.Lines(stderr.Bytes()) {
		if !bytes.HasPrefix(line, []byte("init ")) {
			continue // testing has its say there too
		}
		var name string
		var at, clock float64
		var size, objects int
		if _, err := fmt.Sscanf(string(line), "init %s @%f ms, %f ms clock, %d bytes, %d allocs", &name, &at, &clock, &size, &objects); err != nil {
			t.Fatalf("the line %q of the trace: %v", line, err)
		}
		packages++
		bytesAll += size
		objectsAll += objects
	}
	t.Logf("%d packages allocate %d bytes in %d objects", packages, bytesAll, objectsAll)
	if packages < 20 || bytesAll > maxInitBytes || objectsAll > maxInitObjects {
		t.Errorf("the initialisation of %d packages allocates %d bytes in %d objects, want at most %d and %d", packages, bytesAll, objectsAll, maxInitBytes, maxInitObjects)
	}
}
