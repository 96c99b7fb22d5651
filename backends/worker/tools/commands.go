package tools

import (
	"context"

	"github.com/caisson-dev/caisson/backends/tool"
)

// Commands runs programs in the workspace. *process.Manager implements it.
type Commands interface {
	// Run runs a command to its end. It fails when the command could not be
	// started, with [tool.Unsupported] when there is no shell or no such
	// program, and when ctx ended; then the whole process group is dead.
	Run(ctx context.Context, c tool.Command) (tool.CommandResult, error)
	// Start starts a background process.
	Start(ctx context.Context, r tool.StartRequest) (tool.Process, error)
	List(ctx context.Context) ([]tool.Process, error)
	Get(ctx context.Context, id string) (tool.Process, error)
	Read(ctx context.Context, id string, o tool.ReadOptions) (tool.ReadResult, error)
	Write(ctx context.Context, id string, data []byte) (tool.Process, error)
	Stop(ctx context.Context, id string) (tool.Process, error)
}
