package remote

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/wire"
)

// What a program, a job and a cancelled call are given beyond their time stands where
// people read about it.
func TestGracesAreDocumented(t *testing.T) {
	seconds := func(format string, s float64) string { return fmt.Sprintf(format, s) }
	for file, texts := range map[string][]string{
		"../wire/PROTOCOL.md": {
			seconds("The host waits %g s longer", programGrace.Seconds()),
			seconds("%g s after its `timeout_ms`", jobGrace.Seconds()),
			seconds("The host waits %g s for that", wire.DefaultCancelGrace.Seconds()),
		},
		"../../rpc/PROTOCOL.md": {seconds("is cancelled %g s later", programGrace.Seconds())},
		"../../session/config/CONFIG.md": {
			seconds("a program, up to %g s", programGrace.Seconds()),
			seconds("are collected, up to %g s", jobGrace.Seconds()),
			seconds("up %g s later as of unknown outcome", wire.DefaultCancelGrace.Seconds()),
		},
	} {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(string(raw)), " ")
		for _, want := range texts {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %q", file, want)
			}
		}
	}
}
