//go:build linux

// Older is the far end alone, in a container whose kernel has no Landlock.
package main

import (
	"fmt"
	"os"

	"github.com/caisson-dev/caisson/backends/worker/confine/confinetest"
	"github.com/caisson-dev/caisson/backends/worker/supervise"
)

func main() {
	if err := confinetest.WithoutLandlock(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, code := supervise.Main(os.Args[1:])
	os.Exit(code)
}
