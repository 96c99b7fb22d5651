package engine

import (
	"context"
	"errors"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/caisson-dev/caisson/backends/wasm/meter"
)

// install gives the runtime the two modules that guests import from: WASI, each of
// whose functions is charged for, and the meter's.
func install(ctx context.Context, r wazero.Runtime) error {
	_, err := r.NewHostModuleBuilder(meter.ImportModule).
		NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(refuel), []api.ValueType{api.ValueTypeI64, api.ValueTypeI64}, []api.ValueType{api.ValueTypeI64}).
		Export(meter.ImportRefuel).
		Instantiate(ctx)
	if err != nil {
		return err
	}
	wasi := r.NewHostModuleBuilder(wasi_snapshot_preview1.ModuleName)
	wasi_snapshot_preview1.NewFunctionExporter().ExportFunctions(wasi)
	ctx = experimental.WithFunctionListenerFactory(ctx, experimental.FunctionListenerFactoryFunc(metered))
	_, err = wasi.Instantiate(ctx)
	return err
}

// errStopped ends a guest whose caller or time is gone.
var errStopped = errors.New("it was stopped")

// refuel answers a guest that has spent its slice. This is where cancellation, the
// time limit and the collector get their turn.
func refuel(ctx context.Context, m api.Module, stack []uint64) {
	g := guestOf(ctx)
	g.look(m)
	fuel, err := g.tank.Refuel(stack[0], stack[1])
	if err != nil {
		panic(err)
	}
	stack[0] = fuel
}

// Numbers of WASI errors that are told better.
const (
	wasiIO    = 29
	wasiNosys = 52
	wasiXdev  = 75
)

// call charges for one function of WASI before it runs, and looks after it whether
// the guest may go on: some wait.
type call struct {
	cost cost
	// twoDirectories says that it works on two paths. The engine calls it
	// unimplemented where they are in different directories.
	twoDirectories bool
}

// metered is the listener of a function of WASI.
func metered(def api.FunctionDefinition) experimental.FunctionListener {
	name := def.ExportNames()[0]
	return &call{cost: costOf(name), twoDirectories: name == "path_rename" || name == "path_link"}
}

// Before implements [experimental.FunctionListener].
func (c *call) Before(ctx context.Context, m api.Module, _ api.FunctionDefinition, params []uint64, _ experimental.StackIterator) {
	g := guestOf(ctx)
	g.look(m)
	g.spend(c.cost.of(g, m.Memory(), params))
	g.gave = c.cost.longest(params)
}

// After implements [experimental.FunctionListener]. The results are those that the
// guest gets, so that it is told what the engine has no word for.
func (c *call) After(ctx context.Context, m api.Module, _ api.FunctionDefinition, results []uint64) {
	g := guestOf(ctx)
	g.spend(g.table.Entries() * costEntry)
	if walked := uint64(g.table.Longest()); walked > g.gave {
		g.spend((walked - g.gave) * costPathByte)
	}
	precise := g.table.Precise()
	if len(results) > 0 {
		switch {
		case results[0] == wasiIO && precise != 0:
			results[0] = uint64(precise)
		case results[0] == wasiNosys && c.twoDirectories:
			results[0] = wasiXdev
		}
	}
	g.look(m)
}

// Abort implements [experimental.FunctionListener].
func (*call) Abort(context.Context, api.Module, api.FunctionDefinition, error) {}
