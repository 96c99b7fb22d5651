package main

import "github.com/spf13/cobra"

// runtimeCommand gives what other commands do the names by which people look for
// it who know container tools.
func (a *app) runtimeCommand() *cobra.Command {
	cmd := group("runtime", "Look at, try and choose where tools run",
		a.profileListCommand("info"), a.profileCheckCommand("health [PROFILE]"), a.profileDefaultCommand("switch PROFILE"),
		group("wasm", "What runs WebAssembly", a.toolsListCommand("list")),
		group("docker", "What runs containers", a.pruneCommand("prune", "docker")),
	)
	cmd.Long = `The same as "caisson profile list", "profile check", "profile default", "tools list"
and "prune --backend docker".`
	return cmd
}
