package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A service whose program was replaced in place goes on as one release: its workers and
// its WebAssembly engine are of its own build, whatever lies at its path, or nothing.
func testUpdatedInPlace(t *testing.T) {
	p := newPlace(t, members{})
	config, err := json.Marshal(members{"execution_environments": members{
		"overrides": members{"plugins.*": "pure"},
		"profiles":  members{"pure": members{"backend": "wasm", "preopens": []string{"/::${workspaceFolder}"}}},
	}})
	if err == nil {
		err = os.WriteFile(p.config(), config, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	p.plugin()
	users := p.program
	p.program = filepath.Join(p.home, "caisson")
	copyFile(t, users, p.program, 0o755)
	s := p.serve()
	// What puts things right at the test's end is not what is replaced here.
	updated := p.program
	p.program = users
	for name, change := range map[string]func() error{
		"replaced": func() error {
			next := updated + ".new"
			return errors.Join(os.WriteFile(next, []byte("#!/bin/sh\necho another release >&2\nexit 9\n"), 0o755), os.Rename(next, updated))
		},
		"removed": func() error { return os.Remove(updated) },
	} {
		if err := change(); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		w := s.open("", name)
		if got := w.sh("echo here"); got != "here\n" {
			t.Errorf("%s: the shell says %q", name, got)
		}
		w.call("write_file", members{"path": "poem.txt", "content": "one two\n"})
		w.call("word_count", members{"path": "poem.txt", "out": "counts.txt"})
		if got := w.text("counts.txt"); !strings.HasPrefix(got, "2 words\n") {
			t.Errorf("%s: the plugin's file holds %q", name, got)
		}
	}
}
