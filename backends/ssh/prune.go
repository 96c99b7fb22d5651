package ssh

import (
	"context"
	"errors"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/remote"
)

// Prune removes, on the machines of the profiles that it is told of, directories
// of the store whose environment it no longer knows and whose owner, a process of
// this machine, is dead; and workers that nobody uses.
func (b *Backend) Prune(ctx context.Context, o backends.PruneOptions) ([]backends.Resource, error) {
	var found []backends.Resource
	var failures []error
	seen := map[string]bool{}
	told := map[string]bool{} // several routes may lead to one directory
	for _, p := range o.Profiles {
		if p.Backend != profile.SSH {
			continue
		}
		route, err := b.pool.Resolve(ctx, destination(p))
		if err != nil {
			o.Skip(p.Host, err)
			continue
		}
		place := route.Key() + "\x00" + p.Workspace
		if seen[place] {
			continue
		}
		seen[place] = true
		conn, err := b.pool.Dial(ctx, route, nil)
		if err != nil && ctx.Err() == nil {
			o.Skip(route.String(), err)
			continue
		}
		if err == nil {
			var some []backends.Resource
			var listed bool
			some, listed, err = b.pruneMachine(ctx, machine{conn, route.String()}, route.Key(), p, o, told)
			found = append(found, some...)
			conn.Close()
			if err != nil && !listed && ctx.Err() == nil {
				// It lets us in and cannot be used: as good as not reached.
				o.Skip(route.String(), err)
				continue
			}
		}
		failures = append(failures, err)
	}
	return found, errors.Join(failures...)
}

// pruneMachine looks at one profile's directory on its machine. What is told of
// already is left out, and what is told of added. listed reports whether it could be
// looked at.
func (b *Backend) pruneMachine(ctx context.Context, m machine, key string, p profile.Profile, o backends.PruneOptions, told map[string]bool) (found []backends.Resource, listed bool, err error) {
	err = b.withWorker(ctx, m, key, p, nil, func(placed placement) error {
		ask := func(r remote.SiteRequest) (remote.SiteReply, error) {
			r.Sum, r.Directory = placed.sum, p.Workspace
			return m.site(ctx, answerTimeout+p.ShutdownTimeout, placed.program, r)
		}
		all, err := ask(remote.SiteRequest{Action: remote.SiteList, Record: remote.SiteRecord{Store: o.Store}})
		if err != nil {
			return err
		}
		listed = true
		var failures []error
		for _, f := range all.Found {
			one := f.Record.Environment + " " + f.Record.Nonce
			if !ownerless(o, f.Record, time.Now()) || told[one] {
				continue
			}
			told[one] = true
			if !o.DryRun {
				r := remote.SiteRequest{Action: remote.SiteRemove, Record: f.Record, Replace: f.Record.Nonce, ShutdownMS: p.ShutdownTimeout.Milliseconds()}
				if f.Name != f.Record.Environment {
					r.Name = f.Name
				}
				if _, err := ask(r); err != nil {
					failures = append(failures, err)
					continue
				}
			}
			found = append(found, backends.Resource{
				Backend: b.Kind(), Kind: "directory", ID: m.name + ":" + p.Workspace + "/" + f.Name,
				Environment: f.Record.Environment, Session: f.Record.Session, CreatedAt: f.Record.CreatedAt,
				Reason: "its session is gone and the service that made it is dead",
			})
		}
		if placed.sum != "" {
			swept, err := ask(remote.SiteRequest{Action: remote.SiteSweep, OlderThanMS: max(o.OlderThan, workerAge).Milliseconds(), DryRun: o.DryRun})
			if err != nil {
				failures = append(failures, err)
			}
			for _, dir := range swept.Swept {
				id := m.name + ":" + dir
				if told[id] {
					continue
				}
				told[id] = true
				found = append(found, backends.Resource{
					Backend: b.Kind(), Kind: "worker", ID: id,
					Reason: "nothing runs it and nobody has used it for a week",
				})
			}
		}
		return errors.Join(failures...)
	})
	return found, listed, err
}

// ownerless reports whether nobody owns a directory any more: it is of this
// store, the store does not know its environment, and its maker is a process of
// this machine that is proven dead. What another host or another store made is
// never touched.
func ownerless(o backends.PruneOptions, r remote.SiteRecord, now time.Time) bool {
	return r.Store == o.Store && !o.Live[r.Environment] && ownerOf(r).Dead() &&
		(o.OlderThan <= 0 || now.Sub(r.CreatedAt) >= o.OlderThan)
}
