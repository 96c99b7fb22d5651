package wasm

import (
	"context"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// errNoCommands answers whoever wants a command of a place that has none.
func errNoCommands(what string) error {
	return tool.Errorf(tool.Unsupported, "%s needs commands, and a wasm environment runs WebAssembly modules only", what).
		WithHint("use a docker, ssh or local profile for it, as by an override of shell.*; a job can name one of the profile's modules")
}

// noProcesses are the processes of an environment without commands.
type noProcesses struct{}

var _ backends.Processes = noProcesses{}

func (noProcesses) Start(context.Context, tool.StartRequest) (tool.Process, error) {
	return tool.Process{}, errNoCommands("process/start")
}

func (noProcesses) List(context.Context) ([]tool.Process, error) { return nil, nil }

func (noProcesses) unknown(id string) (tool.Process, error) {
	return tool.Process{}, tool.Errorf(tool.ProcessNotFound, "there is no process %q: a wasm environment has none", id)
}

func (n noProcesses) Get(_ context.Context, id string) (tool.Process, error) { return n.unknown(id) }

func (n noProcesses) Read(_ context.Context, id string, _ tool.ReadOptions) (tool.ReadResult, error) {
	_, err := n.unknown(id)
	return tool.ReadResult{}, err
}

func (n noProcesses) Write(_ context.Context, id string, _ []byte) (tool.Process, error) {
	return n.unknown(id)
}

func (n noProcesses) CloseStdin(_ context.Context, id string) (tool.Process, error) {
	return n.unknown(id)
}

func (n noProcesses) Resize(_ context.Context, id string, _ tool.TTY) (tool.Process, error) {
	return n.unknown(id)
}

func (n noProcesses) Signal(_ context.Context, id, _ string) (tool.Process, error) {
	return n.unknown(id)
}

func (n noProcesses) Stop(_ context.Context, id string) (tool.Process, error) { return n.unknown(id) }
