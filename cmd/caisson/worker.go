package main

import "github.com/caisson-dev/caisson/backends/worker/supervise"

// runWorkerCommand runs the subcommands of the far end, `worker`, `init`,
// `attach` and `site`, when args (without the program's name) begin with one of them. They
// parse their flags with package flag before anything else of the program is
// set up, because they are started often and must be there at once.
func runWorkerCommand(args []string) (handled bool, code int) { return supervise.Main(args) }
