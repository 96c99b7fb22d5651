package adapterkit

import (
	"maps"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// sameBinding says why in is another binding than b, which never changes. A host
// that comes back may leave the environment out, and may by now require the
// workspace to exist, which it does.
func sameBinding(b, in wire.Initialize) error {
	var differs string
	switch {
	case in.Root != b.Root:
		differs = "root"
	case in.Session != b.Session:
		differs = "session"
	case in.Identity != b.Identity:
		differs = "identity"
	case in.Environment != nil && !maps.Equal(in.Environment, b.Environment):
		differs = "environment"
	case !in.RequireExistingWorkspace && b.RequireExistingWorkspace:
		differs = "require_existing_workspace"
	case in.RemoveWorkspaceOnExit != b.RemoveWorkspaceOnExit:
		differs = "remove_workspace_on_exit"
	default:
		return nil
	}
	return tool.Errorf(tool.Denied, "the adapter is bound to another %s, and a binding never changes", differs).WithPath(differs)
}
