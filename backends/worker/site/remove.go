package site

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
	"github.com/caisson-dev/caisson/backends/worker"
	"github.com/caisson-dev/caisson/backends/worker/endpoint"
	"github.com/caisson-dev/caisson/backends/worker/process"
	"github.com/caisson-dev/caisson/backends/worker/workspace"
)

// remove ends the environment's workers and removes its directory. After a
// failure to end one nothing is removed.
func remove(ctx context.Context, r wire.SiteRequest) (err error) {
	name := r.Record.Environment
	if r.Name != "" {
		if !component(r.Name) || !strings.HasPrefix(r.Name, unfinished) {
			return tool.Errorf(tool.InvalidParams, "%q is not the name of an unfinished directory", r.Name)
		}
		name = r.Name
	}
	dir := filepath.Join(r.Directory, name)
	there, err := readRecord(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return foreign(dir, err)
	case !ours(there, r.Record) || r.Replace != "" && r.Replace != there.Nonce:
		return notOurs(dir)
	}
	waiting, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	lock, err := endpoint.AcquireExisting(waiting, filepath.Join(dir, lockName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return tool.Errorf(tool.BackendUnavailable, "remove the environment: %w", err).WithPath(dir)
	}
	if err == nil {
		defer func() { err = errors.Join(err, lock.Unlock()) }()
	}
	// Without the lock's file a removal that was cut off goes on.
	budget := milliseconds(r.ShutdownMS)
	if budget <= 0 {
		budget = worker.DefaultShutdownTimeout
	}
	if err := endWorkers(ctx, place(dir), budget+stopSlack); err != nil {
		return tool.Errorf(tool.BackendUnavailable, "the environment in %s was not removed: %w", dir, err).WithPath(dir).
			WithHint("look at what runs there, then try again")
	}
	return clearAway(dir)
}

// sessions are those that ever had a worker in the environment.
func sessions(p wire.SitePlace) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(p.State, "sessions"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all, nil
}

// live reports whether a worker of the environment runs.
func live(p wire.SitePlace) (bool, error) {
	all, err := sessions(p)
	if err != nil {
		return false, err
	}
	for _, session := range all {
		held, err := endpoint.Held(worker.LockPath(p.State, session))
		if err != nil || held {
			return held, err
		}
	}
	return false, nil
}

// endWorkers tells the environment's workers to end, all at once, waits until
// they have, and ends what dead ones left.
func endWorkers(ctx context.Context, p wire.SitePlace, budget time.Duration) error {
	all, err := sessions(p)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	ended := make(chan error)
	for _, session := range all {
		go func() { ended <- endWorker(ctx, p, session) }()
	}
	var failures error
	for range all {
		failures = errors.Join(failures, <-ended)
	}
	return failures
}

// endWorker ends one session's worker and what one left that has died.
func endWorker(ctx context.Context, p wire.SitePlace, session string) error {
	path := endpoint.SocketPath(p.Sockets, session)
	tick := time.NewTicker(stopPoll)
	defer tick.Stop()
	told := 0
	for {
		held, err := endpoint.Held(worker.LockPath(p.State, session))
		if err != nil {
			return err
		}
		if !held {
			break
		}
		// Who listens is asked of the kernel: a number in a file may be somebody
		// else's by now. One that listens no more is ending already.
		if pid, err := endpoint.ServerPID(ctx, path); err == nil && pid != told {
			if err := terminate(pid); err != nil {
				return fmt.Errorf("end the worker of session %s, process %d: %w", session, pid, err)
			}
			told = pid
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the worker of session %s, process %d, does not end: %w", session, told, ctx.Err())
		}
	}
	if err := process.End(ctx, p.State, session); err != nil {
		return fmt.Errorf("end what the worker of session %s left: %w", session, err)
	}
	return nil
}

// Leave removes the environment in dir after the idle end of one of its workers,
// unless another one lives in it or is coming.
func Leave(ctx context.Context, dir string) (err error) {
	if _, err := readRecord(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	lock, err := endpoint.AcquireExisting(waiting, filepath.Join(dir, lockName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	p := place(dir)
	if busy, err := live(p); err != nil || busy {
		return err
	}
	if err := endWorkers(ctx, p, stopSlack); err != nil {
		return err // what a dead one left does not end: kept for inspection
	}
	return clearAway(dir)
}

// clearAway removes an environment's directory: what is in it first, then the rest
// under another name, so that a removal that is cut off can be taken up again, and
// whoever looks meanwhile finds no directory without its record.
func clearAway(dir string) error {
	fail := func(err error) error {
		return tool.Errorf(tool.BackendUnavailable, "the environment in %s cannot be removed: %w", dir, err).WithPath(dir).
			WithHint("look at what is left there, then try again")
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fail(err)
	}
	for _, e := range entries {
		if e.Name() == recordName || e.Name() == lockName {
			continue
		}
		if err := workspace.Remove(filepath.Join(dir, e.Name())); err != nil {
			return fail(err)
		}
	}
	if s := sockets(dir); filepath.Dir(s) != dir {
		if err := os.RemoveAll(s); err != nil {
			return fail(err)
		}
	}
	rest := unfinishedIn(filepath.Dir(dir))
	if err := os.Rename(dir, rest); err != nil {
		return fail(err)
	}
	if err := os.RemoveAll(rest); err != nil {
		return fail(err)
	}
	return nil
}

// list finds the store's environments, those that were never completed too.
func list(r wire.SiteRequest) (wire.SiteReply, error) {
	entries, err := os.ReadDir(r.Directory)
	if errors.Is(err, fs.ErrNotExist) {
		return wire.SiteReply{}, nil
	}
	if err != nil {
		return wire.SiteReply{}, tool.Errorf(tool.BackendUnavailable, "list the environments: %w", err).WithPath(r.Directory)
	}
	var reply wire.SiteReply
	for _, e := range entries {
		dir := filepath.Join(r.Directory, e.Name())
		there, err := readRecord(dir)
		if err != nil || there.Store != r.Record.Store {
			continue // somebody else's, or gone meanwhile
		}
		complete := e.Name() == there.Environment
		if !complete && !strings.HasPrefix(e.Name(), unfinished) {
			continue // moved there by somebody
		}
		busy, err := live(place(dir))
		if err != nil {
			return wire.SiteReply{}, tool.Errorf(tool.BackendUnavailable, "look for workers: %w", err).WithPath(dir)
		}
		reply.Found = append(reply.Found, wire.SiteFound{Record: there, Name: e.Name(), Live: busy})
	}
	return reply, nil
}
