// Caisson-worker is the far end alone: what runs inside an environment, without
// all that only the service beside an editor needs. Releases have it beside the
// program as caisson-OS-ARCH; where it is missing the program itself, which has
// the same far end in it, goes into environments of its own platform.
package main

import (
	"fmt"
	"os"

	"github.com/caisson-dev/caisson/backends/worker/supervise"
)

func main() {
	handled, code := supervise.Main(os.Args[1:])
	if !handled {
		fmt.Fprintln(os.Stderr, "caisson: this build is started by Caisson inside environments and has no other commands")
		code = supervise.ExitUsage
	}
	os.Exit(code)
}
