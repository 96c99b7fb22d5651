package main

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/caisson-dev/caisson/cmd/inittrace"
)

// A start may take 5 ms before main.
var initBudget = inittrace.Budget{Bytes: 850_000, Objects: 6_500}

// maxPackageObjects bounds what one package allocates: a few regular expressions.
const maxPackageObjects = 320

// costly are packages whose initialisation costs more, and what they are here for.
var costly = map[string]string{
	"github.com/distribution/reference":   "the engine's client parses names of images",
	"github.com/opencontainers/go-digest": "the engine's client, too",
}

func TestInitialisationCost(t *testing.T) {
	all := inittrace.Run(t, exec.CommandContext(t.Context(), filepath.Join(programDir, "caisson"), "version"))
	for _, p := range all {
		if p.Objects > maxPackageObjects && costly[p.Name] == "" {
			t.Errorf("the initialisation of %s allocates %d objects, %d bytes: do it when it is needed, or leave the package", p.Name, p.Objects, p.Bytes)
		}
	}
	inittrace.Check(t, all, 50, initBudget)
}
