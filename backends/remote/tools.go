package remote

import (
	"slices"

	"github.com/caisson-dev/caisson/backends/tool"
)

// offered are the tools of a far end that has listed some. Those are the ones beyond the
// workspace's, which it has as well; one that lists a workspace tool says by that which
// of them it has, and how they are described.
func offered(listed, workspace []tool.Description) []tool.Description {
	if slices.ContainsFunc(listed, func(d tool.Description) bool { return slices.Contains(workspaceTools[:], d.Name) }) {
		return listed
	}
	return slices.Concat(workspace, listed)
}
