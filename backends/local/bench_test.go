//go:build linux

package local

import (
	"context"
	"crypto/rand"
	"os/exec"
	"testing"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// benchEnvironment opens an environment whose worker runs.
func benchEnvironment(b *testing.B) backends.Environment {
	b.Helper()
	at := binding(b)
	env, err := New(Options{}).Open(b.Context(), at, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		ctx := context.WithoutCancel(b.Context())
		if err := env.Shutdown(ctx); err != nil {
			b.Error(err)
		}
	})
	if _, err := env.Call(b.Context(), bashTrue()); err != nil {
		b.Fatal(err)
	}
	return env
}

func bashTrue() tool.Request {
	return tool.Request{ID: "c", Name: "bash", Arguments: []byte(`{"command":"true"}`), Actor: tool.Actor{ID: "s1", Kind: tool.ActorMain}}
}

// The floor of the next two.
func BenchmarkForkExec(b *testing.B) {
	for b.Loop() {
		if err := exec.CommandContext(b.Context(), "/bin/bash", "-c", "true").Run(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBashTrue(b *testing.B) {
	env := benchEnvironment(b)
	for b.Loop() {
		if _, err := env.Call(b.Context(), bashTrue()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadFile(b *testing.B) {
	env := benchEnvironment(b)
	r := tool.Request{ID: "c", Name: "write_file", Arguments: []byte(`{"path":"f","content":"0123456789"}`), Actor: tool.Actor{ID: "s1", Kind: tool.ActorMain}}
	if _, err := env.Call(b.Context(), r); err != nil {
		b.Fatal(err)
	}
	r.Name, r.Arguments = "read_file", []byte(`{"path":"f"}`)
	for b.Loop() {
		if _, err := env.Call(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}

// From the request to the event of its end.
func BenchmarkProcess(b *testing.B) {
	env := benchEnvironment(b)
	s := env.Events().Subscribe()
	defer s.Close()
	for b.Loop() {
		p, err := env.Processes().Start(b.Context(), tool.StartRequest{OperationID: rand.Text(), Argv: []string{"/bin/true"}, Actor: "s1"})
		if err != nil {
			b.Fatal(err)
		}
		for {
			e, err := s.Next(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			if e.Process != nil && e.Process.Process.ID == p.ID && e.Process.Process.Status.Terminal() {
				break
			}
		}
	}
}
