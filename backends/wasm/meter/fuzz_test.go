package meter

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// FuzzInstrument gives it anything. It must not panic. What it takes and the engine
// finds valid must be valid afterwards, do the same in both engines' eyes, and
// spend the same with any slices.
func FuzzInstrument(f *testing.F) {
	for _, e := range corpus() {
		f.Add(e.module)
	}
	h := newHost(f, interpreted())
	f.Fuzz(func(t *testing.T, module []byte) {
		if len(module) > 1<<14 {
			return
		}
		metered, err := Instrument(module, Options{MaxTableElements: 1 << 12})
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Reason == "" {
				t.Fatalf("an error without a reason: %v", err)
			}
			return
		}
		if again, _ := Instrument(module, Options{MaxTableElements: 1 << 12}); !bytes.Equal(again.Bytes, metered.Bytes) {
			t.Fatal("the second time it is another module")
		}
		code, err := h.CompileModule(t.Context(), module)
		if err != nil {
			return // not valid: what was made of it is never run
		}
		defer code.Close(t.Context())
		changed, err := h.CompileModule(t.Context(), metered.Bytes)
		if err != nil {
			t.Fatalf("it is not valid any more: %v", err)
		}
		defer changed.Close(t.Context())
		if !runnable(code) {
			return
		}
		for name, function := range code.ExportedFunctions() {
			const fuel = 20_000
			args := make([]uint64, len(function.ParamTypes()))
			one := h.explore(t, changed, name, fuel, 0, args)
			other := h.explore(t, changed, name, fuel, 37, args)
			if one.trap != other.trap || one.spent != other.spent || !slices.Equal(one.host, other.host) || !slices.Equal(one.memory, other.memory) {
				t.Fatalf("%s: with slices it spent %d for %d, and ended with %q for %q", name, other.spent, one.spent, other.trap, one.trap)
			}
			if one.trap == ErrOutOfFuel.Error() {
				continue // plain, it may have no end
			}
			if err := h.explore(t, code, name, fuel, 0, args).same(one); err != nil {
				t.Fatalf("%s: plain and instrumented %v", name, err)
			}
		}
	})
}

// runnable reports whether a module can be run here: it has a start function only if
// it ends, so none, imports what there is, and does not take all memory.
func runnable(code wazero.CompiledModule) bool {
	for _, i := range code.ImportedFunctions() {
		module, name, _ := i.Import()
		signature := string(i.ParamTypes()) + ":" + string(i.ResultTypes())
		logs := string([]byte{api.ValueTypeI32, ':', api.ValueTypeI32})
		known := map[string]string{"log": logs, "tick": ":"}
		if want, ok := known[name]; module != "env" || !ok || signature != want {
			return false
		}
	}
	return len(code.ImportedMemories()) == 0
}

// explore calls a function in a fresh instance and returns what it did. Plain modules
// may be run only if they are known to end.
func (h *host) explore(t *testing.T, code wazero.CompiledModule, name string, fuel, slice uint64, args []uint64) outcome {
	h.tank, h.refuels, *h.log = NewTank(fuel, slice), 0, nil
	ctx := t.Context()
	var o outcome
	m, err := h.InstantiateModule(ctx, code, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err == nil {
		defer m.Close(ctx)
		o.results, err = m.ExportedFunction(name).Call(ctx, args...)
		o.spent = fuel - h.tank.Remaining(0)
		if g := m.ExportedGlobal(ExportFuel); g != nil {
			o.spent = fuel - h.tank.Remaining(g.Get())
		}
		if memory := m.ExportedMemory("memory"); memory != nil {
			all, _ := memory.Read(0, memory.Size())
			o.memory = slices.Clone(all)
		}
	}
	o.trap = cause(err)
	o.host = slices.Clone(*h.log)
	return o
}
