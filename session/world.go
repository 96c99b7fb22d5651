package session

import (
	"fmt"
	"path/filepath"

	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session/store"
)

// directory is what the tools of a place see as the workspace.
type directory struct {
	// host is the folder of this machine that it is, links resolved; "" for one
	// that is in the environment only.
	host string
	// engine tells machines apart: the daemon that mounts the folder, "" for this
	// one.
	engine string
	// identity is the environment's where nothing else has the directory.
	identity string
}

func (d directory) String() string {
	switch {
	case d.host == "":
		return "a directory of its own"
	case d.engine != "":
		return fmt.Sprintf("%s on %s", d.host, d.engine)
	}
	return d.host
}

// workspaceOf is the directory that the tools of a place work in.
func workspaceOf(p store.Place, folder string) directory {
	host := ""
	switch p.Profile.Backend {
	case profile.Local:
		host = folder
	case profile.WASM:
		if len(p.Profile.Preopens) > 0 {
			host = p.Profile.Preopens[0].Host // the first is the root
		}
	default:
		host = p.Profile.HostWorkspace
	}
	if host == "" {
		return directory{identity: p.Environment}
	}
	if real, err := filepath.EvalSymlinks(host); err == nil {
		host = real
	}
	return directory{host: filepath.Clean(host), engine: p.Profile.DockerHost}
}

// families are the tools that work on the workspace, by the names that overrides
// match: all but those of plugins.
func families() []toolName {
	return []toolName{
		{tool.GroupFile, "read_file"},
		{tool.GroupFile, "list_files"},
		{tool.GroupFile, "write_file"},
		{tool.GroupFile, "edit_file"},
		{tool.GroupSearch, "glob"},
		{tool.GroupSearch, "grep"},
		{tool.GroupShell, "bash"},
		{tool.GroupGit, "git"},
		{tool.GroupProcess, "process"},
		{tool.GroupArtifact, presentArtifact},
		{tool.GroupCode, codeRun},
	}
}

// oneDirectory refuses a session whose tools, but those of plugins, see more than one
// directory: two file systems must never pretend to be one.
func oneDirectory(s *store.Session) error {
	to, err := newRoutes(s.Overrides, s.All())
	if err != nil {
		return err
	}
	all := s.All()
	first := families()[0]
	here := all[to.find(first)]
	for _, t := range families()[1:] {
		other := all[to.find(t)]
		a, b := workspaceOf(here, s.Folder), workspaceOf(other, s.Folder)
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
		switch p.Profile.Backend {
		case profile.Docker, profile.Apptainer:
			if folder != "" && workspaceOf(p, folder).host == "" {
				return fmt.Sprintf(`Write "host_workspace": %q in the profile %q, or let one override send all these tools to one profile.`, profile.WorkspaceFolder, p.Profile.Name)
			}
		case profile.WASM:
			if folder != "" && workspaceOf(p, folder).host == "" {
				return fmt.Sprintf(`Write "preopens": [%q] in the profile %q, or let one override send all these tools to one profile.`, "/::"+profile.WorkspaceFolder, p.Profile.Name)
			}
		}
	}
	return "Let one override send all these tools to one profile; only plugins may work elsewhere."
}
