package docker

import (
	"bufio"
	"testing"

	"github.com/caisson-dev/caisson/backends/docker/dockertest"
)

// The floor under BenchmarkReady: what the docker command takes to run true.
func BenchmarkDockerRun(b *testing.B) {
	image := dockertest.UseShell(b)
	for b.Loop() {
		dockertest.Docker(b, "run", "--rm", "--network", "none", image, "true")
	}
}

// From nothing to a container whose attach command has answered, the worker
// being on the daemon already.
func BenchmarkReady(b *testing.B) {
	for _, user := range []string{"", dockertest.UserName} {
		b.Run("user="+user, func(b *testing.B) {
			backend := newBackend(b, echo(b))
			image := dockertest.UseShell(b)
			h, first := created(b, backend, newBinding(b, backend, image))
			for b.Loop() {
				binding := newBinding(b, backend, image)
				binding.Profile.User = user
				if err := h.Create(b.Context(), binding, nil); err != nil {
					b.Fatal(err)
				}
				stream := must(h.Dial(b.Context(), binding))(b)
				must(bufio.NewReader(stream).ReadString('\n'))(b)
				b.StopTimer()
				stream.Close()
				if err := h.Remove(b.Context(), binding); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			if err := h.Remove(b.Context(), first); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// One line there and back through the engine.
func BenchmarkEcho(b *testing.B) {
	backend := newBackend(b, echo(b))
	h, binding := created(b, backend, newBinding(b, backend, bare(b)))
	stream := must(h.Dial(b.Context(), binding))(b)
	defer stream.Close()
	r := bufio.NewReader(stream)
	must(r.ReadString('\n'))(b)
	for b.Loop() {
		if _, err := stream.Write([]byte("0123456789012345678901234567890123456789\n")); err != nil {
			b.Fatal(err)
		}
		must(r.ReadString('\n'))(b)
	}
}
