// Engine is the engine alone, as tests start it: built without the race detector,
// under which compiling a guest takes a dozen times as long.
package main

import (
	"os"

	"github.com/caisson-dev/caisson/backends/wasm/engine"
)

func main() {
	_, code := engine.Main(os.Args[1:])
	os.Exit(code)
}
