package meter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

const plenty = 1 << 40

// outcome is what a module did, and what the host sees of it afterwards.
type outcome struct {
	results []uint64
	// trap is why it ended, without the stack.
	trap string
	// host are the calls of imported functions, and the fuel that was spent before each.
	host []string
	// memory and globals are those that are exported.
	memory  []byte
	globals []string
	// spent is what the run cost, and left what remained.
	spent, left uint64
	refuels     int
}

// same says in what the outcomes differ that a guest could cause, fuel aside.
func (o outcome) same(p outcome) error {
	switch {
	case o.trap != p.trap:
		return fmt.Errorf("ended with %q and %q", o.trap, p.trap)
	case o.trap == "" && !slices.Equal(o.results, p.results):
		return fmt.Errorf("returned %x and %x", o.results, p.results)
	case !slices.Equal(o.host, p.host):
		return fmt.Errorf("called the host %q and %q", o.host, p.host)
	case !slices.Equal(o.memory, p.memory):
		return errors.New("left different memories")
	case !slices.Equal(o.globals, p.globals):
		return fmt.Errorf("left globals %q and %q", o.globals, p.globals)
	}
	return nil
}

// host is a runtime with the functions that modules import: env.log of one i32, which
// it returns plus one, and env.all of everything.
type host struct {
	wazero.Runtime
	log     *[]string
	tank    *Tank
	refuels int
}

func newHost(t testing.TB, config wazero.RuntimeConfig) *host {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	h := &host{Runtime: wazero.NewRuntimeWithConfig(ctx, config.WithMemoryLimitPages(256)), log: new([]string)}
	t.Cleanup(func() { h.Close(ctx) })
	i32, i64 := api.ValueTypeI32, api.ValueTypeI64
	_, err := h.NewHostModuleBuilder("env").
		NewFunctionBuilder().WithGoFunction(api.GoFunc(func(_ context.Context, s []uint64) {
		*h.log = append(*h.log, fmt.Sprint(uint32(s[0])))
		s[0] = uint64(uint32(s[0]) + 1)
	}), []api.ValueType{i32}, []api.ValueType{i32}).Export("log").
		NewFunctionBuilder().WithGoFunction(api.GoFunc(func(_ context.Context, s []uint64) {
		*h.log = append(*h.log, "tick")
	}), nil, nil).Export("tick").
		Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.NewHostModuleBuilder(ImportModule).
		NewFunctionBuilder().WithGoFunction(api.GoFunc(func(_ context.Context, s []uint64) {
		h.refuels++
		fuel, err := h.tank.Refuel(s[0], s[1])
		if err != nil {
			panic(err)
		}
		s[0] = fuel
	}), []api.ValueType{i64, i64}, []api.ValueType{i64}).Export(ImportRefuel).
		Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func compiled() wazero.RuntimeConfig    { return wazero.NewRuntimeConfigCompiler() }
func interpreted() wazero.RuntimeConfig { return wazero.NewRuntimeConfigInterpreter() }

// run makes an instance and calls its function run with the arguments.
func (h *host) run(t testing.TB, module []byte, fuel, slice uint64, args ...uint64) outcome {
	t.Helper()
	ctx := t.Context()
	code, err := h.CompileModule(ctx, module)
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	defer code.Close(ctx)
	return h.runCode(t, code, fuel, slice, args...)
}

func (h *host) runCode(t testing.TB, code wazero.CompiledModule, fuel, slice uint64, args ...uint64) outcome {
	t.Helper()
	ctx := t.Context()
	h.tank, h.refuels, *h.log = NewTank(fuel, slice), 0, nil
	o := outcome{left: fuel}
	m, err := h.InstantiateModule(ctx, code, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err == nil {
		defer m.Close(ctx)
		if f := m.ExportedFunction("run"); f != nil {
			o.results, err = f.Call(ctx, args...)
		}
		o.left = h.tank.Remaining(0)
		if g := m.ExportedGlobal(ExportFuel); g != nil {
			o.left = h.tank.Remaining(g.Get())
		}
		if memory := m.ExportedMemory("memory"); memory != nil {
			all, _ := memory.Read(0, memory.Size())
			o.memory = slices.Clone(all)
		}
		for _, name := range []string{"a", "b"} {
			if g := m.ExportedGlobal(name); g != nil {
				o.globals = append(o.globals, fmt.Sprint(name, "=", g.Get()))
			}
		}
	} else {
		o.left = h.tank.Remaining(0)
	}
	o.trap = cause(err)
	o.host = slices.Clone(*h.log)
	o.spent, o.refuels = fuel-o.left, h.refuels
	return o
}

// instrumented instruments a module that must be fine.
func instrumented(t testing.TB, module []byte) []byte {
	t.Helper()
	m, err := Instrument(module, Options{})
	if err != nil {
		t.Fatalf("instrument: %v", err)
	}
	return m.Bytes
}

// both runs a module as it is and instrumented, which must come to the same, and
// returns the instrumented outcome.
func (h *host) both(t testing.TB, module []byte, args ...uint64) outcome {
	t.Helper()
	plain := h.run(t, module, plenty, 0, args...)
	metered := h.run(t, instrumented(t, module), plenty, 0, args...)
	if err := plain.same(metered); err != nil {
		t.Errorf("plain and instrumented %v", err)
	}
	return metered
}

// cause is why a call ended early, without the stack and the functions' numbers.
func cause(err error) string {
	if err == nil {
		return ""
	}
	if errors.Is(err, ErrOutOfFuel) {
		return ErrOutOfFuel.Error()
	}
	trap, _, _ := strings.Cut(err.Error(), "\n")
	if _, why, ok := strings.Cut(trap, " failed: "); ok {
		return why // a start function is told by its number
	}
	return trap
}
