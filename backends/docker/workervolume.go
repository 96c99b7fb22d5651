package docker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// volumePrefix begins the names of worker volumes; the head of the worker's
// hash follows. The name finds a volume, but only its content is trusted.
const volumePrefix = "caisson-worker-"

// workers puts workers on daemons: one volume for each build, filled once
// through a container that is never started, and mounted read-only by every
// environment. Nobody can write to it from inside one.
type workers struct {
	backend *Backend

	mu sync.Mutex
	// verified holds, by daemon and volume, the volumes whose content this
	// process has read back and found right.
	verified map[string]volumeInfo
	// busy holds a slot for each volume, so that one call at a time fills it.
	busy map[string]chan struct{}
}

// same reports whether two descriptions are of one volume, and not of one that
// was made anew under its name: the date has whole seconds only.
func (v volumeInfo) same(w volumeInfo) bool {
	return v.Name == w.Name && v.Labels[labelNonce] == w.Labels[labelNonce] &&
		v.CreatedAt == w.CreatedAt && v.Mountpoint == w.Mountpoint
}

// ensure returns the volume that holds the worker, after it has been read back
// and compared with the program at least once. image is any image that is on
// the daemon: the containers that are needed are never started.
func (w *workers) ensure(ctx context.Context, e *engine, d daemonInfo, b backends.Binding, image imageInfo, worker programFile, p backends.Progress) (volumeInfo, error) {
	name := volumePrefix + worker.Sum[:32]
	key := d.ID + " " + name
	release, err := w.acquire(ctx, key)
	if err != nil {
		return volumeInfo{}, err
	}
	defer release()

	found, err := e.volume(ctx, name)
	if err != nil && !errors.Is(err, errNotFound) {
		return volumeInfo{}, err
	}
	if err == nil {
		if known, ok := w.known(key); ok && known.same(found) {
			return found, nil
		}
	}
	if err := w.fillOrVerify(ctx, e, b, image, worker, name, err == nil, p); err != nil {
		return volumeInfo{}, err
	}
	if found, err = e.volume(ctx, name); err != nil {
		return volumeInfo{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.verified[key] = found
	return found, nil
}

// forget makes the next ensure read the volume back again.
func (w *workers) forget(d daemonInfo, v volumeInfo) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.verified, d.ID+" "+v.Name)
}

func (w *workers) known(key string) (volumeInfo, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v, ok := w.verified[key]
	return v, ok
}

// acquire waits for the volume's slot.
func (w *workers) acquire(ctx context.Context, key string) (release func(), err error) {
	w.mu.Lock()
	slot := w.busy[key]
	if slot == nil {
		slot = make(chan struct{}, 1)
		w.busy[key] = slot
	}
	w.mu.Unlock()
	select {
	case slot <- struct{}{}:
		return func() { <-slot }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fillOrVerify leaves a volume behind whose content is the worker's.
func (w *workers) fillOrVerify(ctx context.Context, e *engine, b backends.Binding, image imageInfo, worker programFile, name string, exists bool, p backends.Progress) error {
	deadline := time.Now().Add(fillTimeout)
	for {
		if exists {
			wrong, err := w.verify(ctx, e, b, image, worker, name)
			if err != nil || wrong == nil {
				return err
			}
			w.backend.log.Warn("a worker volume holds something else and is filled anew", "volume", name, "reason", wrong)
		}
		p.Report("putting the worker on the docker daemon")
		err := w.fill(ctx, e, b, image, worker, name)
		if err == nil {
			w.sweep(ctx, e, worker)
		}
		if !errors.Is(err, errConflict) {
			return err
		}
		// Somebody else is filling it: the name of the container is the lock.
		if err := w.waitForFiller(ctx, e, b.Store, name, deadline); err != nil {
			return err
		}
		exists = true
	}
}

// fillerName is the name of the container through which a volume is filled. A
// daemon gives a name to one container only.
func fillerName(volume string) string { return volume + "-fill" }

// mount is the mount of a worker's volume. Should the volume be gone, the daemon
// makes it anew, with the labels.
func (w *workers) mount(b backends.Binding, sum, volume string, readOnly bool) mountSpec {
	b.Environment = "" // it belongs to none
	return mountSpec{
		Kind: volumeMount, Source: volume, Target: workerDir, ReadOnly: readOnly, NoCopy: true,
		Labels: w.backend.labels(kindWorker, b, map[string]string{labelWorker: sum, labelNonce: w.backend.random()}),
	}
}

// helper describes a container that is never started and only gives access to
// the volume.
func (w *workers) helper(b backends.Binding, image imageInfo, worker programFile, volume, name string) containerSpec {
	b.Environment = ""
	return containerSpec{
		Name: name, Image: image.ID, Entrypoint: []string{workerPath}, Network: "none",
		Labels: w.backend.labels(kindHelper, b, map[string]string{labelWorker: worker.Sum}),
		Mounts: []mountSpec{w.mount(b, worker.Sum, volume, false)},
	}
}

// verify reads the worker back. wrong says how the content differs.
func (w *workers) verify(ctx context.Context, e *engine, b backends.Binding, image imageInfo, worker programFile, volume string) (wrong, err error) {
	id, err := w.backend.create(ctx, e, w.helper(b, image, worker, volume, ""))
	if err != nil {
		return nil, err
	}
	defer w.backend.discard(ctx, e, id)
	return readBack(ctx, e, id, worker)
}

func readBack(ctx context.Context, e *engine, id string, worker programFile) (wrong, err error) {
	archive, err := e.get(ctx, id, workerPath)
	if errors.Is(err, errNotFound) {
		return errors.New("there is no worker in it"), nil
	}
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	wrong = worker.check(archive)
	return wrong, ctx.Err()
}

// fill uploads the worker and reads it back. It fails with errConflict when
// another process does the same right now.
func (w *workers) fill(ctx context.Context, e *engine, b backends.Binding, image imageInfo, worker programFile, volume string) error {
	id, err := w.backend.create(ctx, e, w.helper(b, image, worker, volume, fillerName(volume)))
	if err != nil {
		return err
	}
	defer w.backend.discard(ctx, e, id)
	archive, err := worker.archive()
	if err != nil {
		return tool.Errorf(tool.Internal, "the worker cannot be read: %w", err)
	}
	defer archive.Close()
	if err := e.put(ctx, id, workerDir, archive); err != nil {
		return err
	}
	wrong, err := readBack(ctx, e, id, worker)
	if err == nil && wrong != nil {
		err = tool.Errorf(tool.BackendUnavailable, "the worker that was put on the docker daemon at %s came back different: %w", e.endpoint.Host, wrong).
			WithHint("is the daemon's disk full?")
	}
	return err
}

// sweep removes the workers of other builds that no container has and whose
// maker, a process of this machine, is dead: every build of the program would
// otherwise leave its own for ever. Should somebody need one again, it is filled
// again.
func (w *workers) sweep(ctx context.Context, e *engine, current programFile) {
	unused, err := e.unusedVolumes(ctx, labelKind+"="+kindWorker)
	if err != nil {
		w.backend.log.Warn("old workers cannot be listed", "error", err)
		return
	}
	for _, v := range unused {
		if v.Labels[labelWorker] == current.Sum || !ownerOf(v.Labels).dead() {
			continue
		}
		if err := e.removeVolume(ctx, v.Name); err != nil && !errors.Is(err, errConflict) && !errors.Is(err, errNotFound) {
			w.backend.log.Warn("an old worker cannot be removed", "volume", v.Name, "error", err)
		}
	}
}

// waitForFiller waits until the other filler is gone, and removes one that is
// dead: proven so, or silent for too long.
func (w *workers) waitForFiller(ctx context.Context, e *engine, store, volume string, deadline time.Time) error {
	name := fillerName(volume)
	for {
		other, err := e.container(ctx, name)
		if errors.Is(err, errNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if other.Labels[labelKind] != kindHelper {
			return tool.Errorf(tool.BackendUnavailable, "a container named %s that is not Caisson's stands in the way", name).
				WithHint("docker rm %s", name)
		}
		if now := time.Now(); makerDead(store, other.Labels, other.CreatedAt, now) || now.After(deadline) {
			if err := e.remove(ctx, other.ID); err != nil && !errors.Is(err, errNotFound) && !errors.Is(err, errConflict) {
				return err
			}
		}
		if time.Now().After(deadline.Add(cleanupTimeout)) {
			return tool.Errorf(tool.BackendUnavailable, "the container %s has been filling the worker's volume for too long", name).
				WithHint("docker rm %s", name)
		}
		if err := pause(ctx, pollInterval); err != nil {
			return err
		}
	}
}

// pause waits, for what a daemon sends no word about by itself.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// create makes a container and knows afterwards, whatever the caller's context
// did meanwhile, whether it is there: without an error it is, even when ctx has
// ended, and the caller removes it.
func (b *Backend) create(ctx context.Context, e *engine, s containerSpec) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	nonce := b.random()
	s.Labels = maps.Clone(s.Labels)
	s.Labels[labelNonce] = nonce
	creating, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTimeout)
	defer cancel()
	id, err := e.create(creating, s)
	if err != nil && id == "" && creating.Err() != nil {
		// The daemon may finish it yet.
		err = errors.Join(err, b.discardLate(ctx, e, nonce))
	}
	return id, err
}

// discardLate removes the container with the nonce, should it have been made.
func (b *Backend) discardLate(ctx context.Context, e *engine, nonce string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	found, err := e.containers(ctx, labelNonce+"="+nonce)
	if err != nil {
		return fmt.Errorf("a container with the label %s=%s may be left: %w", labelNonce, nonce, err)
	}
	for _, c := range found {
		b.discard(ctx, e, c.ID)
	}
	return nil
}

// discard removes a container of ours with its anonymous volumes, when what was
// begun failed or is over, even when ctx has ended.
func (b *Backend) discard(ctx context.Context, e *engine, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	if err := removeAndWait(ctx, e, id); err != nil {
		b.log.Error("a container could not be removed and is left for prune", "container", id, "error", err)
	}
}

// removeAndWait removes a container and returns once it is gone. A removal that
// is under way already, its own at the idle limit for one, is waited for.
func removeAndWait(ctx context.Context, e *engine, id string) error {
	return removeWithin(ctx, e, id, removalTimeout)
}

func removeWithin(ctx context.Context, e *engine, id string, limit time.Duration) error {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := removed(bounded, e, id)
	if err == nil || bounded.Err() == nil || ctx.Err() != nil {
		return err
	}
	// Nobody asked for that limit.
	slow := tool.Errorf(tool.BackendUnavailable, "%s has not removed the container %s within %s", e.endpoint, id, limit).
		WithHint("see what docker ps -a says, and docker rm -f -v %s", id)
	slow.Retryable = true
	return slow
}

func removed(ctx context.Context, e *engine, id string) error {
	err := e.remove(ctx, id)
	for errors.Is(err, errConflict) {
		if err := pause(ctx, pollInterval); err != nil {
			return fmt.Errorf("waiting for the removal of the container %s: %w", id, err)
		}
		err = e.remove(ctx, id)
	}
	if errors.Is(err, errNotFound) {
		return nil
	}
	return err
}
