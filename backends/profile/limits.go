package profile

import (
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// Limits tighten a profile: constraints of an editor and of a project's file.
// Members that are zero say nothing. A limit above the profile's own is met by
// it and changes nothing.
type Limits struct {
	Timeout        time.Duration
	MaxOutputBytes int64
	ReadOnly       bool // commands and tools write nothing but temporary files
	Network        string
	CPUs           float64
	Memory         int64 // bytes
	PidsLimit      int64
	TmpfsNoexec    *bool
	Image          string
}

// Constrain returns the profile within the limits. What its backend cannot
// limit is [tool.Unsupported], what would widen it [tool.Denied]; the error's
// path is the limit's name.
func (p Profile) Constrain(l Limits) (Profile, error) {
	if l.Timeout > 0 {
		p.Timeout = min(p.Timeout, l.Timeout)
	}
	if l.MaxOutputBytes > 0 {
		p.MaxOutputBytes = min(p.MaxOutputBytes, l.MaxOutputBytes)
	}
	for _, apply := range []func(*Profile, Limits) error{
		constrainMode, constrainNetwork, constrainImage, constrainTmpfs, constrainResources,
	} {
		if err := apply(&p, l); err != nil {
			return p, err
		}
	}
	return p, nil
}

func constrainMode(p *Profile, l Limits) error {
	if !l.ReadOnly || p.MaxPermissionMode == tool.ReadOnly {
		return nil
	}
	p.PermissionMode, p.MaxPermissionMode = tool.ReadOnly, tool.ReadOnly
	return p.set("max_permission_mode", tool.ReadOnly)
}

func constrainNetwork(p *Profile, l Limits) error {
	switch {
	case l.Network == "" || l.Network == p.Network:
		return nil
	case !p.in(images | inWASM):
		return p.cannot("network")
	case l.Network != "none":
		return tool.Errorf(tool.Denied, "profile %q has the network %s, which a constraint cannot widen to %s", p.Name, p.Network, l.Network).
			WithPath("network")
	}
	p.Network = l.Network
	return p.set("network", l.Network)
}

func constrainImage(p *Profile, l Limits) error {
	switch {
	case l.Image == "" || l.Image == p.Image:
		return nil
	case !p.in(images):
		return p.cannot("image")
	}
	if err := check(l.Image, []func(string) *Error{imageName, noNUL}); err != nil {
		return tool.Errorf(tool.InvalidParams, "image: %w", err).WithPath("image")
	}
	p.Image = l.Image
	return p.set("image", l.Image)
}

func constrainTmpfs(p *Profile, l Limits) error {
	switch {
	case l.TmpfsNoexec == nil || p.in(inDocker) && *l.TmpfsNoexec == p.TmpfsNoexec || p.in(inWASM) && *l.TmpfsNoexec:
		return nil
	case !p.in(inDocker):
		return p.cannot("tmpfsNoexec")
	case !*l.TmpfsNoexec:
		return tool.Errorf(tool.Denied, "profile %q lets nothing in /tmp be executed, which a constraint cannot widen", p.Name).
			WithPath("tmpfsNoexec")
	}
	p.TmpfsNoexec = true
	return p.set("tmpfs_noexec", true)
}

// constrainGuest applies the limits of resources to a WebAssembly guest: it has
// memory, one thread, no processes, and no file that can be executed.
func constrainGuest(p *Profile, l Limits) error {
	if l.CPUs > 0 && l.CPUs < 1 {
		return p.cannot("cpus")
	}
	if l.Memory == 0 {
		return nil
	}
	const page = 64 << 10
	if l.Memory < page {
		return p.cannot("memory")
	}
	if pages := l.Memory / page; pages < int64(p.MaxMemoryPages) {
		p.MaxMemoryPages = uint32(pages)
		return p.set("max_memory_pages", pages)
	}
	return nil
}

func constrainResources(p *Profile, l Limits) error {
	if p.in(inWASM) {
		return constrainGuest(p, l)
	}
	if l.CPUs > 0 {
		if !p.in(images) {
			return p.cannot("cpus")
		}
		if p.CPUs == 0 || l.CPUs < p.CPUs {
			if p.in(inVercel|inDaytona) && l.CPUs != float64(int64(l.CPUs)) {
				return tool.Errorf(tool.Unsupported, "profile %q: %s takes whole cpus only", p.Name, p.Backend).WithPath("cpus")
			}
			p.CPUs = l.CPUs
			if err := p.set("cpus", l.CPUs); err != nil {
				return err
			}
		}
	}
	if l.Memory > 0 {
		if !p.in(images &^ inVercel) {
			return p.cannot("memory")
		}
		if p.Memory == 0 || l.Memory < p.Memory {
			if l.Memory < MinMemory {
				return tool.Errorf(tool.Unsupported, "profile %q: an environment has at least %s of memory, of which what runs the commands takes most", p.Name, FormatSize(MinMemory)).WithPath("memory")
			}
			if p.in(inDaytona) && l.Memory%(1<<30) != 0 {
				return tool.Errorf(tool.Unsupported, "profile %q: daytona takes memory in whole GiB only", p.Name).WithPath("memory")
			}
			p.Memory = l.Memory
			if err := p.set("memory", l.Memory); err != nil {
				return err
			}
		}
	}
	if l.PidsLimit > 0 {
		if !p.in(inDocker | inApptainer) {
			return p.cannot("pids_limit")
		}
		if p.PidsLimit == 0 || l.PidsLimit < p.PidsLimit {
			p.PidsLimit = l.PidsLimit
			return p.set("pids_limit", l.PidsLimit)
		}
	}
	return nil
}

// cannot is a limit that the backend has no means to hold.
func (p *Profile) cannot(limit string) error {
	return tool.Errorf(tool.Unsupported, "profile %q: a %s environment cannot be limited in %s", p.Name, p.Backend, limit).
		WithHint("Leave the constraint out, or choose a profile whose backend can hold it.").WithPath(limit)
}
