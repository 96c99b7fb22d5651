package docker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/docker/docker/api/types/volume"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
)

func TestPrune(t *testing.T) {
	image := bare(t)
	e := testEngine(t)
	living := newBackend(t, echo(t))
	dead := newBackend(t, variant(t, t.Name()))
	dead.owner = deadOwner(t)
	far := newBackend(t, echo(t))
	far.owner = deadOwner(t)
	far.owner.Host = "another-machine"

	store := newBinding(t, living, image).Store
	provision := func(b *Backend, store string) backends.Binding {
		binding := newBinding(t, b, image)
		binding.Store = store
		binding.Profile.Persistent = true
		_, binding = created(t, b, binding)
		return binding
	}
	orphan := provision(dead, store)
	known := provision(dead, store)
	owned := provision(living, store)
	elsewhere := provision(far, store)
	foreign := provision(dead, newBinding(t, living, image).Store)
	// A volume whose container somebody removed by hand.
	lonely := "caisson-test-" + living.random()
	must(e.api.VolumeCreate(t.Context(), volume.CreateOptions{Name: lonely, Labels: dead.labels(kindEnvironment, orphan, nil)}))(t)

	prune := func(o backends.PruneOptions) []string {
		t.Helper()
		o.Store, o.Live = store, map[string]bool{known.Environment: true}
		found := must(living.prune(t.Context(), e, o, time.Now()))(t)
		var names []string
		for _, r := range found {
			if r.Backend != "docker" || r.Reason == "" || r.CreatedAt.IsZero() {
				t.Errorf("an unclear line: %+v", r)
			}
			if r.Kind == "container" || r.ID == lonely {
				names = append(names, fmt.Sprintf("%s %s", r.Kind, r.ID))
			}
		}
		return names
	}
	want := []string{"container " + orphan.Environment, "volume " + lonely}
	if got := prune(backends.PruneOptions{DryRun: true, OlderThan: time.Hour}); len(got) > 0 {
		t.Errorf("older than an hour: %q", got)
	}
	if got := prune(backends.PruneOptions{DryRun: true}); !slices.Equal(got, want) {
		t.Errorf("a dry run found %q, want %q", got, want)
	}
	if got := prune(backends.PruneOptions{}); !slices.Equal(got, want) {
		t.Errorf("pruned %q, want %q", got, want)
	}
	if got := prune(backends.PruneOptions{}); len(got) > 0 {
		t.Errorf("pruned again: %q", got)
	}
	for _, kept := range []backends.Binding{known, owned, elsewhere, foreign} {
		if _, err := e.container(t.Context(), kept.Environment); err != nil {
			t.Errorf("it removed too much: %v", err)
		}
	}
	if _, err := e.container(t.Context(), orphan.Environment); err == nil {
		t.Error("the orphan is still there")
	}
}

// TestPruneOfAnInterruptedCheck: the container of a check whose service was killed
// belongs to no store, and is found from every one; that of a check that goes on
// is left alone.
func TestPruneOfAnInterruptedCheck(t *testing.T) {
	image := bare(t)
	e := testEngine(t)
	living, killed, copied := newBackend(t, far(t)), newBackend(t, far(t)), newBackend(t, far(t))
	killed.owner, copied.owner = deadOwner(t), earlierOwner(t)
	t.Cleanup(func() { removeAll(t, checkStore) })
	// Who is killed gets no further than this, and removes nothing.
	upToContainer := func(b *Backend) (made bool) {
		b.check(t.Context(), newBinding(t, b, image).Profile, func(name string, err error, _ string) bool {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			made = name == "container"
			return !made
		})
		return made
	}
	if !upToContainer(killed) || !upToContainer(living) || !upToContainer(copied) {
		t.Fatal("the checks made no containers")
	}
	prune := func(dryRun bool, after time.Duration) (n int) {
		t.Helper()
		now := time.Now().Add(after)
		for _, r := range must(living.prune(t.Context(), e, backends.PruneOptions{Store: "some-store", DryRun: dryRun}, now))(t) {
			if r.Kind == "container" && r.Session == "check" {
				n++
			}
		}
		return n
	}
	for i, step := range []struct {
		dryRun bool
		after  time.Duration
		want   int
	}{
		// That of a copy of this machine may go on there, as long as it is young.
		{true, 0, 1}, {true, foreignAge, 2}, {false, 0, 1}, {false, 0, 0}, {false, foreignAge, 1}, {false, foreignAge, 0},
	} {
		if got := prune(step.dryRun, step.after); got != step.want {
			t.Errorf("prune %d found %d containers of checks, want %d", i, got, step.want)
		}
	}
	if left := left(t, checkStore); len(left) != 1 {
		t.Errorf("left are %q, want what the check that goes on has made", left)
	}
}

func TestOwnerless(t *testing.T) {
	gone := earlierOwner(t).labels()
	gone[labelStore], gone[labelEnvironment] = "mine", "old"
	with := func(name, value string) map[string]string {
		labels := maps.Clone(gone)
		labels[name] = value
		return labels
	}
	helper := with(labelStore, "theirs")
	helper[labelKind] = kindHelper
	alive := with(labelKind, kindHelper)
	maps.Copy(alive, self().labels())
	own := maps.Clone(helper)
	own[labelStore] = "mine"
	killed := maps.Clone(helper)
	maps.Copy(killed, deadOwner(t).labels())
	now := time.Now()
	for _, test := range []struct {
		name   string
		labels map[string]string
		age    time.Duration
		want   bool
	}{
		{"of this store", own, 0, true},
		{"of another, which was killed here", killed, 0, true},
		{"of another", helper, foreignAge, true},
		{"of another, that may be in use", helper, foreignAge - time.Second, false},
		{"of another, from a clock ahead", helper, -time.Hour, false},
	} {
		if got := ownerless(backends.PruneOptions{Store: "mine"}, test.labels, now.Add(-test.age), now); got != test.want {
			t.Errorf("a helper %s: %v", test.name, got)
		}
	}
	options := backends.PruneOptions{Store: "mine", Live: map[string]bool{"known": true}, OlderThan: time.Hour}
	for _, test := range []struct {
		name    string
		labels  map[string]string
		created time.Time
		want    bool
	}{
		{"an orphan", gone, time.Time{}, true},
		{"too young", gone, now, false},
		{"known", with(labelEnvironment, "known"), time.Time{}, false},
		{"another store", with(labelStore, "theirs"), time.Time{}, false},
		{"a check that was cut off", with(labelStore, checkStore), now.Add(-time.Hour), true},
		{"another store's helper", helper, now.Add(-time.Hour), true},
		{"another store's helper of an unknown age", helper, time.Time{}, true},
		{"a check of an unknown age", with(labelStore, checkStore), time.Time{}, true},
		{"another machine", with(labelOwnerHost, "far"), time.Time{}, false},
		{"alive", alive, time.Time{}, false},
		{"nothing is known", nil, time.Time{}, false},
	} {
		if got := ownerless(options, test.labels, test.created, now); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// Prune looks at every daemon that a profile names, once, and passes over those
// that it cannot reach.
func TestPruneElsewhere(t *testing.T) {
	image := bare(t)
	way := newRoad(t)
	dead := newBackend(t, echo(t))
	dead.owner = deadOwner(t)
	orphan := newBinding(t, dead, image)
	orphan.Profile.DockerHost, orphan.Profile.Persistent = way.host, true
	_, orphan = created(t, dead, orphan)

	nowhere := "unix://" + filepath.Join(privateDir(t), "none.sock")
	other := newBinding(t, dead, image).Profile
	other.DockerHost = nowhere
	lost := other
	lost.DockerHost, lost.DockerContext = "", "no-such-context"
	foreign := profile.Profile{Backend: profile.SSH, Host: "box"}
	living := New(Options{Executable: echo(t), Version: testVersion, Getenv: func(name string) string {
		// The default daemon is another one that is not there.
		return map[string]string{"DOCKER_HOST": "unix:///nowhere/docker.sock"}[name]
	}})
	t.Cleanup(func() { living.Close() })
	for _, dry := range []bool{true, false} {
		var unreached []string
		found, err := living.Prune(t.Context(), backends.PruneOptions{
			DryRun: dry, Store: orphan.Store,
			Profiles: []profile.Profile{other, orphan.Profile, foreign, lost, orphan.Profile, other},
			Unreached: func(place string, err error) {
				if err == nil {
					t.Errorf("%s was not reached without a reason", place)
				}
				unreached = append(unreached, place)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"unix:///nowhere/docker.sock", nowhere, "the docker context no-such-context"}; !slices.Equal(unreached, want) {
			t.Errorf("not reached: %q, want %q", unreached, want)
		}
		found = slices.DeleteFunc(found, func(r backends.Resource) bool { return r.Kind != "container" })
		if len(found) != 1 || found[0].ID != orphan.Environment {
			t.Errorf("dry run %v: found %+v", dry, found)
		}
		if there := len(left(t, orphan.Store)) > 0; there != dry {
			t.Errorf("dry run %v: it is there: %v", dry, there)
		}
	}
	// A cancelled prune says so and does not pass everything over.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := living.Prune(ctx, backends.PruneOptions{Store: orphan.Store}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
