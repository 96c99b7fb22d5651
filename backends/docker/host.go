package docker

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/remote"
	"github.com/caisson-dev/caisson/backends/tool"
)

// host makes and reaches the container of one environment, for package remote.
type host struct {
	backend *Backend
	engine  *engine

	mu   sync.Mutex
	boot *bootLog // from Create until the worker was reached; may be nil
	// container is the id of the one that the session was in first.
	container string
}

// strange reports whether a container of the environment's name is another one
// than that which the session was in: one that a session which shares it has made
// since. Where the files lie on the host that is as good.
func (h *host) strange(id string, b backends.Binding) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.container == "" {
		h.container = id
	}
	return h.container != id && b.Profile.HostWorkspace == ""
}

// watched replaces the watch of the container's first words.
func (h *host) watched(l *bootLog) {
	h.mu.Lock()
	old := h.boot
	h.boot = l
	h.mu.Unlock()
	old.close()
}

// words are what the container's first process said before a worker was reached.
func (h *host) words() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.boot.words()
}

var _ remote.Host = (*host)(nil)

// Create makes the container and starts it. When it fails, or ctx ends, neither
// container nor volume nor directory is left.
func (h *host) Create(ctx context.Context, b backends.Binding, p backends.Progress) error {
	d, image, err := h.prepare(ctx, b, p)
	if err != nil {
		return backends.NothingMade(err)
	}
	if err := h.clearWay(ctx, b); err != nil {
		return err
	}
	share := h.backend.shareFor(b, d, h.engine.endpoint)
	err = h.createAndStart(ctx, b, d, image, share, p)
	if share != "" && err != nil {
		h.backend.removeShare(share)
		if isMissingSource(err, share) {
			// A daemon behind the socket that does not see our files.
			err = h.createAndStart(ctx, b, d, image, "", p)
		}
	}
	return explain(err, b, h.engine)
}

// prepare asks the daemon what it is, and gets the image. No container is begun.
func (h *host) prepare(ctx context.Context, b backends.Binding, p backends.Progress) (daemonInfo, imageInfo, error) {
	d, err := h.engine.hello(ctx)
	if err != nil {
		return d, imageInfo{}, err
	}
	if d.Platform.OS != "linux" {
		return d, imageInfo{}, tool.Errorf(tool.Unsupported, "the docker daemon at %s runs %s containers: only Linux ones can be used", h.engine.endpoint, d.Platform.OS).
			WithHint("switch Docker to Linux containers")
	}
	p.Report("looking for the image " + b.Profile.Image)
	image, err := ensureImage(ctx, h.engine, d, b.Profile, p)
	if err != nil {
		return d, imageInfo{}, err
	}
	return d, image, refuseLimits(b.Profile, d, p)
}

// createAndStart makes and starts the container with a worker that is known to
// be the right one.
func (h *host) createAndStart(ctx context.Context, b backends.Binding, d daemonInfo, image imageInfo, share string, p backends.Progress) error {
	if b.Profile.Worker != "" {
		_, err := h.start(ctx, b, d, image, nil, share, p)
		return err
	}
	worker, err := h.backend.binaries.find(workerArch(d, image))
	if err != nil {
		return err
	}
	for first := true; ; first = false {
		volume, err := h.backend.workers.ensure(ctx, h.engine, d, b, image, worker, p)
		if err != nil {
			return err
		}
		changed, err := h.start(ctx, b, d, image, &workerVolume{volume, worker.Sum}, share, p)
		if !changed || !first {
			return err
		}
		// The volume was removed, and perhaps made anew, since it was verified.
		h.backend.workers.forget(d, volume)
	}
}

// workerVolume is a volume that was verified to hold the worker with the hash.
type workerVolume struct {
	volumeInfo
	sum string
}

// start makes and starts the container. changed says that the worker's volume,
// unless nil, is not the one that was verified; then nothing was started.
func (h *host) start(ctx context.Context, b backends.Binding, d daemonInfo, image imageInfo, worker *workerVolume, share string, p backends.Progress) (changed bool, err error) {
	p.Report("starting the container")
	var mount *mountSpec
	if worker != nil {
		m := h.backend.workers.mount(b, worker.sum, worker.Name, true)
		mount = &m
	}
	spec := h.backend.spec(b, d, h.engine.endpoint, mount, share)
	id, err := h.make(ctx, b, spec)
	if err != nil {
		return false, err
	}
	started := false
	defer func() {
		if !started {
			h.watched(nil)
			h.backend.discard(ctx, h.engine, id)
		}
	}()
	if worker != nil {
		// From now on the container holds it, so what is seen here stays.
		now, err := h.engine.volume(ctx, worker.Name)
		if err != nil {
			return false, err
		}
		if !now.same(worker.volumeInfo) {
			return true, tool.Errorf(tool.BackendUnavailable, "the volume %s with the worker keeps changing", worker.Name).
				WithHint("does something remove unused volumes on the docker daemon at %s all the time?", h.engine.endpoint)
		}
	}
	uid, gid, err := h.backend.own(ctx, h.engine, id, spec, image)
	if err != nil {
		return false, err
	}
	if b.Profile.WorkspaceSource == sourceCopy {
		if err := h.send(ctx, b, id, uid, gid, p); err != nil {
			return false, err
		}
	}
	boot, err := h.engine.watch(ctx, id)
	if err != nil {
		return false, err
	}
	h.watched(boot)
	if err := h.engine.start(ctx, id); err != nil {
		return false, err
	}
	started = ctx.Err() == nil
	return false, ctx.Err()
}

// make makes the container. A creation that was cut off when its service was
// killed may have the name before the daemon knows the container: that one is
// waited for, and removed.
func (h *host) make(ctx context.Context, b backends.Binding, spec containerSpec) (string, error) {
	for deadline := time.Now().Add(removalTimeout); ; {
		id, err := h.backend.create(ctx, h.engine, spec)
		if !errors.Is(err, errConflict) || time.Now().After(deadline) {
			return id, err
		}
		if err := pause(ctx, pollInterval); err != nil {
			return "", err
		}
		if err := h.clearWay(ctx, b); err != nil {
			return "", err
		}
	}
}

// clearWay removes what a creation that was cut off has left under the
// environment's name. Nothing was done in it: the environment would be marked
// provisioned.
func (h *host) clearWay(ctx context.Context, b backends.Binding) error {
	found, err := h.engine.container(ctx, b.Environment)
	if errors.Is(err, errNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if !ours(found.Labels, b) {
		return notOurs(b, h.engine)
	}
	if o := ownerOf(found.Labels); o != h.backend.owner && !o.dead() {
		failure := tool.Errorf(tool.BackendUnavailable, "the container %s is being made by process %d on %s", b.Environment, o.PID, o.Host).
			WithHint("wait for it, or remove the container: docker rm -f -v %s", b.Environment)
		failure.Retryable = true
		return failure
	}
	return removeAndWait(ctx, h.engine, found.ID)
}

// Attach finds the container and starts it when it is a persistent one that
// has stopped, after a restart of the daemon or the machine.
func (h *host) Attach(ctx context.Context, b backends.Binding) error {
	if _, err := h.engine.hello(ctx); err != nil {
		return err
	}
	_, err := h.running(ctx, b)
	return err
}

// running finds the environment's container and makes sure that it runs.
func (h *host) running(ctx context.Context, b backends.Binding) (containerInfo, error) {
	found, err := h.engine.container(ctx, b.Environment)
	switch {
	case errors.Is(err, errNotFound):
		return found, lost(b, h.engine, "is gone")
	case err != nil:
		return found, err
	case !ours(found.Labels, b):
		return found, notOurs(b, h.engine)
	case h.strange(found.ID, b):
		return found, lost(b, h.engine, "was removed and made anew by others")
	case found.Paused:
		return found, tool.Errorf(tool.BackendUnavailable, "the container %s is paused", b.Environment).
			WithHint("docker unpause %s", b.Environment)
	case found.Running:
		return found, nil
	case found.Removing || !b.Profile.Persistent:
		return found, lost(b, h.engine, "has ended")
	case b.OnlyRunning:
		return found, tool.Errorf(tool.BackendUnavailable, "the container %s on the docker daemon at %s is %w", b.Environment, h.engine.endpoint.Host, backends.ErrStopped).
			WithHint("docker start %s", b.Environment)
	}
	if share := found.Labels[labelShare]; share != "" {
		// The runtime directory does not outlive the machine's restart, and the
		// container does not start without it.
		if err := makeShare(share); err != nil {
			h.backend.log.Warn("the directory of the shared socket cannot be made again", "directory", share, "error", err)
		}
	}
	return found, explain(h.engine.start(ctx, found.ID), b, h.engine)
}

// Dial starts "caisson attach" in the container.
func (h *host) Dial(ctx context.Context, b backends.Binding) (remote.Stream, error) {
	found, err := h.running(ctx, b)
	if err != nil {
		if words := h.words(); words != "" && tool.KindOf(err) == tool.EnvironmentLost {
			err = tool.Errorf(tool.EnvironmentLost, "%w; its first process says: %s", err, words)
		}
		h.watched(nil)
		return remote.Stream{}, err
	}
	share := found.Labels[labelShare]
	mark := h.backend.random()
	stream, err := h.engine.exec(ctx, found.ID, attachArgs(b, mark, share != ""))
	if err != nil {
		var failure *tool.Error
		if errors.As(err, &failure) && (errors.Is(err, errConflict) || errors.Is(err, errNotFound)) {
			failure.Retryable = true // it ended just now; the next attempt says how
		}
		return remote.Stream{}, err
	}
	stream.mark, stream.boot = mark, h.words
	stream.reached = func() { h.watched(nil) }
	stream.done = stream.reached
	if share != sharePath(b) || !h.engine.endpoint.near() {
		share = "" // made by a service with another runtime directory
	}
	return remote.Stream{ReadWriteCloser: stream, Mark: mark, SharedDirectory: share}, nil
}

// Remove removes the container, its volumes and the shared directory.
func (h *host) Remove(ctx context.Context, b backends.Binding) error {
	h.watched(nil)
	if _, err := h.engine.hello(ctx); err != nil {
		return err
	}
	if b.Profile.ContainerPolicy == profile.PolicyPerCall {
		if err := h.removeCalls(ctx, b); err != nil {
			return err
		}
	}
	found, err := h.engine.container(ctx, b.Environment)
	if err == nil {
		if !ours(found.Labels, b) {
			return notOurs(b, h.engine)
		}
		err = removeAndWait(ctx, h.engine, found.ID)
	}
	if errors.Is(err, errNotFound) {
		err = h.removeVolumes(ctx, b)
	}
	if err != nil {
		return err
	}
	if b.RuntimeDir != "" {
		h.backend.removeShare(sharePath(b))
	}
	return nil
}

// removeVolumes removes the volumes of an environment whose container is gone: somebody
// removed it without them, or a daemon that was started again did.
func (h *host) removeVolumes(ctx context.Context, b backends.Binding) error {
	left, err := h.engine.unusedVolumes(ctx, labelStore+"="+b.Store, labelEnvironment+"="+b.Environment, labelKind+"="+kindEnvironment)
	for _, v := range left {
		// One that somebody uses after all, or has removed, is not ours to remove any more.
		if failed := h.engine.removeVolume(ctx, v.Name); !errors.Is(failed, errConflict) && !errors.Is(failed, errNotFound) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

func lost(b backends.Binding, e *engine, how string) error {
	failure := tool.Errorf(tool.EnvironmentLost, "the container %s on the docker daemon at %s %s, and what was in it", b.Environment, e.endpoint.Host, how)
	if b.Profile.Persistent {
		return failure.WithHint("delete the session and open a new one")
	}
	return failure.WithHint("delete the session and open a new one; a profile with persistent: true keeps its container when idle")
}

func notOurs(b backends.Binding, e *engine) error {
	return tool.Errorf(tool.BackendUnavailable, "a container named %s on the docker daemon at %s belongs to somebody else", b.Environment, e.endpoint.Host).
		WithHint("see docker inspect %s; nothing was changed", b.Environment)
}

// isMissingSource reports whether a daemon did not find the bind mount's source.
func isMissingSource(err error, source string) bool {
	return strings.Contains(err.Error(), "bind source path does not exist: "+source)
}

// explain adds what to do to the refusals of a daemon that people run into.
func explain(err error, b backends.Binding, e *engine) error {
	var failure *tool.Error
	if !errors.As(err, &failure) || failure.Hint != "" {
		return err
	}
	said := failure.Message
	switch {
	case strings.Contains(said, "bind source path does not exist"):
		failure.WithHint("host_workspace and mounts name folders of the machine that the docker daemon runs on; make the folder there first")
	case strings.Contains(said, "nknown runtime"), strings.Contains(said, "unknown or invalid runtime"):
		failure.WithHint("docker info lists the runtimes of this daemon; the profile wants %q", b.Profile.Runtime)
	case strings.Contains(said, "exec format error"):
		failure.WithHint("the image is for another CPU and the daemon has no emulator for it")
	case strings.Contains(said, "unable to find user"):
		failure.WithHint("write the user by numbers: uid:gid")
	case strings.Contains(said, "no space left on device"):
		failure.WithHint("the disk of the docker daemon is full: docker system df shows by what")
	case b.Profile.Worker != "" && strings.Contains(said, b.Profile.Worker):
		failure.WithHint("the profile's worker names a program that the image must have; leave it out and Caisson brings its own")
	case strings.Contains(said, "cgroup"):
		failure.WithHint("this daemon cannot set a limit of the profile: see cpus, memory and pids_limit")
	default:
		failure.WithHint("docker --host %s info shows what this daemon can do", e.endpoint.Host)
	}
	return err
}
