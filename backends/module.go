package backends

import (
	"context"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// ModuleRunner is an Environment that runs WebAssembly modules: WASI preview 1
// commands, each call in a fresh instance.
type ModuleRunner interface {
	// RunModule runs the module's _start to its end. An exit code other than 0 is a
	// result. What stopped the guest, such as its fuel, is [tool.GuestFailed] with
	// a reason, and the time limit is [tool.Timeout]; both carry the fuel that was
	// left.
	RunModule(ctx context.Context, r ModuleRequest) (ModuleResult, error)
}

// ModuleRequest asks for one run of a module.
type ModuleRequest struct {
	// ID names the call in events and errors.
	ID string
	// Path is the module's file on this machine, and SHA256 what it must hash to,
	// in 64 hex digits.
	Path   string
	SHA256 string
	// Args follow the module's own name.
	Args  []string
	Stdin []byte
	// Mode read_only makes every directory of the guest read-only.
	Mode tool.Mode
	// Timeout bounds the call; 0 means the profile's max_execution_time.
	Timeout time.Duration
	// MaxOutputBytes bounds standard output and standard error together; what is
	// more fails the call. 0 means the profile's limit.
	MaxOutputBytes int64
}

// ModuleResult is what a run came to.
type ModuleResult struct {
	Stdout, Stderr []byte
	ExitCode       int
	FuelRemaining  uint64
	Duration       time.Duration
}
