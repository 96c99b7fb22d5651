package docker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/docker/dockertest"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// created makes the container of a binding.
func created(t testing.TB, b *Backend, binding backends.Binding) (*host, backends.Binding) {
	t.Helper()
	h, binding, err := b.host(binding)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Create(t.Context(), binding, func(step string) { t.Log(step) }); err != nil {
		t.Fatalf("%v (%s)", err, tool.HintOf(err))
	}
	return h, binding
}

// inspected is what docker inspect says, for what this package does not read.
func inspected(t *testing.T, name string, into any) string {
	t.Helper()
	text := dockertest.Docker(t, "inspect", name)
	if into != nil {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	return text
}

func TestCreateDialRemove(t *testing.T) {
	b := newBackend(t, echo(t))
	binding := newBinding(t, b, bare(t))
	binding.Secrets = backends.Secrets{Token: strings.Repeat("7", 64), Environment: map[string]string{"KEY": "verysecret"}}
	h, binding := created(t, b, binding)

	stream := must(h.Dial(t.Context(), binding))(t)
	defer stream.Close()
	if !wire.Blocks(stream.ReadWriteCloser) {
		t.Error("the stream passes the runtime's poller")
	}
	r := bufio.NewReader(stream)
	if line := must(r.ReadString('\n'))(t); line != stream.Mark+"\n" || len(stream.Mark) < 16 {
		t.Errorf("the first line is %q, want the mark %q", line, stream.Mark)
	}

	// Much more than any buffer on the way, both ways at once.
	const size = 8 << 20
	sent := make(chan error, 1)
	go func() {
		_, err := stream.Write(slices.Repeat([]byte("0123456789abcdef"), size/16))
		if err == nil {
			err = stream.ReadWriteCloser.(interface{ CloseWrite() error }).CloseWrite()
		}
		sent <- err
	}()
	back := must(io.ReadAll(r))(t)
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if want := size + len("end of input\n"); len(back) != want || !strings.HasSuffix(string(back), "end of input\n") {
		t.Errorf("%d bytes came back, want %d", len(back), want)
	}

	text := inspected(t, binding.Environment, nil)
	for _, secret := range []string{binding.Secrets.Token, "verysecret"} {
		if strings.Contains(text, secret) {
			t.Errorf("docker inspect shows %q", secret)
		}
	}
	if err := h.Remove(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	if got := left(t, binding.Store); len(got) > 0 {
		t.Errorf("left: %q", got)
	}
	if entries := must(os.ReadDir(binding.RuntimeDir))(t); len(entries) > 0 {
		t.Errorf("left in the runtime directory: %v", entries)
	}
	if err := h.Remove(t.Context(), binding); err != nil {
		t.Errorf("removing it twice: %v", err)
	}
}

// What is left of an environment whose container somebody has removed goes with it.
func TestRemoveWithoutAContainer(t *testing.T) {
	b := newBackend(t, echo(t))
	h, binding := created(t, b, newBinding(t, b, bare(t)))
	gone := container.RemoveOptions{Force: true} // and not its volumes
	if err := h.engine.api.ContainerRemove(t.Context(), binding.Environment, gone); err != nil {
		t.Fatal(err)
	}
	if got := left(t, binding.Store); len(got) == 0 {
		t.Fatal("the volumes went with the container")
	}
	if err := h.Remove(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	if got := left(t, binding.Store); len(got) > 0 {
		t.Errorf("left: %q", got)
	}
}

func TestDialSaysWhyItFailed(t *testing.T) {
	b := newBackend(t, echo(t))
	binding := newBinding(t, b, bare(t))
	binding.Session = "fails"
	h, binding := created(t, b, binding)
	stream := must(h.Dial(t.Context(), binding))(t)
	defer stream.Close()
	_, err := io.ReadAll(stream)
	if err == nil || !strings.Contains(err.Error(), "exited with 7: it was told to fail") {
		t.Errorf("got %v", err)
	}
}

func TestCreateFailures(t *testing.T) {
	foreign := dockertest.Bare()
	foreign.Arch = "s390x"
	foreignImage := dockertest.Use(t, foreign)
	image := bare(t)
	missing := filepath.Join(t.TempDir(), "missing")

	tests := []struct {
		name   string
		change func(*profile.Profile)
		kind   tool.Kind
		fails  string
		hint   string
	}{
		{"missing image, pull never", func(p *profile.Profile) { p.Image = "caisson-test/none:1" },
			tool.BackendUnavailable, `the image "caisson-test/none:1" is not on the docker daemon`, "docker pull caisson-test/none:1"},
		{"missing image, pull missing", func(p *profile.Profile) { p.Image, p.Pull = "localhost:1/caisson-test/none:1", "missing" },
			tool.BackendUnavailable, `the image "localhost:1/caisson-test/none:1" cannot be pulled`, "docker pull localhost:1/caisson-test/none:1"},
		{"pull always", func(p *profile.Profile) { p.Image, p.Pull = "localhost:1/caisson-test/none:1", "always" },
			tool.BackendUnavailable, "cannot be pulled", "docker pull"},
		{"another CPU", func(p *profile.Profile) { p.Image = foreignImage },
			tool.BackendUnavailable, "is for linux/s390x, and the docker daemon", "get the image for"},
		{"not the wanted platform", func(p *profile.Profile) { p.Platform = "linux/riscv64" },
			tool.BackendUnavailable, `wants linux/riscv64`, "docker pull --platform linux/riscv64"},
		{"no worker for an emulated CPU", func(p *profile.Profile) { p.Image, p.Platform = foreignImage, "linux/s390x" },
			tool.Unsupported, "no worker for linux/s390x", "caisson-linux-s390x"},
		{"a worker that the image lacks", func(p *profile.Profile) { p.Worker = "/opt/worker" },
			tool.BackendUnavailable, "/opt/worker", "the profile's worker"},
		{"a mount that is not there", func(p *profile.Profile) { p.Mounts = []profile.Mount{{Source: missing, Target: "/m"}} },
			tool.BackendUnavailable, "bind source path does not exist", "make the folder there first"},
		{"an unknown runtime", func(p *profile.Profile) { p.Runtime = "no-such-runtime" },
			tool.BackendUnavailable, "no-such-runtime", "docker info lists the runtimes"},
		{"an unknown user", func(p *profile.Profile) { p.User = "nobody-there" },
			tool.ConfigInvalid, `no user "nobody-there"`, "uid:gid"},
		{"allowed hosts", func(p *profile.Profile) { p.AllowedHosts = []string{"example.com"} }, tool.Unsupported, "allowed_hosts", "network"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBackend(t, echo(t))
			binding := newBinding(t, b, image)
			test.change(&binding.Profile)
			binding.WorkspaceFolder = t.TempDir()
			h, binding, err := b.host(binding)
			if err == nil {
				err = h.Create(t.Context(), binding, nil)
			}
			if err == nil || tool.KindOf(err) != test.kind || !strings.Contains(err.Error(), test.fails) {
				t.Errorf("got %v (%s), want %s with %q", err, tool.KindOf(err), test.kind, test.fails)
			}
			if hint := tool.HintOf(err); !strings.Contains(hint, test.hint) {
				t.Errorf("the hint is %q, want %q", hint, test.hint)
			}
			if got := left(t, binding.Store); len(got) > 0 {
				t.Errorf("left: %q", got)
			}
			if entries := must(os.ReadDir(binding.RuntimeDir))(t); len(entries) > 0 {
				t.Errorf("left in the runtime directory: %v", entries)
			}
		})
	}
}

// A creation that is cancelled at any moment leaves nothing.
func TestCreateCancelled(t *testing.T) {
	b := newBackend(t, echo(t))
	image := bare(t)
	begun := time.Now()
	whole := newBinding(t, b, image)
	h, whole := created(t, b, whole)
	took := time.Since(begun)
	if err := h.Remove(t.Context(), whole); err != nil {
		t.Fatal(err)
	}
	const moments = 12
	for i := range moments {
		binding := newBinding(t, b, image)
		ctx, cancel := context.WithTimeout(t.Context(), took*time.Duration(i)/moments)
		err := h.Create(ctx, binding, nil)
		cancel()
		switch {
		case err == nil:
			if err := h.Remove(t.Context(), binding); err != nil {
				t.Fatal(err)
			}
		case !errors.Is(err, context.DeadlineExceeded):
			t.Errorf("after %d/%d of the time: %v", i, moments, err)
		}
		if got := left(t, binding.Store); len(got) > 0 {
			t.Errorf("after %d/%d of the time: left: %q", i, moments, got)
		}
		if entries := must(os.ReadDir(binding.RuntimeDir))(t); len(entries) > 0 {
			t.Errorf("after %d/%d of the time: left in the runtime directory: %v", i, moments, entries)
		}
	}
}

func TestHardening(t *testing.T) {
	b := newBackend(t, echo(t))
	binding := newBinding(t, b, bare(t))
	p := &binding.Profile
	p.ReadOnlyRoot, p.CPUs, p.Memory, p.ShmSize = true, 0.5, 256<<20, 8<<20
	folder := t.TempDir()
	p.Mounts = []profile.Mount{{Source: folder, Target: "/data", ReadOnly: true}}
	_, binding = created(t, b, binding)

	var found []struct {
		Config     struct{ Healthcheck struct{ Test []string } }
		HostConfig struct {
			CapDrop, SecurityOpt                             []string
			Privileged, AutoRemove, ReadonlyRootfs           bool
			NetworkMode                                      string
			PidsLimit, NanoCpus, Memory, MemorySwap, ShmSize int64
			Tmpfs                                            map[string]string
			RestartPolicy                                    struct{ Name string }
		}
		Mounts []struct {
			Destination, Type, Name string
			RW                      bool
		}
	}
	inspected(t, binding.Environment, &found)
	c := found[0].HostConfig
	switch {
	case !slices.Equal(c.CapDrop, []string{"ALL"}), !slices.Contains(c.SecurityOpt, "no-new-privileges"), c.Privileged:
		t.Errorf("capabilities or privileges: %+v", c)
	case !c.AutoRemove, !c.ReadonlyRootfs, c.NetworkMode != "none", c.RestartPolicy.Name != "no":
		t.Errorf("life or network: %+v", c)
	case c.PidsLimit != 512, c.NanoCpus != 5e8, c.Memory != 256<<20, c.MemorySwap != c.Memory, c.ShmSize != 8<<20:
		t.Errorf("limits: %+v", c)
	case c.Tmpfs["/tmp"] != "rw,nosuid,nodev,noexec,mode=1777,size=67108864":
		t.Errorf("/tmp: %q", c.Tmpfs["/tmp"])
	}
	writable := map[string]bool{}
	for _, m := range found[0].Mounts {
		writable[m.Destination] = m.RW
	}
	for target, want := range map[string]bool{workerDir: false, stateDir: true, "/workspace": true, "/data": false} {
		if got, ok := writable[target]; !ok || got != want {
			t.Errorf("%s: mounted %t, writable %t, want writable %t", target, ok, got, want)
		}
	}
}

// What a container holds goes with it whoever removes it: itself at the idle
// limit, or a person.
func TestVolumesGoWithTheContainer(t *testing.T) {
	b := newBackend(t, echo(t))
	binding := newBinding(t, b, bare(t))
	h, binding := created(t, b, binding)
	dockertest.Docker(t, "stop", binding.Environment) // it is removed when its first process ends
	for deadline := time.Now().Add(removalTimeout); len(left(t, binding.Store)) > 0; {
		if time.Now().After(deadline) {
			t.Fatalf("left: %q", left(t, binding.Store))
		}
	}
	err := h.Attach(t.Context(), binding)
	if tool.KindOf(err) != tool.EnvironmentLost || !strings.Contains(err.Error(), binding.Environment) {
		t.Errorf("attaching to it: %v", err)
	}
	if _, err := h.Dial(t.Context(), binding); tool.KindOf(err) != tool.EnvironmentLost {
		t.Errorf("dialling: %v", err)
	}
}

func TestPersistentIsStartedAgain(t *testing.T) {
	b := newBackend(t, echo(t))
	binding := newBinding(t, b, bare(t))
	binding.Profile.Persistent = true
	h, binding := created(t, b, binding)
	dockertest.Docker(t, "stop", binding.Environment)
	// The runtime directory is gone after a restart of the machine.
	if err := os.RemoveAll(binding.RuntimeDir); err != nil {
		t.Fatal(err)
	}
	if err := h.Attach(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	stream := must(h.Dial(t.Context(), binding))(t)
	defer stream.Close()
	if line := must(bufio.NewReader(stream).ReadString('\n'))(t); line != stream.Mark+"\n" {
		t.Errorf("got %q", line)
	}
	dockertest.Docker(t, "pause", binding.Environment)
	if err := h.Attach(t.Context(), binding); err == nil || !strings.Contains(err.Error(), "paused") {
		t.Errorf("attaching to a paused one: %v", err)
	}
	dockertest.Docker(t, "unpause", binding.Environment)
	dockertest.Docker(t, "rm", "--force", "--volumes", binding.Environment)
	if err := h.Attach(t.Context(), binding); tool.KindOf(err) != tool.EnvironmentLost {
		t.Errorf("attaching to a removed one: %v", err)
	}
}

func TestSomebodyElsesContainer(t *testing.T) {
	b := newBackend(t, echo(t))
	image := bare(t)
	binding := newBinding(t, b, image)
	h, binding := created(t, b, binding)
	other := binding
	other.Store = "another-store"
	if err := h.Remove(t.Context(), other); err == nil || !strings.Contains(err.Error(), "somebody else") {
		t.Errorf("removing it: %v", err)
	}
	if err := h.Attach(t.Context(), other); err == nil || !strings.Contains(err.Error(), "somebody else") {
		t.Errorf("attaching to it: %v", err)
	}
	if err := h.Create(t.Context(), other, nil); err == nil || !strings.Contains(err.Error(), "somebody else") {
		t.Errorf("creating it: %v", err)
	}
	if err := h.Attach(t.Context(), binding); err != nil {
		t.Errorf("it was touched: %v", err)
	}
}

// A service that died while it created an environment leaves a container under
// the name; the next one replaces it, and one that lives is not disturbed.
func TestLeftoverOfACreation(t *testing.T) {
	b := newBackend(t, echo(t))
	binding := newBinding(t, b, bare(t))
	h, binding := created(t, b, binding)
	first := must(h.engine.container(t.Context(), binding.Environment))(t)

	living := newBackend(t, echo(t))
	living.owner.PID = os.Getppid()
	living.owner.Start, _ = processStart(living.owner.PID)
	another := &host{backend: living, engine: h.engine}
	if err := another.Create(t.Context(), binding, nil); err == nil || !strings.Contains(err.Error(), "is being made by process") {
		t.Errorf("another service's, which lives: %v", err)
	}
	if err := h.Create(t.Context(), binding, nil); err != nil {
		t.Fatal(err)
	}
	second := must(h.engine.container(t.Context(), binding.Environment))(t)
	if first.ID == second.ID {
		t.Error("the leftover was taken for the environment")
	}
}

// What a service that died had asked for may come into being after the way was
// found clear.
func TestLeftoverThatComesLate(t *testing.T) {
	b := newBackend(t, echo(t))
	binding := newBinding(t, b, bare(t))
	h, binding := created(t, b, binding)
	first := must(h.engine.container(t.Context(), binding.Environment))(t)
	d := must(h.engine.hello(t.Context()))(t)
	second, err := h.make(t.Context(), binding, b.spec(binding, d, h.engine.endpoint, nil, ""))
	if err != nil || second == first.ID {
		t.Fatalf("made %s in the place of %s: %v", second, first.ID, err)
	}
	b.discard(t.Context(), h.engine, second)
}
