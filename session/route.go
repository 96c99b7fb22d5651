package session

import "github.com/caisson-dev/caisson/backends/tool"

// toolGroup is the group that a tool of this name belongs to.
func toolGroup(name string) tool.Group { return tool.GroupOf(name) }

// placeFor is where a tool of the group runs. The name is a tool's, or that of
// what has the events of one: process.start and shell.job go where shell.bash goes.
func (s *live) placeFor(tool.Group, string) (*place, error) { return s.main, nil }
