package docker

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/docker/docker/api/types/volume"

	"github.com/caisson-dev/caisson/backends"
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
		found := must(living.prune(t.Context(), e, o))(t)
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

func TestOwnerless(t *testing.T) {
	gone := deadOwner(t).labels()
	gone[labelStore], gone[labelEnvironment] = "mine", "old"
	with := func(name, value string) map[string]string {
		labels := maps.Clone(gone)
		labels[name] = value
		return labels
	}
	alive := with(labelSession, "s")
	maps.Copy(alive, self().labels())
	options := backends.PruneOptions{Store: "mine", Live: map[string]bool{"known": true}, OlderThan: time.Hour}
	now := time.Now()
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
		{"a check that was cut off", with(labelStore, checkStore), time.Time{}, true},
		{"another machine", with(labelOwnerHost, "far"), time.Time{}, false},
		{"alive", alive, time.Time{}, false},
		{"nothing is known", nil, time.Time{}, false},
	} {
		if got := ownerless(options, test.labels, test.created, now); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}
