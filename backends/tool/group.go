package tool

// Group is the family that a tool belongs to, the left half of the names that
// rules and overrides match ("shell.bash").
type Group string

// The groups.
const (
	GroupFile     Group = "file"
	GroupSearch   Group = "search"
	GroupShell    Group = "shell"
	GroupGit      Group = "git"
	GroupProcess  Group = "process"
	GroupArtifact Group = "artifact"
	GroupCode     Group = "code"
	GroupPlugins  Group = "plugins"
)

// Groups are all groups, in the order in which people are told of them.
func Groups() []Group {
	return []Group{GroupFile, GroupSearch, GroupShell, GroupGit, GroupProcess, GroupArtifact, GroupCode, GroupPlugins}
}

// builtIn are the tools that workers have built in, in the order of [Groups].
var builtIn = [...]struct {
	name  string
	group Group
}{
	{"read_file", GroupFile},
	{"list_files", GroupFile},
	{"write_file", GroupFile},
	{"edit_file", GroupFile},
	{"glob", GroupSearch},
	{"grep", GroupSearch},
	{"bash", GroupShell},
	{"git", GroupGit},
	{"process", GroupProcess},
	{"present_artifact", GroupArtifact},
}

// BuiltIn are the names of the tools that workers have built in, in the order of
// [Groups]. Every other tool that an environment has is of [GroupPlugins].
func BuiltIn() []string {
	names := make([]string, len(builtIn))
	for i, t := range builtIn {
		names[i] = t.name
	}
	return names
}

// GroupOf is the group of the tool of this name that workers have built in, and
// [GroupPlugins] for every other name.
func GroupOf(name string) Group {
	for _, t := range builtIn {
		if t.name == name {
			return t.group
		}
	}
	return GroupPlugins
}

// Commands reports whether the tools of the group run commands, or work with what
// they started: an environment may have to make something for them that it does
// not need for files.
func (g Group) Commands() bool { return g == GroupShell || g == GroupGit || g == GroupProcess }
