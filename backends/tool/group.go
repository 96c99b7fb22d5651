package tool

// GroupOf is the group of the tool of this name that workers have built in, and
// [GroupPlugins] for every other name.
func GroupOf(name string) Group {
	switch name {
	case "read_file", "list_files", "write_file", "edit_file":
		return GroupFile
	case "glob", "grep":
		return GroupSearch
	case "bash":
		return GroupShell
	case "git":
		return GroupGit
	case "process":
		return GroupProcess
	case "present_artifact":
		return GroupArtifact
	default:
		return GroupPlugins
	}
}
