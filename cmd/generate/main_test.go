package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// TestFresh fails when a checked-in file is not what the Go types say.
func TestFresh(t *testing.T) {
	if err := run(root, true); err != nil {
		t.Fatal(err)
	}
}

func TestCheckFindsStaleFiles(t *testing.T) {
	dir := t.TempDir()
	sources := filepath.Join(dir, "rpc", "protocol")
	if err := os.CopyFS(sources, os.DirFS(filepath.Join(root, "rpc", "protocol"))); err != nil {
		t.Fatal(err)
	}
	if err := run(dir, false); err != nil {
		t.Fatal(err)
	}
	if err := run(dir, true); err != nil {
		t.Fatalf("fresh files: %v", err)
	}
	path := filepath.Join(dir, filepath.FromSlash(typesPackage))
	if err := os.WriteFile(path, []byte("export const protocolVersion = 0;\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(dir, true); err == nil || !strings.Contains(err.Error(), typesPackage) {
		t.Fatalf("a stale file gives %v, want an error that names it", err)
	}
}

// TestReproducible guards against the order of maps in the output.
func TestReproducible(t *testing.T) {
	first, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		again, err := generate(root)
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range again {
			if !bytes.Equal(f.content, first[i].content) {
				t.Fatalf("%s differs from one run to the next", f.path)
			}
		}
	}
}

func TestProse(t *testing.T) {
	got := prose("SessionID resumes it, see [ErrorData.Kind].\n", map[string]string{"SessionID": "sessionId"})
	if want := "sessionId resumes it, see ErrorData.Kind."; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}
