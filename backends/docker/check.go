package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// Check asks the daemon for its version, looks for the image and the worker,
// and tries in a container of the image's own that a write which must fail
// fails. It pulls nothing and leaves nothing.
func (b *Backend) Check(ctx context.Context, p profile.Profile) backends.Health {
	begun := time.Now()
	var health backends.Health
	b.check(ctx, p, func(name string, err error, detail string) bool {
		return health.Add(backends.NewCheck(name, err, detail))
	})
	health.Duration = time.Since(begun)
	return health
}

// check goes on for as long as add, told what was tried, says so.
func (b *Backend) check(ctx context.Context, p profile.Profile, add func(name string, err error, detail string) bool) {
	e, err := b.engineFor(p)
	var d daemonInfo
	if err == nil {
		d, err = e.hello(ctx)
	}
	if !add("daemon", err, fmt.Sprintf("Docker %s (API %s) on %s, %s", d.Version, d.API, d.System, d.Platform)) {
		return
	}
	if !add("endpoint", nil, e.endpoint.String()) || !add("profile", refuse(p), "every member can be applied") {
		return
	}
	image, err := imageThere(ctx, e, d, p)
	if !add("image", err, fmt.Sprintf("%s for %s", p.Image, image.Platform)) {
		return
	}
	if p.Worker == "" {
		worker, err := b.binaries.find(workerArch(d, image))
		if !add("worker", err, fmt.Sprintf("%s, SHA-256 %s", worker.Path, worker.Sum)) {
			return
		}
	}
	b.try(ctx, p, add)
}

// imageThere is the profile's image, if the daemon has it: a check pulls nothing.
func imageThere(ctx context.Context, e *engine, d daemonInfo, p profile.Profile) (imageInfo, error) {
	if p.Pull != pullNever {
		if _, err := e.image(ctx, p.Image, parsePlatform(p.Platform)); errors.Is(err, errNotFound) {
			return imageInfo{}, tool.Errorf(tool.BackendUnavailable,
				"the image %q is not on the docker daemon at %s: a session would pull it first, a check does not", p.Image, e.endpoint.Host).
				WithHint("docker pull %s (or docker build, docker load), and check again", p.Image)
		}
	}
	p.Pull = pullNever
	return ensureImage(ctx, e, d, p, nil)
}

// try opens a container as a session would and looks what can be done in it.
func (b *Backend) try(ctx context.Context, p profile.Profile, add func(string, error, string) bool) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	id := b.random()
	binding := backends.Binding{
		Session: "check", Environment: "caisson-" + id, Store: checkStore,
		Profile: trial(p), Secrets: backends.Secrets{Token: id + b.random()},
	}
	begun := time.Now()
	env, err := b.Open(ctx, binding, nil)
	took := time.Since(begun).Round(time.Millisecond)
	if !add("container", err, fmt.Sprintf("made, reached and ready in %s", took)) {
		return
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		if err := errors.Join(env.Detach(ctx), b.Remove(ctx, binding)); err != nil {
			add("removal", err, "")
		}
	}()
	if !p.Confined() {
		add("confinement", nil, "not used: the profile lets commands write everywhere")
		return
	}
	detail, err := confined(ctx, env)
	add("confinement", err, detail)
}

// trial is the profile for a container that is removed at once: nothing that
// depends on an opened folder, nothing that is kept, and no right to write to a
// workspace that is the host's.
func trial(p profile.Profile) profile.Profile {
	p.Persistent, p.Shared, p.ContainerPolicy = false, false, profile.PolicyPerSession
	p.Lifetime = checkTimeout
	p.Pull = pullNever
	p.WorkspaceSource = "" // nothing is sent for a trial
	if strings.Contains(p.HostWorkspace, profile.WorkspaceFolder) {
		p.HostWorkspace = ""
	}
	p.MountReadOnly = p.HostWorkspace != ""
	p.Mounts = slices.DeleteFunc(slices.Clone(p.Mounts), func(m profile.Mount) bool {
		return strings.Contains(m.Source, profile.WorkspaceFolder)
	})
	return p
}

// proof writes what a read-only command may write, its temporary directory, and then what
// it may not: the directory above that, which is its user's own and on the same file
// system, so that only Landlock can be what refuses it. The shell says why in English.
const proof = `LC_ALL=C; above=${TMPDIR%/*}; name=.caisson-proof
echo proof > "$TMPDIR/$name" && rm "$TMPDIR/$name" && test -w "$above/" || exit 3
echo proof > "$above/$name" || exit 1
rm "$above/$name"`

// confined has a read-only command try the [proof].
func confined(ctx context.Context, env backends.Environment) (string, error) {
	arguments, err := json.Marshal(map[string]string{"command": proof})
	if err != nil {
		return "", err
	}
	result, err := env.Call(ctx, tool.Request{ID: "check", Name: "bash", Arguments: arguments, Mode: tool.ReadOnly})
	var failure *tool.Error
	if errors.As(err, &failure) && failure.Kind == tool.Unsupported && strings.Contains(failure.Message, "shell") {
		return "the image has no shell to try it with", nil
	}
	if err != nil {
		return "", err
	}
	var ran struct {
		ExitCode      int    `json:"exit_code"`
		Stderr        string `json:"stderr"`
		SandboxDenied bool   `json:"sandbox_denied"`
	}
	if err := json.Unmarshal(result.StructuredContent, &ran); err != nil {
		return "", err
	}
	switch {
	case ran.ExitCode == 0:
		return "", tool.Errorf(tool.Internal, "a read-only command could write outside of its temporary directory").
			WithHint("report this: commands are not confined in this container")
	case ran.ExitCode == 1 && ran.SandboxDenied:
		return "a write of a read-only command was refused", nil
	}
	return "", tool.Errorf(tool.Internal, "whether commands are confined could not be tried: the command exited with %d: %s",
		ran.ExitCode, strings.TrimSpace(ran.Stderr)).
		WithHint("have the container's user be able to write to its temporary directory: look at the room, and at what is mounted there")
}
