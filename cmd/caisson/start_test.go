package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const (
	// maxInit bounds what the initialisation of all packages allocates. Its time, of
	// which a start may take 5 ms, is in proportion, and different on every machine.
	maxInitBytes, maxInitObjects = 850_000, 6_500
	// maxPackage bounds that of one package: a few regular expressions.
	maxPackageObjects = 320
)

// costly are packages whose initialisation costs more, and what they are here for.
var costly = map[string]string{
	"github.com/distribution/reference":   "the engine's client parses names of images",
	"github.com/opencontainers/go-digest": "the engine's client, too",
}

// A package whose initialisation costs much slows every start of the program, the
// worker's in an environment included: no command can avoid it.
func TestInitialisationCost(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), filepath.Join(programDir, "caisson"), "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	packages, bytesAll, objectsAll := 0, 0, 0
	for line := range bytes.Lines(stderr.Bytes()) {
		var name string
		var at, clock float64
		var size, objects int
		// "init NAME @AT ms, CLOCK ms clock, SIZE bytes, OBJECTS allocs"
		if _, err := fmt.Sscanf(string(line), "init %s @%f ms, %f ms clock, %d bytes, %d allocs", &name, &at, &clock, &size, &objects); err != nil {
			t.Fatalf("the line %q of the trace: %v", line, err)
		}
		packages++
		bytesAll += size
		objectsAll += objects
		if objects > maxPackageObjects && costly[name] == "" {
			t.Errorf("the initialisation of %s allocates %d objects, %d bytes: do it when it is needed, or leave the package", name, objects, size)
		}
	}
	t.Logf("%d packages allocate %d bytes in %d objects", packages, bytesAll, objectsAll)
	if packages < 50 || bytesAll > maxInitBytes || objectsAll > maxInitObjects {
		t.Errorf("the initialisation of %d packages allocates %d bytes in %d objects, want at most %d and %d", packages, bytesAll, objectsAll, maxInitBytes, maxInitObjects)
	}
}
