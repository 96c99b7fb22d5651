package meter

import "encoding/binary"

// rangeKey is a range instruction with its immediates. Each that occurs becomes a
// function, which charges for the size and executes the instruction; so no function
// of the guest needs a local for an operand that is used twice.
type rangeKey struct {
	op, misc byte
	x, y     uint32
}

// The functions that are added stand after the guest's: first the one that
// refuels, then the one that spends, then those of the range instructions.
func (m *module) refuelIndex() uint32 { return uint32(m.imported) }
func (m *module) needIndex() uint32   { return uint32(m.functions) + 1 }
func (m *module) spendIndex() uint32  { return uint32(m.functions) + 2 }

// ranged returns the function that stands for a range instruction.
func (m *module) ranged(key rangeKey) uint32 {
	i, ok := m.rangedIndex[key]
	if !ok {
		i = m.spendIndex() + 1 + uint32(len(m.rangedKeys))
		m.rangedIndex[key] = i
		m.rangedKeys = append(m.rangedKeys, key)
	}
	return i
}

// fuel is the index of the fuel's global: after the guest's own, so that nothing
// the engine found valid can name it.
func (m *module) fuel() uint32 { return uint32(m.globals) }

// charge appends what takes the cost of a segment: unless there is as much, it is
// asked for, and then it is taken. The comparison comes before the subtraction, so
// that the global is never negative and a run that stops has paid nothing for
// what did not begin.
func (m *module) charge(out []byte, cost uint32) []byte {
	out = m.want(out, func(out []byte) []byte { return appendI64Const(out, int64(cost)) })
	return m.take(out, func(out []byte) []byte { return appendI64Const(out, int64(cost)) })
}

// want appends: if the fuel is below the cost, need(cost).
func (m *module) want(out []byte, cost func([]byte) []byte) []byte {
	out = appendIndexed(out, opGlobalGet, m.fuel())
	out = cost(out)
	out = append(out, opI64LtU, opIf, typeEmpty)
	out = cost(out)
	out = appendIndexed(out, opCall, m.needIndex())
	return append(out, opEnd)
}

// take appends: fuel = fuel - cost.
func (m *module) take(out []byte, cost func([]byte) []byte) []byte {
	out = appendIndexed(out, opGlobalGet, m.fuel())
	out = cost(out)
	out = append(out, opI64Sub)
	return appendIndexed(out, opGlobalSet, m.fuel())
}

// need is the function (need i64) that calls the host when there is not enough, and
// traps should the host not keep its word.
func (m *module) need(out []byte) []byte {
	out = appendIndexed(out, opGlobalGet, m.fuel())
	out = appendIndexed(out, opLocalGet, 0)
	out = appendIndexed(out, opCall, m.refuelIndex())
	out = appendIndexed(out, opGlobalSet, m.fuel())
	out = appendIndexed(out, opGlobalGet, m.fuel())
	out = appendIndexed(out, opLocalGet, 0)
	return append(out, opI64LtU, opIf, typeEmpty, opUnreachable, opEnd, opEnd)
}

// spend is the function (cost i64) that takes a cost which is not known before.
func (m *module) spend(out []byte) []byte {
	cost := func(out []byte) []byte { return appendIndexed(out, opLocalGet, 0) }
	out = m.want(out, cost)
	out = m.take(out, cost)
	return append(out, opEnd)
}

// Shifts that make units of fuel of sizes.
const (
	bytesShift = 3  // BytesPerUnit
	pageShift  = 13 // a page, divided by BytesPerUnit
)

// signature is the type of a function that is added.
type signature struct{ params, results string }

// rangedSignature is the type of a range instruction.
func (m *module) rangedSignature(k rangeKey) signature {
	switch {
	case k.op == opMemoryGrow:
		return signature{"\x7f", "\x7f"}
	case k.misc == miscTableGrow:
		return signature{string([]byte{m.tables[k.x].element, typeI32}), "\x7f"}
	case k.misc == miscTableFill:
		return signature{string([]byte{typeI32, m.tables[k.x].element, typeI32}), ""}
	default:
		return signature{"\x7f\x7f\x7f", ""}
	}
}

// rangedBody appends the function of a range instruction, its locals first. What
// fills and copies is charged before: the work must be paid first. What grows
// is charged after, and only where it grew: a guest may well ask for more than it
// gets, and what it gets the host's limits bound.
func (m *module) rangedBody(out []byte, k rangeKey) []byte {
	params := len(m.rangedSignature(k).params)
	size := uint32(params - 1)
	grows := k.op == opMemoryGrow || k.misc == miscTableGrow
	if !grows {
		out = append(out, 0)
		out = m.spendSize(out, k, size)
		out = m.execute(out, k, params)
		return append(out, opEnd)
	}
	result := uint32(params)
	out = append(out, 1, 1, typeI32)
	out = m.execute(out, k, params)
	out = appendIndexed(out, opLocalTee, result)
	out = append(out, opI32Const, 0x7f /* -1 */, opI32Ne, opIf, typeEmpty)
	out = m.spendSize(out, k, size)
	out = append(out, opEnd)
	out = appendIndexed(out, opLocalGet, result)
	return append(out, opEnd)
}

// spendSize appends the charge for a size, which is an i32 and unsigned: no shift
// of it leaves 46 bits.
func (m *module) spendSize(out []byte, k rangeKey, size uint32) []byte {
	out = appendIndexed(out, opLocalGet, size)
	out = append(out, opI64ExtendU)
	switch {
	case k.op == opMemoryGrow:
		out = append(appendI64Const(out, pageShift), opI64Shl)
	case k.misc == miscMemoryInit, k.misc == miscMemoryCopy, k.misc == miscMemoryFill:
		out = append(appendI64Const(out, bytesShift), opI64ShrU)
	}
	return appendIndexed(out, opCall, m.spendIndex())
}

// execute appends the range instruction itself and its operands.
func (m *module) execute(out []byte, k rangeKey, params int) []byte {
	for i := range params {
		out = appendIndexed(out, opLocalGet, uint32(i))
	}
	if k.op == opMemoryGrow {
		return append(out, opMemoryGrow, 0)
	}
	out = append(out, opMisc, k.misc)
	switch k.misc {
	case miscMemoryInit:
		return append(appendU32(out, k.x), 0)
	case miscMemoryCopy:
		return append(out, 0, 0)
	case miscMemoryFill:
		return append(out, 0)
	case miscTableInit, miscTableCopy:
		return appendU32(appendU32(out, k.x), k.y)
	default: // table.grow, table.fill
		return appendU32(out, k.x)
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

// String is the name of the instruction.
func (k rangeKey) String() string {
	if k.op == opMemoryGrow {
		return "memory.grow"
	}
	return [...]string{
		miscMemoryInit: "memory.init", miscMemoryCopy: "memory.copy", miscMemoryFill: "memory.fill",
		miscTableInit: "table.init", miscTableCopy: "table.copy", miscTableGrow: "table.grow", miscTableFill: "table.fill",
	}[k.misc]
}
