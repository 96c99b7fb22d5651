package session

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session/store"
)

// directory is what the tools of a place see as the workspace.
type directory struct {
	// host is the folder of this machine that it is, links resolved; "" for one
	// that is in the environment only.
	host string
	// machine is the one that the folder is on, "" for this one.
	machine string
	// identity is the environment's where nothing else has the directory.
	identity string
	// inside are the folders that are mounted in it over what is there, as in
	// "sub from /srv".
	inside string
}

func (d directory) String() string {
	text := d.host
	switch {
	case d.host == "":
		text = "a directory of its own"
	case d.machine != "":
		text = fmt.Sprintf("%s on %s", d.host, d.machine)
	}
	if d.inside != "" {
		text += " with " + d.inside + " mounted in it"
	}
	return text
}

// workspaceOf is the directory that the tools of a place work in.
func (m *Manager) workspaceOf(p store.Place, folder string) (directory, error) {
	host := hostFolder(p.Profile, folder)
	if host == "" {
		return directory{identity: p.Environment}, nil
	}
	d := directory{host: filepath.Clean(host)}
	backend, _ := m.o.Registry.Get(p.Profile.Backend)
	if locator, ok := backend.(backends.Locator); ok {
		var err error
		if d.machine, err = locator.Machine(p.Profile); err != nil {
			return directory{}, at(p.Profile, known(err))
		}
	}
	if d.machine == "" {
		d.host = resolved(d.host)
	}
	d.inside = mountedInside(p.Profile, d)
	return d, nil
}

// resolved is the folder with its links resolved, where it is there.
func resolved(folder string) string {
	if target, err := filepath.EvalSymlinks(folder); err == nil {
		return target
	}
	return filepath.Clean(folder)
}

// mountedInside are the profile's mounts in the workspace that show something else
// there than the workspace has. Who has them sees other files by the same paths.
func mountedInside(p profile.Profile, d directory) string {
	var all []string
	for _, mount := range p.Mounts {
		name, below := strings.CutPrefix(path.Clean(mount.Target), strings.TrimSuffix(path.Clean(p.Workspace), "/")+"/")
		if !below {
			continue
		}
		source := filepath.Clean(mount.Source)
		if d.machine == "" {
			source = resolved(source)
		}
		if source != filepath.Join(d.host, filepath.FromSlash(name)) {
			all = append(all, name+" from "+source)
		}
	}
	slices.Sort(all)
	return strings.Join(all, " and ")
}

// hostFolder is the folder of the host that is the workspace of an environment of the
// profile, for a session in the opened folder; "" when the workspace is in the
// environment itself.
func hostFolder(p profile.Profile, folder string) string {
	switch p.Backend {
	case profile.Local:
		return folder
	case profile.WASM:
		if len(p.Preopens) == 0 {
			return ""
		}
		return p.Preopens[0].Host // the first is the root
	default:
		return p.HostWorkspace
	}
}

// families are the tools that work on the workspace, by the names that overrides
// match: all but those of plugins.
func families() []toolName {
	var all []toolName
	for _, name := range tool.BuiltIn() {
		all = append(all, toolName{tool.GroupOf(name), name})
	}
	return append(all, toolName{tool.GroupCode, codeRun})
}

// oneDirectory refuses a session whose tools, but those of plugins, see more than one
// directory: two file systems must never pretend to be one.
func (m *Manager) oneDirectory(s *store.Session) error {
	to, err := newRoutes(s.Overrides, s.All())
	if err != nil {
		return err
	}
	all := s.All()
	seen := make([]directory, len(all))
	for i, p := range all {
		if seen[i], err = m.workspaceOf(p, s.Folder); err != nil {
			return err
		}
	}
	first := families()[0]
	here, a := all[to.find(first)], seen[to.find(first)]
	for _, t := range families()[1:] {
		other, b := all[to.find(t)], seen[to.find(t)]
		if a == b {
			continue
		}
		return tool.Errorf(tool.ConfigInvalid, "%s would work in %s (profile %q) and %s in %s (profile %q), which are two directories",
			first, a, here.Profile.Name, t, b, other.Profile.Name).
			WithPath("execution_environments.overrides").
			WithHint("%s", oneDirectoryHint(here, other, s.Folder))
	}
	return nil
}

// oneDirectoryHint says how two places come to see one directory.
func oneDirectoryHint(a, b store.Place, folder string) string {
	for _, p := range []store.Place{a, b} {
		if host := hostFolder(p.Profile, folder); host != "" && mountedInside(p.Profile, directory{host: resolved(host)}) != "" {
			return fmt.Sprintf("Mount it beside the workspace in the profile %q, or let one override send all these tools to one profile.", p.Profile.Name)
		}
	}
	for _, p := range []store.Place{a, b} {
		switch p.Profile.Backend {
		case profile.Docker, profile.Apptainer:
			if folder != "" && hostFolder(p.Profile, folder) == "" {
				return fmt.Sprintf(`Write "host_workspace": %q in the profile %q, or let one override send all these tools to one profile.`, profile.WorkspaceFolder, p.Profile.Name)
			}
		case profile.WASM:
			if folder != "" && hostFolder(p.Profile, folder) == "" {
				return fmt.Sprintf(`Write "preopens": [%q] in the profile %q, or let one override send all these tools to one profile.`, "/::"+profile.WorkspaceFolder, p.Profile.Name)
			}
		}
	}
	return "Let one override send all these tools to one profile; only plugins may work elsewhere."
}
