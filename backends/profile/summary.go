package profile

import (
	"fmt"
	"strings"

	"github.com/caisson-dev/caisson/backends/tool"
)

// Summary describes the profile in one line for people who choose one.
func (p Profile) Summary() string {
	parts := []string{p.place()}
	add := func(when bool, format string, args ...any) {
		if when {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(p.HostWorkspace != "", "works in %s", p.HostWorkspace)
	add(p.WorkspaceSource == "copy", "copy of the opened folder")
	add(p.in(images), "network %s", p.Network)
	add(p.CPUs > 0, "%g cpus", p.CPUs)
	add(p.Memory > 0, "%s memory", FormatSize(p.Memory))
	add(p.ReadOnlyRoot, "read-only root")
	add(p.ContainerPolicy == PolicyPerCall, "a fresh container for each call")
	add(p.Shared, "shared")
	add(p.Persistent, "persistent")
	add(p.PermissionMode != tool.Standard, "%s", p.PermissionMode)
	return strings.Join(parts, ", ")
}

func (p *Profile) place() string {
	switch p.Backend {
	case Local:
		return "this machine"
	case SSH:
		host := p.Host
		if p.User != "" {
			host = p.User + "@" + host
		}
		if p.Port != 0 {
			host = fmt.Sprintf("%s port %d", host, p.Port)
		}
		return "ssh " + host
	case Command:
		return "adapter " + p.Command[0]
	case WASM:
		return "WebAssembly on " + p.Engine
	}
	return p.Backend + " " + p.Image
}
