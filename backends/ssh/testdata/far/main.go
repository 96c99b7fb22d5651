// Far is the far end alone: the program that tests put on machines.
package main

import (
	"os"

	"github.com/caisson-dev/caisson/backends/worker/supervise"
)

func main() {
	_, code := supervise.Main(os.Args[1:])
	os.Exit(code)
}
