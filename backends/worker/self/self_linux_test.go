package self

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// The test binary is also a program that was replaced after its start.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "again" {
		os.Stdout.WriteString("the same, called " + os.Args[0])
		return
	}
	if len(os.Args) == 2 && os.Args[1] == "replaced" {
		replaced()
		return
	}
	goleak.VerifyTestMain(m)
}

// replaced puts something else in the place of this program, starts itself, and does so
// once more after its file was removed.
func replaced() {
	for _, change := range []func(string) error{
		func(file string) error {
			if err := os.WriteFile(file+".new", []byte("#!/bin/sh\necho another release\n"), 0o755); err != nil {
				return err
			}
			return os.Rename(file+".new", file)
		},
		os.Remove,
	} {
		file, err := os.Executable()
		if err == nil {
			err = change(file)
		}
		var out []byte
		if err == nil {
			var path string
			path, err = Path()
			cmd := exec.Command(path, "again")
			cmd.Args[0] = Name(path)
			if err == nil {
				out, err = cmd.CombinedOutput()
			}
		}
		if err != nil {
			out = append(out, err.Error()...)
		}
		os.Stdout.WriteString(string(out) + "\n")
	}
}

// A program that is replaced or removed while it runs starts itself and nothing else.
func TestReplaced(t *testing.T) {
	file, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "caisson")
	if err := os.WriteFile(program, data, 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(program, "replaced").CombinedOutput()
	want := strings.Repeat("the same, called "+program+"\n", 2)
	if err != nil || string(out) != want {
		t.Errorf("it started %q, %v; want %q", out, err, want)
	}
}
