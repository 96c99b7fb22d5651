package wasm

import (
	"testing"
)

func TestRunModule(t *testing.T) {
	e := open(t, binding(t, pure(t, "")))
	r := request(t, "echo")
	r.Stdin = []byte(`{"action":"list"}`)
	out, err := e.RunModule(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%q %q %d %d %v", out.Stdout, out.Stderr, out.ExitCode, out.FuelRemaining, out.Duration)
}
