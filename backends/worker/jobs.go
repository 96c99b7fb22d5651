package worker

import (
	"context"

	"github.com/caisson-dev/caisson/backends/wire"
)

// runJob runs one job of the session, to its end.
func (s *server) runJob(ctx context.Context, o *session, r *wire.Request) (wire.Response, error) {
	var in wire.Job
	if err := r.Decode(&in); err != nil {
		return wire.Response{}, err
	}
	if err := needBulk(r); err != nil {
		return wire.Response{}, err
	}
	q, err := in.Request(r.Body)
	if err != nil {
		return wire.Response{}, err
	}
	if q.Actor, err = o.actor(in.Actor, in.ActorKind); err != nil {
		return wire.Response{}, err
	}
	if q.Mode, err = s.mode(in.PermissionMode); err != nil {
		return wire.Response{}, err
	}
	q.MaxOutputBytes = s.outputLimit(in.MaxOutputBytes)
	result, err := o.jobs.Run(ctx, q)
	if err != nil {
		return wire.Response{}, err
	}
	done, body := wire.NewJobDone(result)
	return wire.Response{Data: done, Body: body}, nil
}
