package main

import (
	"github.com/caisson-dev/caisson/backends/wasm/engine"
	"github.com/caisson-dev/caisson/backends/worker/supervise"
)

// runWorkerCommand runs the subcommands of the far end, `worker`, `init`,
// `attach` and `site`, and that of WebAssembly guests, `wasm-engine`, when args
// (without the program's name) begin with one of them. They
// parse their flags with package flag before anything else of the program is
// set up, because they are started often and must be there at once.
func runWorkerCommand(args []string) (handled bool, code int) {
	if handled, code := engine.Main(args); handled {
		return handled, code
	}
	return supervise.Main(args)
}
