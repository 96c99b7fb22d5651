// Far is the far end alone: the subcommands that run in a container.
package main

import (
	"os"

	"github.com/caisson-dev/caisson/backends/worker/supervise"
)

func main() {
	if handled, code := supervise.Main(os.Args[1:]); handled {
		os.Exit(code)
	}
	os.Exit(2)
}
