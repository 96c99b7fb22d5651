package main

import (
	"bytes"
	"errors"
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
	doc, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(configDoc)))
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, filepath.FromSlash(configDoc))
	if err := errors.Join(os.MkdirAll(filepath.Dir(copied), 0o755), os.WriteFile(copied, doc, 0o644)); err != nil {
		t.Fatal(err)
	}
	if err := run(dir, false); err != nil {
		t.Fatal(err)
	}
	if err := run(dir, true); err != nil {
		t.Fatalf("fresh files: %v", err)
	}
	for _, name := range []string{configDoc, typesPackage} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		fresh, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, stale(fresh), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := run(dir, true); err == nil || !strings.Contains(err.Error(), name) {
			t.Fatalf("a stale file gives %v, want an error that names %s", err, name)
		}
		if err := os.WriteFile(path, fresh, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// stale is a generated file as it may have been before a change.
func stale(text []byte) []byte {
	return bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("`pids_limit`"), nil), []byte("protocolVersion = "), []byte("protocolVersion = 9"))
}

func TestSplice(t *testing.T) {
	for _, text := range []string{"", "<!-- table a: written by make generate -->\nno end", "<!-- end -->\n"} {
		if _, err := splice([]byte(text), "a", "x"); err == nil {
			t.Errorf("%q has a place for a table", text)
		}
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
