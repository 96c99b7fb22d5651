package meter

import "encoding/binary"

// added is a function that is added to the module: what it stands for, and its
// immediates.
//
// Range instructions are such functions, so that no function of the guest needs a
// local for an operand that is used twice. The others stand at the border to the
// host: what the host sees, and what it returns, is paid.
type added struct {
	// op is the instruction that it stands for, or one of those below; misc is its
	// second byte.
	op, misc byte
	x, y     uint32
}

// Added functions that stand for no instruction, by opcodes that do not occur.
const (
	addedNeed  = 0xf0 // (need i64): lets the host refuel
	addedSpend = 0xf1 // (cost i64): takes a cost that is not known before
	addedOut   = 0xf2 // calls the imported function x
	addedIn    = 0xf3 // is called by the host for the module's function x
)

// index returns the index of an added function. They stand after the module's own.
func (m *module) index(a added) uint32 {
	i, ok := m.addedIndex[a]
	if !ok {
		i = uint32(m.functions + 1 + len(m.added))
		m.addedIndex[a] = i
		m.added = append(m.added, a)
	}
	return i
}

// callee returns what the module calls where it called a function before.
func (m *module) callee(i uint32) uint32 {
	if int(i) < m.imported {
		return m.index(added{op: addedOut, x: i})
	}
	return m.renumber(i)
}

// referee returns what the module refers to where it referred to a function before.
func (m *module) referee(i uint32) uint32 {
	is := m.callee(i)
	m.referred[is] = true
	return is
}

// entry returns what the host calls where it called a function before.
func (m *module) entry(i uint32) uint32 {
	if int(i) < m.imported {
		return i
	}
	return m.index(added{op: addedIn, x: i})
}

// renumber returns the index that a function has after the one that is imported
// beside the imported ones.
func (m *module) renumber(i uint32) uint32 {
	if int(i) < m.imported {
		return i
	}
	return i + 1
}

// refuel is the index of the imported function: after the others that are imported.
func (m *module) refuel() uint32 { return uint32(m.imported) }

// fuel is the index of the fuel's global: after the guest's own, so that nothing
// the engine found valid can name it.
func (m *module) fuel() uint32 { return uint32(m.globals) }

// charge appends what takes the cost of a segment if there is as much; if not, it is
// asked for before. The comparison comes before the subtraction, so that a run
// that stops there has paid nothing for what did not begin.
func (m *module) charge(out []byte, cost operand) []byte {
	return m.take(m.want(out, cost), cost)
}

// operand appends an instruction that yields an i64.
type operand func(out []byte) []byte

func constant(v int64) operand { return func(out []byte) []byte { return appendI64Const(out, v) } }

func local(i uint32) operand {
	return func(out []byte) []byte { return appendIndexed(out, opLocalGet, i) }
}

// want appends: if the fuel is below the cost, need(cost).
func (m *module) want(out []byte, cost operand) []byte {
	out = appendIndexed(out, opGlobalGet, m.fuel())
	out = append(cost(out), opI64LtS, opIf, typeEmpty)
	out = appendIndexed(cost(out), opCall, m.index(added{op: addedNeed}))
	return append(out, opEnd)
}

// take appends: fuel = fuel - cost.
func (m *module) take(out []byte, cost operand) []byte {
	out = appendIndexed(out, opGlobalGet, m.fuel())
	out = append(cost(out), opI64Sub)
	return appendIndexed(out, opGlobalSet, m.fuel())
}

// addedBody appends the body of an added function, its locals first.
func (m *module) addedBody(out []byte, a added) []byte {
	switch a.op {
	case addedNeed:
		// It traps should the host not keep its word.
		out = appendIndexed(append(out, 0), opGlobalGet, m.fuel())
		out = appendIndexed(out, opLocalGet, 0)
		out = appendIndexed(out, opCall, m.refuel())
		out = appendIndexed(out, opGlobalSet, m.fuel())
		out = appendIndexed(out, opGlobalGet, m.fuel())
		out = appendIndexed(out, opLocalGet, 0)
		out = append(out, opI64LtS, opIf, typeEmpty, opUnreachable, opEnd)
	case addedSpend:
		out = m.charge(append(out, 0), local(0))
	case addedOut:
		out = m.want(append(out, 0), constant(0))
		out = m.forward(out, a.x)
	case addedIn:
		out = m.forward(append(out, 0), a.x)
		out = m.want(out, constant(0))
	default:
		out = m.rangedBody(out, a)
	}
	return append(out, opEnd)
}

// forward appends the call of a function with the parameters of this one.
func (m *module) forward(out []byte, function uint32) []byte {
	for i := range m.parameters[m.typeOf[function]] {
		out = appendIndexed(out, opLocalGet, uint32(i))
	}
	return appendIndexed(out, opCall, m.renumber(function))
}

// Shifts that make units of fuel of sizes.
const (
	bytesShift = 3  // BytesPerUnit
	pageShift  = 13 // a page, divided by BytesPerUnit
)

// signature is the type of a function that is added.
type signature struct{ params, results string }

// typeOfAdded returns the type of an added function.
func (m *module) typeOfAdded(a added) uint32 {
	switch a.op {
	case addedIn, addedOut:
		return m.typeOf[a.x]
	case addedNeed, addedSpend:
		return m.typeIndex(signature{"\x7e", ""})
	default:
		return m.typeIndex(m.rangedSignature(a))
	}
}

// rangedSignature is the type of a range instruction.
func (m *module) rangedSignature(a added) signature {
	switch {
	case a.op == opMemoryGrow:
		return signature{"\x7f", "\x7f"}
	case a.misc == miscTableGrow:
		return signature{string([]byte{m.tables[a.x].element, typeI32}), "\x7f"}
	case a.misc == miscTableFill:
		return signature{string([]byte{typeI32, m.tables[a.x].element, typeI32}), ""}
	default:
		return signature{"\x7f\x7f\x7f", ""}
	}
}

// rangedBody appends the function of a range instruction. What fills and copies is
// charged before: the work must be paid first. What grows is charged after, and
// only where it grew: a guest may well ask for more than it gets, and what it gets
// the host's limits bound.
func (m *module) rangedBody(out []byte, a added) []byte {
	params := len(m.rangedSignature(a).params)
	size := uint32(params - 1)
	if a.op != opMemoryGrow && a.misc != miscTableGrow {
		out = m.spendSize(append(out, 0), a, size)
		return m.execute(out, a, params)
	}
	result := uint32(params)
	out = append(out, 1, 1, typeI32)
	out = m.execute(out, a, params)
	out = appendIndexed(out, opLocalTee, result)
	out = append(out, opI32Const, 0x7f /* -1 */, opI32Ne, opIf, typeEmpty)
	out = append(m.spendSize(out, a, size), opEnd)
	return appendIndexed(out, opLocalGet, result)
}

// spendSize appends the charge for a size, which is an i32 and unsigned: no shift
// of it leaves 46 bits.
func (m *module) spendSize(out []byte, a added, size uint32) []byte {
	out = appendIndexed(out, opLocalGet, size)
	out = append(out, opI64ExtendU)
	switch {
	case a.op == opMemoryGrow:
		out = append(appendI64Const(out, pageShift), opI64Shl)
	case a.misc == miscMemoryInit, a.misc == miscMemoryCopy, a.misc == miscMemoryFill:
		out = append(appendI64Const(out, bytesShift), opI64ShrU)
	}
	return appendIndexed(out, opCall, m.index(added{op: addedSpend}))
}

// execute appends the range instruction itself and its operands.
func (m *module) execute(out []byte, a added, params int) []byte {
	for i := range params {
		out = appendIndexed(out, opLocalGet, uint32(i))
	}
	if a.op == opMemoryGrow {
		return append(out, opMemoryGrow, 0)
	}
	out = append(out, opMisc, a.misc)
	switch a.misc {
	case miscMemoryInit:
		return append(appendU32(out, a.x), 0)
	case miscMemoryCopy:
		return append(out, 0, 0)
	case miscMemoryFill:
		return append(out, 0)
	case miscTableInit, miscTableCopy:
		return appendU32(appendU32(out, a.x), a.y)
	default: // table.grow, table.fill
		return appendU32(out, a.x)
	}
}

func appendU32(out []byte, v uint32) []byte { return binary.AppendUvarint(out, uint64(v)) }

func appendIndexed(out []byte, op byte, index uint32) []byte {
	return appendU32(append(out, op), index)
}

func appendI64Const(out []byte, v int64) []byte {
	out = append(out, opI64Const)
	for {
		b := byte(v & 0x7f)
		v >>= 7
		if v == 0 && b&0x40 == 0 || v == -1 && b&0x40 != 0 {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}

// String names the function in stack traces.
func (a added) String() string {
	name := "memory.grow"
	switch a.op {
	case addedNeed:
		name = "need"
	case addedSpend:
		name = "spend"
	case addedOut:
		name = "out"
	case addedIn:
		name = "in"
	case opMisc:
		name = [...]string{
			miscMemoryInit: "memory.init", miscMemoryCopy: "memory.copy", miscMemoryFill: "memory.fill",
			miscTableInit: "table.init", miscTableCopy: "table.copy", miscTableGrow: "table.grow", miscTableFill: "table.fill",
		}[a.misc]
	}
	return ImportModule + "." + name
}
