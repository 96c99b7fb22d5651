package meter

import (
	"fmt"
	"testing"
)

// example is a module, what it is called with, and what that costs; a cost of -1 is
// that of a trap, which has paid for more than it executed.
type example struct {
	name   string
	module []byte
	args   []uint64
	cost   int
	trap   string
}

func corpus() []example {
	return append(append(control(), calls()...), features()...)
}

// control are the ways through a function.
func control() []example {
	countdown := func(round ...[]byte) []byte {
		return loop(void, cat(round...), get(0), i32(1), op(i32Sub), tee(0), brIf(0))
	}
	early := one("i:i", "", // return from a loop when the argument is odd, or 0 after halving
		loop(void,
			get(0), i32(1), op(i32And), when(void, get(0), op(opReturn)),
			get(0), op(opI32Eqz), when(void, i32(-1), op(opReturn)),
			get(0), i32(2), op(i32DivU), set(0), br(0)),
		op(opUnreachable))
	return []example{
		{name: "empty", module: one("", ""), cost: 0},
		{name: "straight", module: one(":i", "", i32(1), i32(2), op(i32Add)), cost: 3},
		{name: "nop", module: one("", "", op(opNop, opNop)), cost: 2},
		{name: "block", module: one("", "", block(void, op(opNop)), op(opNop)), cost: 3},
		{name: "branch over", module: one("", "", block(void, br(0), op(opNop, opNop)), op(opNop)), cost: 3},
		{name: "branch with a value", module: one(":i", "", block(result('i'), i32(7), br(0))), cost: 3},
		{name: "br_if taken", module: one("i", "", block(void, get(0), brIf(0), op(opNop, opNop)), op(opNop)), args: []uint64{1}, cost: 4},
		{name: "br_if not taken", module: one("i", "", block(void, get(0), brIf(0), op(opNop, opNop)), op(opNop)), args: []uint64{0}, cost: 6},
		{name: "if taken", module: one("i", "", get(0), when(void, op(opNop, opNop, opNop))), args: []uint64{1}, cost: 5},
		{name: "if not taken", module: one("i", "", get(0), when(void, op(opNop, opNop, opNop))), args: []uint64{0}, cost: 2},
		{name: "if else, then", module: one("i:i", "", get(0), either(result('i'), i32(1), cat(i32(1), i32(2), op(i32Add)))), args: []uint64{1}, cost: 3},
		{name: "if else, else", module: one("i:i", "", get(0), either(result('i'), i32(1), cat(i32(1), i32(2), op(i32Add)))), args: []uint64{0}, cost: 5},
		{name: "then returns", module: one("i:i", "", get(0), when(void, i32(5), op(opReturn)), i32(6), op(opNop)), args: []uint64{1}, cost: 4},
		{name: "then does not return", module: one("i:i", "", get(0), when(void, i32(5), op(opReturn)), i32(6), op(opNop)), args: []uint64{0}, cost: 4},
		{name: "else returns", module: one("i:i", "", get(0), either(void, op(opNop), cat(i32(5), op(opReturn))), i32(6), op(opNop)), args: []uint64{1}, cost: 5},
		{name: "both arms leave", module: one("i:i", "", block(void, get(0), either(void, br(1), br(1)), op(opNop)), i32(1)), args: []uint64{1}, cost: 5},
		{name: "loop", module: one("i", "", countdown(op(opNop))), args: []uint64{10}, cost: 1 + 10*6},
		{name: "loop falls through", module: one("", "", loop(void, op(opNop)), op(opNop)), cost: 3},
		{name: "code after a loop", module: one("i", "", countdown(), op(opNop, opNop)), args: []uint64{3}, cost: 1 + 3*5 + 2},
		{name: "while", module: one("i", "", block(void, loop(void, get(0), op(opI32Eqz), brIf(1), get(0), i32(1), op(i32Sub), set(0), br(0))), op(opNop)), args: []uint64{3}, cost: 2 + 3*8 + 3 + 1},
		{name: "loop in a loop", module: one("i", "ii", countdown(i32(4), set(1), loop(void, get(1), i32(1), op(i32Sub), tee(1), brIf(0)))), args: []uint64{5}, cost: 1 + 5*(5+3+4*5)},
		{name: "loop at the head of a loop", module: one("i", "", loop(void, loop(void, get(0), i32(1), op(i32Sub), tee(0), brIf(1)))), args: []uint64{3}, cost: 1 + 3*6},
		{name: "continue an outer loop", module: one("i", "", loop(void, block(void, get(0), i32(1), op(i32Sub), tee(0), brIf(1)), op(opNop))), args: []uint64{3}, cost: 1 + 3*6 + 1},
		{name: "early return", module: early, args: []uint64{12}, cost: 1 + 2*(4+3+5) + 4 + 2},
		{name: "early return of nothing", module: early, args: []uint64{0}, cost: 1 + 4 + 3 + 2},
		{name: "br_table 0", module: tableOf(), args: []uint64{0}, cost: 2 + 2 + 3},
		{name: "br_table 1", module: tableOf(), args: []uint64{1}, cost: 2 + 2 + 2},
		{name: "br_table default", module: tableOf(), args: []uint64{9}, cost: 2 + 2 + 2},
		{name: "dead code", module: one(":i", "", i32(1), op(opReturn), block(void, loop(void, br(0)), i32(1), when(void, op(opNop)), br(0)), i32(2)), cost: 2},
		{name: "dead else", module: one(":i", "", block(void, br(0), i32(1), either(void, br(1), op(opNop))), i32(3)), cost: 3},
		{name: "multi-value", module: multiValue(), args: []uint64{3, 4}, cost: 8},
		{name: "loop with parameters", module: loopParameters(), args: []uint64{4}, cost: 3 + 4*7 + 1},
		{name: "unreachable", module: one("", "", op(opNop, opUnreachable)), cost: 2, trap: "wasm error: unreachable"},
		{name: "unreachable in an arm", module: one("i", "", get(0), when(void, op(opUnreachable)), op(opNop)), args: []uint64{1}, cost: -1, trap: "wasm error: unreachable"},
		{name: "division by zero", module: one("i:i", "", i32(1), get(0), op(i32DivU)), args: []uint64{0}, cost: 3, trap: "wasm error: integer divide by zero"},
		{name: "out of memory's bounds", module: one(":i", "", i32(-4), op(i32Load, 2, 0)), cost: 2, trap: "wasm error: out of bounds memory access"},
	}
}

func tableOf() []byte {
	return one("i:i", "",
		block(void, block(void, get(0), brTable(0, 1)), op(opNop), i32(10), op(opReturn)), i32(20), op(opReturn))
}

func multiValue() []byte {
	a := assemble()
	a.typ("ii:ii")
	a.function("run", "ii:ii", "", get(0), get(1), block([]byte{0}, set(0), get(0), br(0)), op(opDrop), get(1))
	return a.bytes()
}

func loopParameters() []byte {
	a := assemble()
	a.typ("i:i")
	a.function("run", "i:i", "", i32(0), op(opNop), loop([]byte{0}, get(0), op(i32Add), get(0), i32(1), op(i32Sub), tee(0), brIf(0), op(opNop)))
	return a.bytes()
}

// calls are those between functions, and with the host.
func calls() []example {
	fib := assemble()
	fib.names["run"] = 0
	self := fib.call("run")
	delete(fib.names, "run")
	fib.function("run", "i:i", "", get(0), i32(2), op(i32LtU), when(void, get(0), op(opReturn)),
		get(0), i32(1), op(i32Sub), self, get(0), i32(2), op(i32Sub), self, op(i32Add))

	hosted := assemble()
	hosted.host("tick", "")
	hosted.host("log", "i:i")
	hosted.function("other", "i:i", "", get(0), hosted.call("log"))
	hosted.function("run", "i:i", "", hosted.call("tick"), get(0), hosted.call("log"), hosted.call("other"))

	indirect := assemble()
	indirect.host("log", "i:i")
	indirect.table('r', 4)
	indirect.function("twice", "i:i", "", get(0), get(0), op(i32Add))
	indirect.function("wrong", "", "")
	indirect.function("run", "ii:i", "", get(0), get(1), op(opCallIndirect), u(indirect.typ("i:i")), u(0))
	indirect.elements(0, "twice", "log", "wrong")

	started := assemble()
	started.host("tick", "")
	started.global("a", 'i', i32(1))
	started.function("begin", "", "", i32(41), indexed(opGlobalSet, 0), started.call("tick"))
	started.function("run", ":i", "", indexed(opGlobalGet, 0))
	started.start = u(started.names["begin"])

	trapping := assemble()
	trapping.function("begin", "", "", op(opUnreachable))
	trapping.start = u(0)

	reexported := assemble()
	reexported.host("log", "i:i")
	reexported.add(sectionExport, text("run"), []byte{kindFunction, 0})

	deep := assemble()
	deep.function("run", "", "", indexed(opCall, 0))

	return []example{
		{name: "recursion", module: fib.bytes(), args: []uint64{10}, cost: 89*6 + 88*(4+4+4+1)},
		{name: "calls of the host", module: hosted.bytes(), args: []uint64{5}, cost: 6},
		{name: "call_indirect", module: indirect.bytes(), args: []uint64{21, 0}, cost: 6},
		{name: "call_indirect of the host", module: indirect.bytes(), args: []uint64{21, 1}, cost: 3},
		{name: "call_indirect of another type", module: indirect.bytes(), args: []uint64{21, 2}, cost: 3, trap: "wasm error: indirect call type mismatch"},
		{name: "call_indirect of nothing", module: indirect.bytes(), args: []uint64{21, 3}, cost: 3, trap: "wasm error: invalid table access"},
		{name: "start function", module: started.bytes(), cost: 4},
		{name: "start function traps", module: trapping.bytes(), cost: -1, trap: "wasm error: unreachable"},
		{name: "import exported again", module: reexported.bytes(), args: []uint64{5}, cost: 0},
	}
}

// features are what came after the first version.
func features() []example {
	bulk := func(code ...[]byte) []byte {
		a := assemble()
		a.memory(1, 3)
		a.activeData(0, "0123456789abcdef")
		a.passiveData("the quick brown fox jumps over the lazy dog")
		a.function("run", "iii", "", code...)
		return a.bytes()
	}
	fill := bulk(get(0), get(1), get(2), misc(miscMemoryFill, 0))
	copied := bulk(get(0), get(1), get(2), misc(miscMemoryCopy, 0, 0))
	initial := bulk(get(0), get(1), get(2), misc(miscMemoryInit, 1, 0), misc(miscDataDrop, 1))
	twice := bulk(misc(miscDataDrop, 1), get(0), get(1), get(2), misc(miscMemoryInit, 1, 0))
	grow := one("i:ii", "", get(0), op(opMemoryGrow, 0), op(opMemorySize, 0))

	tables := func(code ...[]byte) []byte {
		a := assemble()
		a.table('r', 8)
		a.table('x', 5)
		a.function("f", "", "")
		a.elements(0, "f", "f")
		a.add(sectionElement, []byte{5, typeFuncref, 2, opRefFunc, 0, opEnd, opRefNull, typeFuncref, opEnd})
		a.function("run", "iii:i", "", code...)
		return a.bytes()
	}
	reference := func(code ...[]byte) []byte {
		a := assemble()
		a.function("f", "", "")
		a.function("run", ":i", "r", code...) // f is declared by its export only
		return a.bytes()
	}
	selectTyped := op(opSelectTyped, 1, typeFuncref)

	const over = "wasm error: out of bounds memory access"
	const overTable = "wasm error: invalid table access"
	examples := []example{
		{name: "memory.fill", module: fill, args: []uint64{100, 7, 1000}, cost: 4 + 125},
		{name: "memory.fill of little", module: fill, args: []uint64{100, 7, 7}, cost: 4},
		{name: "memory.fill of nothing", module: fill, args: []uint64{100, 7, 0}, cost: 4},
		{name: "memory.fill beyond", module: fill, args: []uint64{100, 7, 1 << 20}, cost: -1, trap: over},
		{name: "memory.fill of 4 GiB", module: fill, args: []uint64{0, 0, 0xffffffff}, cost: 4 + 0xffffffff/8, trap: over},
		{name: "memory.copy", module: copied, args: []uint64{200, 0, 16}, cost: 4 + 2},
		{name: "memory.copy that overlaps", module: copied, args: []uint64{4, 0, 12}, cost: 4 + 1},
		{name: "memory.copy of 4 GiB", module: copied, args: []uint64{0, 0, 0xffffffff}, cost: 4 + 0xffffffff/8, trap: over},
		{name: "memory.init", module: initial, args: []uint64{300, 4, 20}, cost: 5 + 2},
		{name: "memory.init beyond", module: initial, args: []uint64{300, 4, 60}, cost: -1, trap: over},
		{name: "memory.init of what was dropped", module: twice, args: []uint64{300, 0, 1}, cost: -1, trap: over},
		{name: "memory.grow", module: grow, args: []uint64{2}, cost: 3 + 2*8192},
		{name: "memory.grow by nothing", module: grow, args: []uint64{0}, cost: 3},
		{name: "memory.grow that fails", module: grow, args: []uint64{3}, cost: 3},
		{name: "memory.grow by 4 billion pages", module: grow, args: []uint64{0xffffffff}, cost: 3},
		{name: "table.grow", module: tables(op(opRefNull, typeFuncref), get(0), misc(miscTableGrow, 0), misc(miscTableSize, 0), op(i32Add)), args: []uint64{10, 0, 0}, cost: 5 + 10},
		{name: "table.grow that fails", module: tables(op(opRefNull, typeExternref), get(0), misc(miscTableGrow, 1)), args: []uint64{0xffffffff, 0, 0}, cost: 3},
		{name: "table.fill", module: tables(get(0), op(opRefFunc, 0), get(2), misc(miscTableFill, 0), i32(7), op(opTableGet, 0), op(opRefIsNull)), args: []uint64{2, 0, 6}, cost: 7 + 6},
		{name: "table.fill beyond", module: tables(get(0), op(opRefNull, typeExternref), get(2), misc(miscTableFill, 1), i32(1)), args: []uint64{2, 0, 6}, cost: -1, trap: overTable},
		{name: "table.copy", module: tables(get(0), get(1), get(2), misc(miscTableCopy, 0, 0), i32(5), op(opTableGet, 0), op(opRefIsNull)), args: []uint64{5, 1, 2}, cost: 7 + 2},
		{name: "table.init", module: tables(get(0), get(1), get(2), misc(miscTableInit, 1, 0), misc(miscElemDrop, 1), i32(6), op(opTableGet, 0), op(opRefIsNull)), args: []uint64{6, 0, 2}, cost: 8 + 2},
		{name: "table.set", module: tables(i32(3), op(opRefFunc, 0), op(opTableSet, 0), get(0), op(opTableGet, 0), op(opRefIsNull)), args: []uint64{3, 0, 0}, cost: 6},
		{name: "ref.func declared by an export", module: reference(op(opRefFunc, 0), tee(0), op(opRefNull, typeFuncref), i32(0), selectTyped, op(opRefIsNull)), cost: 6},
		{name: "sign extension", module: one("I:I", "", get(0), op(0xc2), op(0xc3), op(0xc4)), args: []uint64{0x1ff}, cost: 4},
		{name: "saturating conversions", module: one("FFf:IIi", "", get(0), misc(6), get(1), misc(7), get(2), misc(0)), args: []uint64{0x7ff8000000000000, 0xbff0000000000000, 0x7f800000}, cost: 6},
	}
	return append(examples, vectors()...)
}

// vectors are instructions of SIMD of each form.
func vectors() []example {
	constant := func(b byte) []byte {
		v := make([]byte, 16)
		for i := range v {
			v[i] = b + byte(i)
		}
		return vec(vectorConst, v...)
	}
	lanes := []byte{0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23}
	high := func(v []byte) []byte { return cat(v, vec(0x1d, 1)) }
	examples := []example{
		{name: "v128 shuffle", module: one(":I", "", high(cat(constant(1), constant(40), vec(vectorShuffle, lanes...)))), cost: 4},
		{name: "v128 load and store", module: one(":I", "", i32(16), constant(3), vec(vectorStore, 4, 0), high(cat(i32(8), vec(vectorLoadFirst, 0, 8)))), cost: 6},
		{name: "v128 lanes", module: one("i:I", "", high(cat(i32(0), constant(9), get(0), vec(0x17, 15), vec(0x58, 0, 0, 3), i32(0), vec(vectorLoad32Zero, 2, 0), constant(1), vec(0x51)))), args: []uint64{77}, cost: 10},
		{name: "v128 two-byte opcodes", module: one(":I", "", high(cat(constant(200), vec(0x80), constant(7), vec(0xce), vec(0xc0), vec(0xff)))), cost: 7},
	}
	// Every instruction that takes one or two vectors and gives one.
	for code := uint32(0x23); code <= vectorLast; code++ {
		for operands := 1; operands <= 2; operands++ {
			if unknownVector(code) {
				continue
			}
			var body []byte
			for i := range operands {
				body = append(body, constant(byte(100*i+1))...)
			}
			examples = append(examples, example{name: fmt.Sprintf("v128 %#x of %d", code, operands),
				module: one(":I", "", high(cat(body, vec(code)))), cost: operands + 2})
		}
	}
	return examples
}

// TestCorpus compares plain and instrumented modules under both engines, and what
// the instrumented ones cost with what they executed.
func TestCorpus(t *testing.T) {
	engines := []*host{newHost(t, compiled()), newHost(t, interpreted())}
	ran := 0
	for _, e := range corpus() {
		if code, err := engines[1].CompileModule(t.Context(), e.module); err != nil {
			if len(e.name) > 6 && e.name[:6] == "v128 0" {
				continue // this one takes other operands
			}
			t.Errorf("%s: %v", e.name, err)
			continue
		} else {
			code.Close(t.Context())
		}
		ran++
		for _, h := range engines {
			o := h.both(t, e.module, e.args...)
			if o.trap != e.trap {
				t.Errorf("%s: ended with %q, want %q", e.name, o.trap, e.trap)
			}
			if e.cost >= 0 && o.spent != uint64(e.cost) {
				t.Errorf("%s: cost %d, want %d", e.name, o.spent, e.cost)
			}
		}
	}
	if ran < 230 {
		t.Errorf("only %d examples are valid", ran)
	}
}
