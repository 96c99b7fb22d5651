package docker

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/docker/dockertest"
	"github.com/caisson-dev/caisson/backends/tool"
)

// variant is a program of its own content, so that its volume is no other
// test's.
func variant(t *testing.T, tag string) string {
	t.Helper()
	program := must(os.ReadFile(echo(t)))(t)
	path := filepath.Join(t.TempDir(), "caisson")
	// What follows the program in its file does not change what it does.
	if err := os.WriteFile(path, append(program, tag...), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// content reads the worker out of a container.
func workerIn(t *testing.T, e *engine, container string, f programFile) error {
	t.Helper()
	archive := must(e.get(t.Context(), container, workerPath))(t)
	defer archive.Close()
	return f.check(archive)
}

func TestWorkerVolumeIsVerified(t *testing.T) {
	tests := []struct {
		name string
		// spoil changes what is in the volume, through a container that has it.
		spoil func(t *testing.T, e *engine, container string)
	}{
		{"another program of the same size", func(t *testing.T, e *engine, container string) {
			archive := must(programFile{Path: echo(t), Size: 1000}.archive())(t)
			defer archive.Close()
			if err := e.put(t.Context(), container, workerDir, archive); err != nil {
				t.Fatal(err)
			}
		}},
		{"torn", func(t *testing.T, e *engine, container string) {
			empty := filepath.Join(t.TempDir(), "empty")
			write(t, empty, "")
			archive := must(programFile{Path: empty, Size: 0}.archive())(t)
			defer archive.Close()
			if err := e.put(t.Context(), container, workerDir, archive); err != nil {
				t.Fatal(err)
			}
		}},
		{"empty", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			program := variant(t, t.Name())
			image := bare(t)
			e := testEngine(t)
			// Somebody makes a volume of the right name with the wrong content.
			other := newBackend(t, program)
			f := must(other.binaries.find(hostArch(t, e)))(t)
			spoiled := newBinding(t, other, image)
			spec := other.workers.helper(spoiled, imageInfo{ID: image}, f, volumePrefix+f.Sum[:32], "")
			id := must(other.create(t.Context(), e, spec))(t)
			if test.spoil != nil {
				test.spoil(t, e, id)
			}
			other.discard(t.Context(), e, id)

			b := newBackend(t, program)
			_, binding := created(t, b, newBinding(t, b, image))
			if err := workerIn(t, e, binding.Environment, f); err != nil {
				t.Errorf("the container got another worker: %v", err)
			}
		})
	}
}

func hostArch(t *testing.T, e *engine) string {
	t.Helper()
	return must(e.hello(t.Context()))(t).Platform.Arch
}

// Many services put the same worker on a daemon at once: each ends up with it.
func TestWorkerVolumeFilledByMany(t *testing.T) {
	program := variant(t, t.Name())
	image := bare(t)
	var wait sync.WaitGroup
	for range 4 {
		b := newBackend(t, program)
		binding := newBinding(t, b, image)
		h, binding, err := b.host(binding)
		if err != nil {
			t.Fatal(err)
		}
		wait.Go(func() {
			if err := h.Create(t.Context(), binding, nil); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
}

// A service that died while it filled the volume does not hold up the next one, whatever
// store either has: a check has none.
func TestWorkerVolumeOfADeadFiller(t *testing.T) {
	program := variant(t, t.Name())
	image := bare(t)
	e := testEngine(t)
	dead, copied := newBackend(t, program), newBackend(t, program)
	dead.owner, copied.owner = deadOwner(t), earlierOwner(t)
	f := must(dead.binaries.find(hostArch(t, e)))(t)
	volume := volumePrefix + f.Sum[:32]
	fill := func(by *Backend) backends.Binding {
		binding := newBinding(t, by, image)
		spec := by.workers.helper(binding, imageInfo{ID: image}, f, volume, fillerName(volume))
		must(by.create(t.Context(), e, spec))(t)
		return binding
	}
	binding := fill(copied)

	// Of another store its process may be one of a copy of this machine, and run there.
	b := newBackend(t, program)
	seen, cancel := context.WithTimeout(t.Context(), 10*pollInterval)
	defer cancel()
	if err := b.workers.waitForFiller(seen, e, "another", volume, time.Now().Add(time.Hour)); err == nil {
		t.Error("the filler of a copy does not hold it up")
	}
	must(e.container(t.Context(), fillerName(volume)))(t)
	if err := b.workers.waitForFiller(t.Context(), e, binding.Store, volume, time.Now().Add(time.Hour)); err != nil {
		t.Error(err)
	}

	fill(dead)
	created(t, b, newBinding(t, b, image))
	if _, err := e.container(t.Context(), fillerName(volume)); err == nil {
		t.Error("the dead filler's container is left")
	}
}

// A volume that is removed after it was verified is noticed, not mounted anew
// and empty.
func TestWorkerVolumeRemovedMeanwhile(t *testing.T) {
	b := newBackend(t, variant(t, t.Name()))
	image := bare(t)
	h, first := created(t, b, newBinding(t, b, image))
	if err := h.Remove(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	f := must(b.binaries.find(hostArch(t, h.engine)))(t)
	dockertest.Docker(t, "volume", "rm", volumePrefix+f.Sum[:32])
	_, second := created(t, b, newBinding(t, b, image))
	if err := workerIn(t, h.engine, second.Environment, f); err != nil {
		t.Error(err)
	}
}

// The same in the moment between the look at it and the container that holds it.
func TestWorkerVolumeReplacedMeanwhile(t *testing.T) {
	b := newBackend(t, variant(t, t.Name()))
	binding := newBinding(t, b, bare(t))
	h, binding, err := b.host(binding)
	if err != nil {
		t.Fatal(err)
	}
	d := must(h.engine.hello(t.Context()))(t)
	image := must(ensureImage(t.Context(), h.engine, d, binding.Profile, nil))(t)
	f := must(b.binaries.find(workerArch(d, image)))(t)
	volume := must(b.workers.ensure(t.Context(), h.engine, d, binding, image, f, nil))(t)
	dockertest.Docker(t, "volume", "rm", volume.Name)
	changed, err := h.start(t.Context(), binding, d, image, &workerVolume{volume, f.Sum}, "", nil)
	if !changed || err == nil {
		t.Errorf("changed is %t, %v", changed, err)
	}
	if got := left(t, binding.Store); len(got) > 0 {
		t.Errorf("left: %q", got)
	}
	if anew := must(h.engine.volume(t.Context(), volume.Name))(t); anew.Labels[labelWorker] != f.Sum || anew.Labels[labelStore] != binding.Store {
		t.Errorf("the daemon made it anew with the labels %v", anew.Labels)
	}
}

// The workers of other builds go when nobody is left who may need them.
func TestWorkerVolumesOfOtherBuilds(t *testing.T) {
	image := bare(t)
	e := testEngine(t)
	put := func(tag string, o owner) (volume string) {
		b := newBackend(t, variant(t, t.Name()+tag))
		b.owner = o
		h, binding := created(t, b, newBinding(t, b, image))
		if err := h.Remove(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
		return volumePrefix + must(b.binaries.find(hostArch(t, e)))(t).Sum[:32]
	}
	elsewhere := deadOwner(t)
	elsewhere.Host = "another-machine"
	far := put("far", elsewhere)
	living := put("living", self())
	dead := put("dead", deadOwner(t))
	current := put("current", self())
	for volume, want := range map[string]bool{far: true, living: true, dead: false, current: true} {
		if _, err := e.volume(t.Context(), volume); (err == nil) != want {
			t.Errorf("%s: there is %t, want %t (far %s, living %s, dead %s)", volume, err == nil, want, far, living, dead)
		}
	}
}

// Environments share one volume, and none can write to it.
func TestWorkerVolumeIsShared(t *testing.T) {
	b := newBackend(t, variant(t, t.Name()))
	image := bare(t)
	h, one := created(t, b, newBinding(t, b, image))
	steps := 0
	two := newBinding(t, b, image)
	if err := h.Create(t.Context(), two, func(step string) {
		if strings.Contains(step, "putting the worker") {
			steps++
		}
	}); err != nil {
		t.Fatal(err)
	}
	if steps > 0 {
		t.Error("the worker was put there twice")
	}
	volumeOf := func(binding backends.Binding) string {
		return dockertest.Docker(t, "inspect", "--format",
			`{{range .Mounts}}{{if eq .Destination "`+workerDir+`"}}{{.Name}} {{.RW}}{{end}}{{end}}`, binding.Environment)
	}
	if a, b := volumeOf(one), volumeOf(two); a != b || !strings.HasSuffix(a, " false") {
		t.Errorf("the volumes are %q and %q", a, b)
	}
}

func TestProgramArchive(t *testing.T) {
	for _, size := range []int{0, 1, 511, 512, 513, 100_000} {
		path := filepath.Join(t.TempDir(), "caisson-linux-any")
		content := bytes.Repeat([]byte("p"), size)
		if err := os.WriteFile(path, content, 0o755); err != nil {
			t.Fatal(err)
		}
		f := must((&binaries{executable: path}).find("any"))(t)
		pack := func(f programFile) []byte {
			archive := must(f.archive())(t)
			defer archive.Close()
			return must(io.ReadAll(archive))(t)
		}
		good := pack(f)
		if err := f.check(bytes.NewReader(good)); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
		if len(good)%512 != 0 {
			t.Errorf("%d bytes: the archive has %d bytes, which is no whole block", size, len(good))
		}
		if size == 0 {
			continue
		}
		changed := bytes.Replace(good, []byte("p"+strings.Repeat("\x00", 3)), []byte("q"+strings.Repeat("\x00", 3)), 1)
		if bytes.Equal(changed, good) {
			changed[512] = 'q'
		}
		if err := f.check(bytes.NewReader(changed)); err == nil {
			t.Errorf("%d bytes: a changed program passed", size)
		}
		if err := f.check(bytes.NewReader(good[:512+size/2])); err == nil {
			t.Errorf("%d bytes: a torn program passed", size)
		}
	}
}

func TestProgramForAnotherCPU(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "caisson"), "own")
	write(t, filepath.Join(dir, "caisson-linux-riscv64"), "other")
	s := &binaries{executable: filepath.Join(dir, "caisson")}
	if f := must(s.find("riscv64"))(t); f.Path != filepath.Join(dir, "caisson-linux-riscv64") || f.Size != 5 {
		t.Errorf("found %+v", f)
	}
	before := must(s.find("riscv64"))(t)
	write(t, filepath.Join(dir, "caisson-linux-riscv64"), "another")
	if after := must(s.find("riscv64"))(t); after.Sum == before.Sum {
		t.Error("the hash of a replaced program was not made anew")
	}
	if _, err := s.find("mips64"); err == nil || !strings.Contains(tool.HintOf(err), "caisson-linux-mips64") {
		t.Errorf("got %v (%s)", err, tool.HintOf(err))
	}
}
