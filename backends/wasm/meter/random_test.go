package meter

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// writer makes random programs that are valid.
type writer struct {
	t         *rapid.T
	functions int
	left      int    // nodes that may still be made
	labels    []byte // result letters of the open blocks, outermost first; 0 for none
}

func (w *writer) pick(n int) int { return rapid.IntRange(0, n-1).Draw(w.t, "pick") }

const (
	narrowLocals = 3 // beside the parameter
	wideLocals   = 2
)

func (w *writer) program() program {
	p := program{locals: narrowLocals, wide: wideLocals}
	w.functions = 1 + w.pick(3)
	for range w.functions {
		w.left = 60
		w.labels = []byte{'i'}
		p.functions = append(p.functions, append(w.statements(), w.narrow(3)...))
	}
	return p
}

func (w *writer) statements() []node {
	var out []node
	for range w.pick(4) + 1 {
		out = append(out, w.statement()...)
	}
	return out
}

// nested makes what is inside one more block.
func (w *writer) nested(letter byte, inside func() []node) []node {
	w.labels = append(w.labels, letter)
	out := inside()
	w.labels = w.labels[:len(w.labels)-1]
	return out
}

func constantNode(v int64) node { return node{op: opI32Const, value: v} }

// statement leaves the stack as it was.
func (w *writer) statement() []node {
	if w.left--; w.left < 0 {
		return []node{{op: opNop}}
	}
	switch w.pick(16) {
	case 0:
		return []node{{op: opBlock, body: w.nested(0, w.statements)}}
	case 1, 2: // a loop of a few rounds
		local := int64(1 + w.pick(narrowLocals))
		round := w.nested(0, func() []node {
			return append(w.statements(), node{op: opLocalGet, value: local}, constantNode(1), node{op: i32Sub}, node{op: opLocalTee, value: local}, node{op: opBrIf})
		})
		return []node{constantNode(int64(1 + w.pick(5))), {op: opLocalSet, value: local}, {op: opLoop, body: round}}
	case 3, 4:
		n := node{op: opIf, body: w.nested(0, w.statements), arms: w.pick(2) == 0}
		if n.arms {
			n.other = w.nested(0, w.statements)
		}
		return append(w.narrow(2), n)
	case 5:
		return append(w.narrow(2), node{op: opLocalSet, value: int64(w.pick(narrowLocals + 1))})
	case 6:
		return append(w.broad(2), node{op: opLocalSet, value: int64(1 + narrowLocals + w.pick(wideLocals))})
	case 7:
		return append(w.narrow(2), node{op: opGlobalSet})
	case 8:
		return slices.Concat(w.address(), w.narrow(2), []node{{op: i32Store8, value: int64(w.pick(100))}})
	case 9, 10:
		return w.leave()
	case 11:
		return append(w.narrow(2), node{op: opDrop})
	case 12:
		code := []byte{miscMemoryFill, miscMemoryCopy}[w.pick(2)]
		return slices.Concat(w.address(), w.address(), w.address(), []node{{op: opMisc, misc: code}})
	case 13:
		return append(w.narrow(1), node{op: opCall, value: int64(w.pick(w.functions + hostFunctions))}, node{op: opDrop})
	case 14: // a branch that goes somewhere in any case
		label, value := w.target()
		return append(value, node{op: opBr, value: label})
	}
	return []node{{op: opNop}}
}

// target picks a label and makes the value that it takes.
func (w *writer) target() (int64, []node) {
	i := w.pick(len(w.labels))
	var value []node
	if w.labels[len(w.labels)-1-i] == 'i' {
		value = w.narrow(1)
	}
	return int64(i), value
}

// leave may leave a block, or the function.
func (w *writer) leave() []node {
	label, value := w.target()
	switch w.pick(8) {
	case 0:
		return append(w.narrow(1), node{op: opReturn})
	case 1:
		if len(value) > 0 {
			break
		}
		// All labels of the table must take the same, which is nothing.
		n := node{op: opBrTable, table: []uint32{uint32(label)}}
		for range w.pick(3) {
			if l := w.pick(len(w.labels)); w.labels[len(w.labels)-1-l] == 0 {
				n.table = append(n.table, uint32(l))
			}
		}
		return append(w.narrow(1), n)
	case 2:
		if w.pick(4) == 0 {
			return []node{{op: opUnreachable}}
		}
	}
	out := slices.Concat(value, w.narrow(2), []node{{op: opBrIf, value: label}})
	if len(value) > 0 {
		out = append(out, node{op: opDrop})
	}
	return out
}

// address makes a small number.
func (w *writer) address() []node {
	return append(w.narrow(1), constantNode(0xfff), node{op: i32And})
}

// narrow makes an i32.
func (w *writer) narrow(depth int) []node {
	w.left--
	if depth == 0 || w.left < 0 {
		if w.pick(2) == 0 {
			return []node{constantNode(int64(rapid.Int32Range(-3, 5).Draw(w.t, "constant")))}
		}
		return []node{{op: opLocalGet, value: int64(w.pick(narrowLocals + 1))}}
	}
	switch w.pick(14) {
	case 0, 1:
		ops := []byte{i32Add, i32Sub, i32Mul, i32And, i32Xor, i32Shl, i32Eq, i32LtU, i32GtS, i32DivU}
		return slices.Concat(w.narrow(depth-1), w.narrow(depth-1), []node{{op: ops[w.pick(len(ops))]}})
	case 2:
		return slices.Concat(w.broad(depth-1), w.broad(depth-1), []node{{op: i64GtU}})
	case 3:
		return append(w.broad(depth-1), node{op: i32Wrap})
	case 4:
		return append(w.address(), node{op: i32Load8U, value: int64(w.pick(100))})
	case 5:
		return append(w.narrow(depth-1), node{op: opCall, value: int64(w.pick(w.functions + hostFunctions))})
	case 6: // now and then of no function
		return slices.Concat(w.narrow(depth-1), []node{constantNode(int64(w.pick(w.functions + hostFunctions + 1))), {op: opCallIndirect}})
	case 7:
		return []node{{op: opBlock, typ: 'i', body: w.nested('i', func() []node { return append(w.statements(), w.narrow(depth-1)...) })}}
	case 8:
		arm := func() []node { return append(w.statements(), w.narrow(depth-1)...) }
		return append(w.narrow(depth-1), node{op: opIf, typ: 'i', arms: true, body: w.nested('i', arm), other: w.nested('i', arm)})
	case 9:
		return slices.Concat(w.narrow(depth-1), w.narrow(depth-1), w.narrow(depth-1), []node{{op: opSelect}})
	case 10:
		return append(w.narrow(depth-1), node{op: opLocalTee, value: int64(w.pick(narrowLocals + 1))})
	case 11:
		return append(w.narrow(depth-1), constantNode(3), node{op: i32And}, node{op: opMemoryGrow})
	case 12:
		return []node{{op: opGlobalGet}}
	}
	return append(w.narrow(depth-1), node{op: opI32Eqz})
}

// broad makes an i64.
func (w *writer) broad(depth int) []node {
	w.left--
	if depth == 0 || w.left < 0 {
		return []node{{op: opI64Const, value: rapid.Int64().Draw(w.t, "constant")}}
	}
	switch w.pick(3) {
	case 0:
		ops := []byte{i64Add, i64Mul, i64Xor}
		return slices.Concat(w.broad(depth-1), w.broad(depth-1), []node{{op: ops[w.pick(len(ops))]}})
	case 1:
		return append(w.narrow(depth-1), node{op: opI64ExtendU})
	}
	return []node{{op: opLocalGet, value: int64(1 + narrowLocals + w.pick(wideLocals))}}
}

// TestReference checks random programs against the reference: a run that ends has
// spent exactly what it executed; it ends exactly with so much fuel; one that traps has
// spent no less than it executed; and slices change nothing.
func TestReference(t *testing.T) {
	h := newHost(t, compiled())
	ended, endless, traps := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		const limit = 200_000
		p := (&writer{t: rt}).program()
		arg := rapid.Uint32Range(0, 6).Draw(rt, "argument")
		m := &machine{program: p, limit: limit}
		want, why := m.run(arg)
		module := p.bytes()
		metered, err := Instrument(module, Options{})
		if err != nil {
			rt.Fatal(err)
		}
		code, err := h.CompileModule(t.Context(), metered.Bytes)
		if err != nil {
			rt.Fatalf("compile: %v", err)
		}
		defer code.Close(t.Context())
		slice := uint64(rapid.IntRange(1, 300).Draw(rt, "slice"))
		o := h.runCode(t, code, limit, 0, uint64(arg))
		sliced := h.runCode(t, code, limit, slice, uint64(arg))
		if err := o.same(sliced); err != nil || o.spent != sliced.spent {
			rt.Fatalf("with slices of %d it %v, and spent %d for %d", slice, err, sliced.spent, o.spent)
		}
		switch why {
		case beyondLimit:
			endless++
			if o.trap == "" {
				rt.Fatalf("it ended, the reference did not")
			}
			return
		case trapped:
			traps++
			if o.trap == "" || o.trap != ErrOutOfFuel.Error() && o.spent < m.count {
				rt.Fatalf("it ended with %q and spent %d for %d instructions", o.trap, o.spent, m.count)
			}
		default:
			ended++
			if o.trap != "" || uint32(o.results[0]) != want || o.spent != m.count {
				rt.Fatalf("it ended with %q %v and spent %d; the reference returned %d after %d", o.trap, o.results, o.spent, want, m.count)
			}
			if exact := h.runCode(t, code, m.count, slice, uint64(arg)); exact.trap != "" || exact.left != 0 {
				rt.Fatalf("with exactly what it costs it ended with %q and %d left", exact.trap, exact.left)
			}
			if m.count == 0 {
				return
			}
			short := h.runCode(t, code, m.count-1, slice, uint64(arg))
			if short.trap != ErrOutOfFuel.Error() {
				rt.Fatalf("with one less than it costs it ended with %q", short.trap)
			}
			if len(short.host) > len(o.host) || !slices.Equal(short.host, o.host[:len(short.host)]) {
				rt.Fatalf("it called the host otherwise, with less fuel: %q, %q", short.host, o.host)
			}
		}
		if plain := h.run(t, module, limit, 0, uint64(arg)); why == "" || o.trap != ErrOutOfFuel.Error() {
			if err := plain.same(o); err != nil {
				rt.Fatalf("plain and instrumented %v", err)
			}
			if len(plain.host) != m.host {
				rt.Fatalf("the host was called %d times, in the reference %d", len(plain.host), m.host)
			}
		}
	})
	t.Logf("%d ended, %d trapped, %d were stopped", ended, traps, endless)
	if ended == 0 || traps == 0 || endless == 0 {
		t.Errorf("%d programs ended, %d trapped, %d were stopped: all should occur", ended, traps, endless)
	}
}

// TestHostPaid checks that no call of the host is made which is not paid: at each one
// the instance holds at least nothing, and what was spent is within the fuel.
func TestHostPaid(t *testing.T) {
	a := assemble()
	a.host("tick", "")
	// No loop and no call stands between the arms and the host.
	a.function("run", "i", "", get(0), when(void, op(opNop, opNop, opNop, opNop), a.call("tick")), op(opNop), a.call("tick"))
	module := instrumented(t, a.bytes())
	h := newHost(t, compiled())
	for fuel := range uint64(12) {
		o := h.run(t, module, fuel, 1, 1)
		paid := 0
		if fuel >= 9 { // local.get, if, nop, call; the arm's five
			paid = 2
		}
		if len(o.host) != paid {
			t.Errorf("with %d of fuel the host was called %d times, want %d", fuel, len(o.host), paid)
		}
	}

	// Nor through a table.
	a = assemble()
	a.host("log", "i:i")
	a.table('r', 1)
	a.function("run", "i", "", get(0), when(void, op(opNop, opNop, opNop, opNop), i32(5), i32(0), op(opCallIndirect), u(a.typ("i:i")), u(0), op(opDrop)))
	a.elements(0, "log")
	module = instrumented(t, a.bytes())
	const arm, all = 2, 10
	for fuel, want := range map[uint64]int{arm: 0, all - 1: 0, all: 1} {
		if o := h.run(t, module, fuel, 1, 1); len(o.host) != want {
			t.Errorf("with %d of fuel the host was called %d times through a table, want %d", fuel, len(o.host), want)
		}
	}
}
