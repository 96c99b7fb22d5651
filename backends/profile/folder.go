package profile

import (
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/backends/tool"
)

// InFolder returns the profile with [WorkspaceFolder] replaced by the opened
// folder of the host. A profile that needs a folder and gets "" is an error.
func (p Profile) InFolder(folder string) (Profile, error) {
	if !p.needsFolder() {
		return p, nil
	}
	if folder == "" {
		return p, tool.Errorf(tool.ConfigInvalid, "profile %q works in the opened folder, and no folder is open", p.Name).
			WithHint("Open a folder, or choose a profile without %s and workspace_source copy.", WorkspaceFolder)
	}
	if p.WorkspaceSource == "copy" {
		// A shared environment holds the copy of one folder.
		if err := p.set("workspace_source", []string{"copy", folder}); err != nil {
			return p, err
		}
	}
	if replace(&p.HostWorkspace, folder) {
		if err := p.set("host_workspace", p.HostWorkspace); err != nil {
			return p, err
		}
	}
	p.Mounts = slices.Clone(p.Mounts)
	changed := false
	for i := range p.Mounts {
		changed = replace(&p.Mounts[i].Source, folder) || changed
	}
	if changed {
		if err := p.set("mounts", p.Mounts); err != nil {
			return p, err
		}
	}
	p.Preopens = slices.Clone(p.Preopens)
	changed = false
	for i := range p.Preopens {
		changed = replace(&p.Preopens[i].Host, folder) || changed
	}
	if changed {
		if err := p.set("preopens", p.Preopens); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (p *Profile) needsFolder() bool {
	if p.WorkspaceSource == "copy" || strings.HasPrefix(p.HostWorkspace, WorkspaceFolder) {
		return true
	}
	return slices.ContainsFunc(p.Mounts, func(m Mount) bool { return strings.HasPrefix(m.Source, WorkspaceFolder) }) ||
		slices.ContainsFunc(p.Preopens, func(o Preopen) bool { return strings.HasPrefix(o.Host, WorkspaceFolder) })
}

// replace puts the folder in the place of its variable.
func replace(s *string, folder string) bool {
	rest, ok := strings.CutPrefix(*s, WorkspaceFolder)
	if ok {
		*s = strings.TrimRight(folder, "/") + rest
	}
	return ok
}
