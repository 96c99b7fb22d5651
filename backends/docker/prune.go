package docker

import (
	"context"
	"errors"
	"time"

	"github.com/caisson-dev/caisson/backends"
)

// prune finds, and unless DryRun removes, what nobody owns any more: things of
// this store whose environment the store does not know and whose maker is a
// process of this machine that is proven dead. What another host or another
// store made is never touched.
func (b *Backend) prune(ctx context.Context, e *engine, o backends.PruneOptions) ([]backends.Resource, error) {
	var found []backends.Resource
	var failures []error
	ownerless := func(labels map[string]string, created time.Time) bool {
		return labels[labelStore] == o.Store && !o.Live[labels[labelEnvironment]] &&
			ownerOf(labels).dead() && (o.OlderThan <= 0 || time.Since(created) >= o.OlderThan)
	}
	take := func(r backends.Resource, labels map[string]string, remove func() error) {
		r.Backend, r.Environment, r.Session = b.Kind(), labels[labelEnvironment], labels[labelSession]
		if !o.DryRun {
			if err := remove(); errors.Is(err, errConflict) || errors.Is(err, errNotFound) {
				return // in use by somebody, or gone already
			} else if err != nil {
				failures = append(failures, err)
				return
			}
		}
		found = append(found, r)
	}

	store := labelStore + "=" + o.Store
	containers, err := e.containers(ctx, store)
	if err != nil {
		return nil, err
	}
	for _, c := range containers {
		if c.Removing || !ownerless(c.Labels, c.CreatedAt) {
			continue
		}
		r := backends.Resource{Kind: "container", ID: c.Name, CreatedAt: c.CreatedAt, Reason: "its session is gone and the service that made it is dead"}
		if c.Labels[labelKind] == kindHelper {
			r.Reason = "the service that was putting a worker here is dead"
		}
		take(r, c.Labels, func() error { return removeAndWait(ctx, e, c.ID) })
	}

	volumes, err := e.unusedVolumes(ctx, store)
	if err != nil {
		return found, errors.Join(append(failures, err)...)
	}
	for _, v := range volumes {
		// An unknown date counts as long ago.
		created, _ := time.Parse(time.RFC3339, v.CreatedAt)
		if !ownerless(v.Labels, created) {
			continue
		}
		r := backends.Resource{Kind: "volume", ID: v.Name, CreatedAt: created, Reason: "no container uses it and the service that made it is dead"}
		take(r, v.Labels, func() error { return e.removeVolume(ctx, v.Name) })
	}
	return found, errors.Join(failures...)
}
