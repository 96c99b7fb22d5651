package local

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/backends/worker/supervise"
)

// The test binary is the worker too.
func TestMain(m *testing.M) {
	if handled, code := supervise.Main(os.Args[1:]); handled {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}
