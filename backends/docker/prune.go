package docker

import (
	"context"
	"errors"
	"time"

	"github.com/caisson-dev/caisson/backends"
)

// ownerless reports whether nobody owns a thing with the labels any more: it is
// of this store or of a check, the store does not know its environment, and its
// maker is dead. What another host or another store made is never touched, but for
// a helper: it was never started, has nothing of anybody, and its store may be gone
// with what was tried there.
func ownerless(o backends.PruneOptions, labels map[string]string, created, now time.Time) bool {
	store := labels[labelStore]
	// A call's container is of no use to anybody once its service is dead.
	known := o.Live[labels[labelEnvironment]] && labels[labelKind] != kindCall
	ours := store == o.Store || store == checkStore || labels[labelKind] == kindHelper
	return ours && !known &&
		makerDead(o.Store, labels, created, now) && (o.OlderThan <= 0 || now.Sub(created) >= o.OlderThan)
}

// makerDead reports whether who made a thing with the labels is dead: a process of this
// machine that is proven to have ended. Where the thing is of another store than the one
// that looks, such a process may be one of a copy of this machine, which works on the same
// daemon, and where it runs. So it must be of this boot too, which a copy has not, unless it
// went on from the same memory; or the thing must be old. A wrong guess costs no more than
// one check, or one worker that is put on the daemon again.
func makerDead(store string, labels map[string]string, created, now time.Time) bool {
	o := ownerOf(labels)
	return o.dead() && (labels[labelStore] == store || o.thisBoot() || now.Sub(created) >= foreignAge)
}

// prune finds, and unless DryRun removes, what is ownerless now.
func (b *Backend) prune(ctx context.Context, e *engine, o backends.PruneOptions, now time.Time) ([]backends.Resource, error) {
	var found []backends.Resource
	var failures []error
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

	containers, err := e.containers(ctx, labelStore)
	if err != nil {
		return nil, err
	}
	for _, c := range containers {
		if c.Removing || !ownerless(o, c.Labels, c.CreatedAt, now) {
			continue
		}
		r := backends.Resource{Kind: "container", ID: c.Name, CreatedAt: c.CreatedAt, Reason: "its session is gone and the service that made it is dead"}
		if c.Labels[labelKind] == kindHelper {
			r.Reason = "the service that was putting a worker here is dead"
		}
		if c.Labels[labelKind] == kindCall {
			r.Reason = "the service that made the call is dead"
		}
		take(r, c.Labels, func() error { return removeAndWait(ctx, e, c.ID) })
	}

	volumes, err := e.unusedVolumes(ctx, labelStore)
	if err != nil {
		return found, errors.Join(append(failures, err)...)
	}
	for _, v := range volumes {
		// An unknown date counts as long ago.
		created, _ := time.Parse(time.RFC3339, v.CreatedAt)
		if !ownerless(o, v.Labels, created, now) {
			continue
		}
		r := backends.Resource{Kind: "volume", ID: v.Name, CreatedAt: created, Reason: "no container uses it and the service that made it is dead"}
		take(r, v.Labels, func() error { return e.removeVolume(ctx, v.Name) })
	}
	return found, errors.Join(failures...)
}
