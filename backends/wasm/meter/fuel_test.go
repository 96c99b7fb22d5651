package meter

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
)

// TestEndless stops endless programs at the same remainder a hundred times out of a
// hundred, whatever the slices and the engine.
func TestEndless(t *testing.T) {
	const fuel = 1_000_000
	pair := assemble()
	pair.function("a", "", "", indexed(opCall, 1), op(opNop))
	pair.function("run", "", "", op(opNop, opNop), indexed(opCall, 0))
	fast, slow := newHost(t, compiled()), newHost(t, interpreted())
	grown := one(":i", "", loop(void, i32(0), op(opMemoryGrow, 0), op(opDrop), i32(0), i32(0), i32(5000), misc(miscMemoryFill, 0), br(0)), op(opUnreachable))
	for _, e := range []struct {
		name   string
		module []byte
		left   uint64
	}{
		{"an empty loop", one("", "", loop(void, br(0))), 0},
		{"a loop of seven", one("", "", loop(void, op(opNop, opNop, opNop, opNop, opNop, opNop), br(0))), (fuel - 1) % 7},
		{"two loops", one("", "", loop(void, loop(void, op(opNop), br(1)))), (fuel - 1) % 3},
		{"recursion", pair.bytes(), fuel % (2 + 3)},
		{"ranges", grown, (fuel-1)%(8+625) - 8},
	} {
		module := instrumented(t, e.module)
		for runs, h := range map[int]*host{100: fast, 1: slow} {
			if e.name == "recursion" { // takes much of the stack, and the interpreter has less
				if h == slow {
					continue
				}
				runs = 4
			}
			code, err := h.CompileModule(t.Context(), module)
			if err != nil {
				t.Fatal(err)
			}
			for i := range runs {
				slice := []uint64{0, 1 << 16, 99_991, 1 << 40}[i%4]
				if i == 3 {
					slice = 991
				}
				o := h.runCode(t, code, fuel, slice)
				if o.trap != ErrOutOfFuel.Error() || o.left != e.left {
					t.Fatalf("%s: run %d ended with %q and %d left, want %d", e.name, i, o.trap, o.left, e.left)
				}
			}
		}
	}
}

// TestSlices: the host gets its turn once a slice, and for what needs more at once.
func TestSlices(t *testing.T) {
	h := newHost(t, compiled())
	rounds := instrumented(t, one("i", "", loop(void, get(0), i32(1), op(i32Sub), tee(0), brIf(0))))
	if o := h.run(t, rounds, plenty, 1000, 20_000); o.refuels != 101 || o.spent != 100_001 {
		t.Errorf("100 001 units by slices of 1000 took %d turns, and %d units", o.refuels, o.spent)
	}
	fill := instrumented(t, one("", "", i32(0), i32(0), i32(65536), misc(miscMemoryFill, 0)))
	if o := h.run(t, fill, plenty, 10); o.refuels != 2 || o.spent != 4+8192 {
		t.Errorf("one large instruction took %d turns and %d units", o.refuels, o.spent)
	}
}

// TestTrapPaid: a trap is none for lack of fuel, and what it spent is the same always.
func TestTrapPaid(t *testing.T) {
	h := newHost(t, compiled())
	// The trap is in front of what its segment has paid for: three, of six.
	module := instrumented(t, one("i", "", i32(1), get(0), op(i32DivU), op(opDrop), op(opNop, opNop)))
	for slice := range uint64(10) {
		o := h.run(t, module, 100, slice+1, 0)
		if o.trap != "wasm error: integer divide by zero" || o.spent != 6 {
			t.Errorf("it ended with %q and spent %d", o.trap, o.spent)
		}
	}
	// In an arm that is owed for a moment, the fuel may be gone.
	owed := instrumented(t, one("i", "", get(0), when(void, op(opNop, opNop, opNop), op(opUnreachable))))
	if o := h.run(t, owed, 3, 0, 1); o.trap != "wasm error: unreachable" || o.left != 0 {
		t.Errorf("it ended with %q and %d left", o.trap, o.left)
	}
	// Without the trap, the same is out of fuel at the border.
	owed = instrumented(t, one("i", "", get(0), when(void, op(opNop, opNop, opNop, opNop))))
	if o := h.run(t, owed, 3, 0, 1); o.trap != ErrOutOfFuel.Error() || o.left != 0 {
		t.Errorf("it ended with %q and %d left", o.trap, o.left)
	}
}

// TestUnwinding: code after a call looks at the fuel, so that a thousand returns do
// not run a thousand functions' ends unpaid. The host sees how far it came.
func TestUnwinding(t *testing.T) {
	const depth, ahead, down, up = 1000, 3, 8, 4 + 96
	leave := when(void, op(opReturn))
	for name, after := range map[string][]byte{
		"at once":           cat(get(0), i32(depth), op(i32GtS), leave),
		"by a branch":       cat(op(opNop), block(void, get(0), brIf(0), get(0), leave)),
		"in an arm, or not": cat(get(0), i32(depth+1), op(i32LtU), either(void, nil, cat(get(0), leave, op(opNop)))),
	} {
		a := assemble()
		a.global("a", 'i', i32(0))
		a.function("run", "i", "",
			get(0), op(opI32Eqz), leave,
			get(0), i32(1), op(i32Sub), indexed(opCall, 0),
			after,
			indexed(opGlobalGet, 0), i32(1), op(i32Add), indexed(opGlobalSet, 0), bytes.Repeat(op(opNop), 96))
		module := instrumented(t, a.bytes())
		h := newHost(t, compiled())
		const descent = depth*(ahead+down) + ahead + 1
		if o := h.run(t, module, plenty, 0, depth); o.trap != "" || o.spent != descent+depth*up || o.globals[0] != "a=1000" {
			t.Errorf("%s: it ended with %q and %v, and spent %d", name, o.trap, o.globals, o.spent)
		}
		if o := h.run(t, module, descent+10*up+50, 0, depth); o.trap != ErrOutOfFuel.Error() || o.globals[0] != "a=10" || o.left != 50 {
			t.Errorf("%s: it ended with %q and %v, and %d were left", name, o.trap, o.globals, o.left)
		}
	}
}

// TestStart: a start function runs before the host could set anything, and is metered.
func TestStart(t *testing.T) {
	a := assemble()
	a.function("begin", "", "", loop(void, br(0)))
	a.function("run", "", "")
	a.start = u(0)
	if o := newHost(t, compiled()).run(t, instrumented(t, a.bytes()), 1000, 0); o.trap != ErrOutOfFuel.Error() {
		t.Errorf("it ended with %q", o.trap)
	}
}

// TestHostLies: an instance whose host gives less than is needed traps.
func TestHostLies(t *testing.T) {
	h := newHost(t, compiled())
	module := instrumented(t, one("", "", op(opNop)))
	ctx := t.Context()
	r := wazero.NewRuntimeWithConfig(ctx, compiled())
	defer r.Close(ctx)
	if _, err := r.NewHostModuleBuilder(ImportModule).NewFunctionBuilder().
		WithFunc(func(fuel, need int64) int64 { return fuel }).Export(ImportRefuel).Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	m, err := r.Instantiate(ctx, module)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.ExportedFunction("run").Call(ctx); err == nil || !strings.Contains(err.Error(), "unreachable") {
		t.Errorf("it ended with %v", err)
	}
	if o := h.run(t, module, 1, 0); o.trap != "" {
		t.Errorf("it ended with %q", o.trap)
	}
}

// TestTables: tables grow to the limit and no further, each to its share.
func TestTables(t *testing.T) {
	a := assemble()
	a.table('r', 10)
	a.table('x', 20)
	grow := func(table byte, t byte) []byte {
		return cat(op(opRefNull, letters[t]), get(0), misc(miscTableGrow, table))
	}
	a.function("run", "i:ii", "", grow(0, 'r'), grow(1, 'x'))
	m, err := Instrument(a.bytes(), Options{MaxTableElements: 130})
	if err != nil {
		t.Fatal(err)
	}
	h := newHost(t, compiled())
	const failed = math.MaxUint32
	for by, want := range map[uint64][]uint64{50: {10, 20}, 51: {failed, failed}, 1 << 20: {failed, failed}} {
		if o := h.run(t, m.Bytes, plenty, 0, by); !slices.Equal(o.results, want) {
			t.Errorf("growing by %d gives %v, want %v", by, o.results, want)
		}
	}
	if _, err := Instrument(a.bytes(), Options{MaxTableElements: 29}); err == nil {
		t.Error("tables that begin too large are accepted")
	}
}

// TestNames: functions keep their names, the added ones have some, and all other
// custom sections are gone.
func TestNames(t *testing.T) {
	a := assemble()
	a.host("tick", "")
	a.memory(1, 1)
	a.function("run", "", "", a.call("tick"), i32(0), i32(0), i32(-1), misc(miscMemoryFill, 0))
	names := cat(text("name"), []byte{0, 4}, text("mod"), []byte{1, 16}, u(2), u(0), text("the host"), u(1), text("run"), []byte{2, 1, 0})
	a.custom = cat(appendSection(nil, sectionCustom, cat(text(".debug_info"), []byte("offsets"))), appendSection(nil, sectionCustom, names))
	module := instrumented(t, a.bytes())
	if bytes.Contains(module, []byte("debug_info")) {
		t.Error("debugging information is kept")
	}
	h := newHost(t, compiled())
	code, err := h.CompileModule(t.Context(), module)
	if err != nil {
		t.Fatal(err)
	}
	if code.Name() != "mod" {
		t.Errorf("the module's name is %q", code.Name())
	}
	h.tank = NewTank(plenty, 0)
	m, err := h.InstantiateModule(t.Context(), code, wazero.NewModuleConfig())
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.ExportedFunction("run").Call(t.Context())
	trace := ""
	if err != nil {
		trace = err.Error()
	}
	for _, want := range []string{"mod.caisson.memory.fill", "mod.run()", "mod.caisson.in()"} {
		if !strings.Contains(trace, want) {
			t.Errorf("%q is not in %q", want, trace)
		}
	}
	// Names that make no sense are no names.
	a.custom = appendSection(nil, sectionCustom, cat(text("name"), []byte{1, 200}))
	h.run(t, instrumented(t, a.bytes()), 0, 0)
}

func TestTank(t *testing.T) {
	owes := func(n int64) uint64 { return uint64(-n) }
	for _, e := range []struct {
		total, slice, fuel, need, want, left uint64
		dry                                  bool
	}{
		{total: 100, slice: 10, fuel: 0, need: 1, want: 10, left: 100},
		{total: 100, slice: 10, fuel: 5, need: 20, want: 20, left: 105},
		{total: 100, slice: 10, fuel: 20, need: 20, want: 20, left: 120},
		{total: 5, slice: 10, fuel: 0, need: 1, want: 5, left: 5},
		{total: 5, slice: 10, fuel: 2, need: 8, want: 2, left: 7, dry: true},
		{total: 100, slice: 10, fuel: owes(30), need: 0, want: 0, left: 70},
		{total: 100, slice: 50, fuel: owes(30), need: 5, want: 20, left: 70},
		{total: 20, slice: 50, fuel: owes(30), need: 5, want: owes(30), left: 0, dry: true},
		{total: math.MaxUint64, slice: math.MaxUint64, fuel: 7, need: 8, want: MaxFuel + 7, left: MaxFuel + 7},
		{total: math.MaxUint64, slice: 0, fuel: owes(math.MinInt64), need: MaxFuel, want: owes(math.MinInt64), left: 0, dry: true},
	} {
		tank := NewTank(e.total, e.slice)
		got, err := tank.Refuel(e.fuel, e.need)
		if got != e.want || errors.Is(err, ErrOutOfFuel) != e.dry || tank.Remaining(got) != e.left {
			t.Errorf("%+v: %d, %v, %d left", e, got, err, tank.Remaining(got))
		}
	}
	tank := NewTank(100, 10)
	fuel, err := tank.Spend(3, 50)
	if fuel != 0 || err != nil || tank.Remaining(fuel) != 53 {
		t.Errorf("50 of 103 leave %d, %v, %d", fuel, err, tank.Remaining(fuel))
	}
	for _, cost := range []uint64{54, math.MaxUint64} {
		if got, err := tank.Spend(fuel, cost); got != fuel || !errors.Is(err, ErrOutOfFuel) {
			t.Errorf("%d of 53: %d, %v", cost, got, err)
		}
	}
}
