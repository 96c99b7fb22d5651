package docker

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/docker/dockertest"
	"github.com/caisson-dev/caisson/backends/tool"
)

// The floor under BenchmarkOpen: what the docker command takes to run true.
func BenchmarkDockerRun(b *testing.B) {
	image := dockertest.UseShell(b)
	for b.Loop() {
		dockertest.Docker(b, "run", "--rm", "--network", "none", image, "true")
	}
}

// A session from nothing to ready, the worker being on the daemon already.
func BenchmarkOpen(b *testing.B) {
	image := dockertest.UseShell(b)
	for _, user := range []string{"root", dockertest.UserName} {
		b.Run(user, func(b *testing.B) {
			backend := newBackend(b, far(b))
			opened(b, backend, newBinding(b, backend, image))
			for b.Loop() {
				binding := newBinding(b, backend, image)
				binding.Profile.User = user
				env := opened(b, backend, binding)
				b.StopTimer()
				if err := env.Detach(b.Context()); err != nil {
					b.Fatal(err)
				}
				if err := backend.Remove(b.Context(), binding); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// Calls in a session, with the socket that both sides see and without.
func BenchmarkCall(b *testing.B) {
	image := dockertest.UseShell(b)
	for _, shared := range []bool{true, false} {
		backend := newBackend(b, far(b))
		binding := newBinding(b, backend, image)
		name := "shared socket"
		if !shared {
			name, binding.RuntimeDir = "through the engine", ""
		}
		env := opened(b, backend, binding)
		call(b, env, "write_file", map[string]any{"path": "f", "content": strings.Repeat("0123456789abcde\n", 128)})
		for _, c := range []struct {
			tool      string
			arguments map[string]any
		}{
			{"read_file", map[string]any{"path": "f"}},
			{"bash", map[string]any{"command": "true"}},
		} {
			b.Run(name+"/"+c.tool, func(b *testing.B) {
				for b.Loop() {
					call(b, env, c.tool, c.arguments)
				}
			})
		}
	}
}

// opened is the environment of a binding, detached with the test.
func opened(t testing.TB, b *Backend, binding backends.Binding) backends.Environment {
	t.Helper()
	if binding.Secrets.Token == "" {
		binding.Secrets.Token = b.random() + b.random()
	}
	env, err := b.Open(t.Context(), binding, nil)
	if err != nil {
		t.Fatalf("%v (%s)", err, tool.HintOf(err))
	}
	t.Cleanup(func() {
		if err := env.Detach(testContext(t)); err != nil {
			t.Error(err)
		}
	})
	return env
}

// call runs a tool, which must succeed.
func call(t testing.TB, env backends.Environment, name string, arguments map[string]any) tool.Result {
	t.Helper()
	raw := must(json.Marshal(arguments))(t)
	result, err := env.Call(t.Context(), tool.Request{ID: name, Name: name, Arguments: raw})
	if err != nil {
		t.Fatalf("%s: %v (%s)", name, err, tool.HintOf(err))
	}
	if result.IsError {
		t.Fatalf("%s: %+v", name, result.Content)
	}
	return result
}
