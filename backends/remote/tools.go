package remote

import (
	"slices"

	"github.com/caisson-dev/caisson/backends/tool"
)

// offered are the tools of a far end that listed some. One that lists none of the workspace
// tools has all of these beside what it lists. One that lists any of them has those that it
// lists, as it describes them.
func offered(listed, workspace []tool.Description) []tool.Description {
	if slices.ContainsFunc(listed, func(d tool.Description) bool { return tool.GroupOf(d.Name) != tool.GroupPlugins }) {
		return listed
	}
	return slices.Concat(workspace, listed)
}
