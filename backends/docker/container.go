package docker

import (
	"fmt"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// refuse says which members of the profile ask for what is not there.
func refuse(p profile.Profile) error {
	switch {
	case len(p.AllowedHosts) > 0:
		return unsupported(p, "allowed_hosts").WithHint("use network none or enabled")
	}
	return nil
}

func unsupported(p profile.Profile, what string) *tool.Error {
	return tool.Errorf(tool.Unsupported, "the profile %q asks for %s, which the docker backend cannot do yet", p.Name, what)
}

// refuseLimits says which limits of the profile this daemon would leave out
// without a word. The limit of processes is none that a user asks for, as a
// rule, and its lack is only reported.
func refuseLimits(p profile.Profile, d daemonInfo, report backends.Progress) error {
	lacks := func(member string) error {
		return tool.Errorf(tool.Unsupported, "the docker daemon cannot hold the limit %s of the profile %q", member, p.Name).
			WithHint("a rootless daemon needs cgroups v2 with delegated controllers; or leave %s out of the profile", member)
	}
	switch {
	case p.Memory > 0 && !d.Limits.Memory:
		return lacks("memory")
	case p.CPUs > 0 && !d.Limits.CPU:
		return lacks("cpus")
	case p.PidsLimit > 0 && !d.Limits.Pids:
		report.Report("this docker daemon cannot limit the number of processes: pids_limit has no effect")
	}
	return nil
}

// spec is the container of a binding. worker is the mount of the worker's
// volume, nil when the image has its own; share is the shared directory of the
// host, "" for none.
func (b *Backend) spec(binding backends.Binding, d daemonInfo, e endpoint, worker *mountSpec, share string) containerSpec {
	p := binding.Profile
	labels := b.labels(kindEnvironment, binding, nil)
	if share != "" {
		labels[labelShare] = share
	}
	s := containerSpec{
		Name:       binding.Environment,
		Image:      p.Image,
		Platform:   parsePlatform(p.Platform),
		User:       b.user(p, d, e),
		Entrypoint: []string{programOf(p)},
		Args:       initArgs(p),
		Labels:     labels,

		Network:      networkMode(p),
		ReadOnlyRoot: p.ReadOnlyRoot,
		Mounts:       mounts(p, worker, share, labels),

		NanoCPUs: int64(p.CPUs * 1e9),
		Memory:   p.Memory,
		Pids:     p.PidsLimit,
		ShmSize:  p.ShmSize,
		Runtime:  p.Runtime,

		AutoRemove:  !p.Persistent,
		StopTimeout: p.ShutdownTimeout,
	}
	if !covered(s.Mounts, "/tmp") {
		s.Tmpfs = map[string]string{"/tmp": tmpfsOptions(p)}
	}
	return s
}

// networkMode is the engine's word for the profile's.
func networkMode(p profile.Profile) string {
	switch p.Network {
	case "enabled":
		return "bridge"
	case "host":
		return "host"
	default:
		return "none"
	}
}

func tmpfsOptions(p profile.Profile) string {
	exec := "noexec"
	if !p.TmpfsNoexec {
		exec = "exec" // the engine's own default is noexec
	}
	options := "rw,nosuid,nodev," + exec + ",mode=1777"
	if p.TmpfsSize > 0 {
		options += ",size=" + strconv.FormatInt(p.TmpfsSize, 10)
	}
	return options
}

// covered reports whether a mount stands at the target.
func covered(all []mountSpec, target string) bool {
	for _, m := range all {
		if path.Clean(m.Target) == target {
			return true
		}
	}
	return false
}

// mounts are the worker, the state, the workspace and what the profile adds.
// State and workspace are anonymous volumes: they go with the container,
// whoever removes it, and the quick way out of a layered file system.
func mounts(p profile.Profile, worker *mountSpec, share string, labels map[string]string) []mountSpec {
	all := []mountSpec{{Kind: volumeMount, Target: stateDir, NoCopy: true, Labels: labels}}
	if worker != nil {
		all = append(all, *worker)
	}
	if p.HostWorkspace != "" {
		all = append(all, mountSpec{Kind: bindMount, Source: p.HostWorkspace, Target: p.Workspace, ReadOnly: p.MountReadOnly})
	} else {
		// With what the image has there, if anything.
		all = append(all, mountSpec{Kind: volumeMount, Target: p.Workspace, Labels: labels})
	}
	if share != "" {
		all = append(all, mountSpec{Kind: bindMount, Source: share, Target: shareDir, ReadOnly: true})
	}
	for _, m := range p.Mounts {
		all = append(all, mountSpec{Kind: bindMount, Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly})
	}
	return all
}

// user is who runs inside: the profile's, else on a bind-mounted workspace of
// this machine the caller, so that files there belong to them, else the image's.
func (b *Backend) user(p profile.Profile, d daemonInfo, e endpoint) string {
	switch {
	case p.User != "":
		return p.User
	case p.HostWorkspace == "" || !e.near() || runtime.GOOS != "linux":
		return ""
	case d.Rootless:
		// Root inside is the daemon's user outside, and that is the caller.
		return "0:0"
	default:
		return b.caller
	}
}

// callerIDs is this process's user and group.
func callerIDs() string { return fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()) }

// isRoot reports whether a user, as a container's settings write it, is root.
func isRoot(user string) bool {
	name, _, _ := strings.Cut(user, ":")
	return name == "" || name == "root" || name == "0"
}

// ids are the numbers of a user that is written with them; a group that is not
// given, or by name, is 0: who owns a directory needs its group for nothing.
func ids(user string) (uid, gid int, ok bool) {
	name, group, _ := strings.Cut(user, ":")
	uid, err := strconv.Atoi(name)
	if err != nil || uid < 0 {
		return 0, 0, false
	}
	if gid, err = strconv.Atoi(group); err != nil || gid < 0 {
		gid = 0
	}
	return uid, gid, true
}
