package wire

import (
	"fmt"
	"maps"

	"github.com/caisson-dev/caisson/backends/tool"
)

// Same says why in is another binding than b, which never changes; who, such as
// "the worker", is bound to b. A host that comes back may leave the environment out,
// which means as first given, and may by now require the workspace to exist, which
// it does. The error is [tool.Denied] and has the member that differs as its path.
func (b Initialize) Same(in Initialize, who string) error {
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
	return tool.Errorf(tool.Denied, "%s is bound to another %s, and a binding never changes", who, differs).WithPath(differs)
}

// sameProtocol is what to do about two ends that speak different versions.
func sameProtocol() string {
	return fmt.Sprintf("use a service and a worker of the same release, or an adapter that speaks protocol %d", Version)
}
