package local

import (
	"context"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// processes are the background processes of the far half. Asking about them
// starts no worker where there never was one.
type processes struct{ e *environment }

var _ backends.Processes = processes{}

func (p processes) Start(ctx context.Context, r tool.StartRequest) (tool.Process, error) {
	var unread error
	if len(r.Argv) == 0 {
		unread = p.e.lines.parse(r.Command)
	}
	if err := p.e.root.Check(); err != nil {
		return tool.Process{}, err
	}
	if unread != nil {
		return tool.Process{}, p.e.misspeltStart(ctx, r, unread)
	}
	far, err := p.e.worker(ctx)
	if err != nil {
		return tool.Process{}, err
	}
	return far.Processes().Start(ctx, r)
}

func (p processes) List(ctx context.Context) ([]tool.Process, error) {
	if !everStarted(p.e.at) {
		return nil, nil
	}
	far, err := p.e.worker(ctx)
	if err != nil {
		return nil, err
	}
	return far.Processes().List(ctx)
}

// of is the far half's processes, for a question about one of them.
func (p processes) of(ctx context.Context, id string) (backends.Processes, error) {
	if !everStarted(p.e.at) {
		return nil, tool.Errorf(tool.ProcessNotFound, "there is no process %q in this session", id)
	}
	far, err := p.e.worker(ctx)
	if err != nil {
		return nil, err
	}
	return far.Processes(), nil
}

func (p processes) Get(ctx context.Context, id string) (tool.Process, error) {
	far, err := p.of(ctx, id)
	if err != nil {
		return tool.Process{}, err
	}
	return far.Get(ctx, id)
}

func (p processes) Read(ctx context.Context, id string, o tool.ReadOptions) (tool.ReadResult, error) {
	far, err := p.of(ctx, id)
	if err != nil {
		return tool.ReadResult{}, err
	}
	return far.Read(ctx, id, o)
}

func (p processes) Write(ctx context.Context, id string, data []byte) (tool.Process, error) {
	far, err := p.of(ctx, id)
	if err != nil {
		return tool.Process{}, err
	}
	return far.Write(ctx, id, data)
}

func (p processes) CloseStdin(ctx context.Context, id string) (tool.Process, error) {
	far, err := p.of(ctx, id)
	if err != nil {
		return tool.Process{}, err
	}
	return far.CloseStdin(ctx, id)
}

func (p processes) Resize(ctx context.Context, id string, size tool.TTY) (tool.Process, error) {
	far, err := p.of(ctx, id)
	if err != nil {
		return tool.Process{}, err
	}
	return far.Resize(ctx, id, size)
}

func (p processes) Signal(ctx context.Context, id, signal string) (tool.Process, error) {
	far, err := p.of(ctx, id)
	if err != nil {
		return tool.Process{}, err
	}
	return far.Signal(ctx, id, signal)
}

func (p processes) Stop(ctx context.Context, id string) (tool.Process, error) {
	far, err := p.of(ctx, id)
	if err != nil {
		return tool.Process{}, err
	}
	return far.Stop(ctx, id)
}
