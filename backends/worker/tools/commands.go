package tools

import (
	"context"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/process"
)

// Commands runs programs in the workspace. [*process.Manager] implements it.
type Commands interface {
	// Run runs a command to its end, or until it is adopted.
	Run(ctx context.Context, c process.Command) (process.Result, error)
	// Start starts a background process.
	Start(ctx context.Context, r tool.StartRequest) (tool.Process, error)
	List(ctx context.Context) ([]tool.Process, error)
	Get(ctx context.Context, id string) (tool.Process, error)
	Read(ctx context.Context, id string, o tool.ReadOptions) (tool.ReadResult, error)
	Write(ctx context.Context, id string, data []byte) (tool.Process, error)
	Stop(ctx context.Context, id string) (tool.Process, error)
}

var _ Commands = (*process.Manager)(nil)
