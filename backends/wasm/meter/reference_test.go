package meter

// This file is a reference of its own for what programs cost: it interprets a tree,
// which knows neither opcodes' encodings nor segments, and counts what it executes.

// node is an instruction, with what is nested in it.
type node struct {
	op    byte
	misc  byte
	value int64    // of constants; index of local, global, function, label; offset of loads and stores
	table []uint32 // labels of br_table
	typ   byte     // letter of a block's result, or 0
	body  []node   // of block and loop, the first arm of an if
	other []node   // the second arm
	arms  bool     // whether there is a second arm
}

// encode writes a tree in the binary format.
func encode(nodes []node) []byte {
	var out []byte
	for _, n := range nodes {
		out = append(out, n.op)
		switch n.op {
		case opBlock, opLoop, opIf:
			t := byte(typeEmpty)
			if n.typ != 0 {
				t = letters[n.typ]
			}
			out = append(append(out, t), encode(n.body)...)
			if n.arms {
				out = append(append(out, opElse), encode(n.other)...)
			}
			out = append(out, opEnd)
		case opI32Const:
			out = append(out, i32(int32(n.value))[1:]...)
		case opI64Const:
			out = append(out, i64(n.value)[1:]...)
		case opBr, opBrIf, opCall, opLocalGet, opLocalSet, opLocalTee, opGlobalGet, opGlobalSet:
			out = appendU32(out, uint32(n.value))
		case opBrTable:
			out = append(out, brTable(n.table...)[1:]...)
		case opCallIndirect:
			out = append(appendU32(out, uint32(n.value)), 0)
		case i32Load, i32Store, i32Load8U, i32Store8:
			out = appendU32(append(out, 0), uint32(n.value))
		case opMemoryGrow, opMemorySize:
			out = append(out, 0)
		case opMisc:
			out = append(append(out, n.misc), make([]byte, map[byte]int{miscMemoryFill: 1, miscMemoryCopy: 2}[n.misc])...)
		}
	}
	return out
}

// program is a module as a tree: functions of type i:i, of which the last is run, one
// global, one memory, and a table of all functions and the host's.
type program struct {
	functions [][]node
	locals    int // i32, after the parameter
	wide      int // i64, after those
}

// Function 0 is env.log, of type i:i as well.
const hostFunctions = 1

const (
	programPages    = 1
	programMaxPages = 3
)

func (p program) bytes() []byte {
	a := assemble()
	a.host("log", "i:i")
	a.table('r', uint32(len(p.functions)+hostFunctions+1))
	a.memory(programPages, programMaxPages)
	a.global("a", 'i', i32(0))
	locals := ""
	for range p.locals {
		locals += "i"
	}
	for range p.wide {
		locals += "I"
	}
	names := []string{"log"}
	for i, f := range p.functions {
		name := string(rune('c' + i))
		if i == len(p.functions)-1 {
			name = "run"
		}
		names = append(names, name)
		a.function(name, "i:i", locals, encode(f))
	}
	a.elements(0, names...)
	return a.bytes()
}

// machine runs a program.
type machine struct {
	program
	memory []byte
	global uint32
	stack  []uint64
	host   int // calls of it
	// count is what was executed, and limit what may be.
	count, limit uint64
}

// stopped ends a run before its end, by panic.
type stopped string

const (
	beyondLimit stopped = "beyond the limit"
	trapped     stopped = "trap"
)

// run returns the function's result, or why there is none.
func (m *machine) run(arg uint32) (result uint32, why stopped) {
	defer func() {
		if p := recover(); p != nil {
			why = p.(stopped)
		}
	}()
	m.memory = make([]byte, programPages<<16)
	m.push(uint64(arg))
	m.call(len(m.functions) - 1 + hostFunctions)
	return uint32(m.pop()), ""
}

func (m *machine) push(v uint64) { m.stack = append(m.stack, v) }

func (m *machine) pop() uint64 {
	v := m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-1]
	return v
}

func (m *machine) spend(n uint64) {
	if m.count += n; m.count > m.limit {
		panic(beyondLimit)
	}
}

func (m *machine) call(f int) {
	if f < hostFunctions {
		m.host++
		m.push(uint64(uint32(m.pop()) + 1))
		return
	}
	locals := make([]uint64, 1+m.locals+m.wide)
	locals[0] = m.pop()
	base := len(m.stack)
	if m.block(m.functions[f-hostFunctions], locals, base, 1) >= 0 { // by a return
		m.stack = append(m.stack[:base], m.pop())
	}
}

// goesOn is what block and execute return where no branch was taken; else it is how
// many blocks are still to be left.
const goesOn = -1

// block runs nodes and leaves the stack as high as it was, and results.
func (m *machine) block(nodes []node, locals []uint64, base, results int) (label int) {
	label = goesOn
	for i := range nodes {
		if label = m.execute(&nodes[i], locals); label != goesOn {
			break
		}
	}
	if label <= 0 {
		top := m.stack[len(m.stack)-results:]
		m.stack = append(m.stack[:base], top...)
	}
	return label - 1
}

func boolean(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// execute runs one instruction.
func (m *machine) execute(n *node, locals []uint64) (label int) {
	m.spend(1)
	results := 0
	if n.typ != 0 {
		results = 1
	}
	leave := func(l int) int { return max(l, goesOn) }
	switch n.op {
	case opNop:
	case opUnreachable:
		panic(trapped)
	case opBlock:
		return leave(m.block(n.body, locals, len(m.stack), results))
	case opIf:
		if uint32(m.pop()) != 0 {
			return leave(m.block(n.body, locals, len(m.stack), results))
		}
		if n.arms {
			return leave(m.block(n.other, locals, len(m.stack), results))
		}
	case opLoop:
		for base := len(m.stack); ; {
			label := goesOn
			for i := range n.body {
				if label = m.execute(&n.body[i], locals); label != goesOn {
					break
				}
			}
			if label != 0 {
				if label > 0 {
					label--
				}
				return label
			}
			m.stack = m.stack[:base]
		}
	case opBr:
		return int(n.value)
	case opBrIf:
		if uint32(m.pop()) != 0 {
			return int(n.value)
		}
	case opBrTable:
		return int(n.table[min(uint64(uint32(m.pop())), uint64(len(n.table)-1))])
	case opReturn:
		return 1 << 30
	case opCall:
		m.call(int(n.value))
	case opCallIndirect:
		f := uint32(m.pop())
		if int(f) >= len(m.functions)+hostFunctions {
			panic(trapped)
		}
		m.call(int(f))
	case opDrop:
		m.pop()
	case opSelect:
		c, y, x := uint32(m.pop()), m.pop(), m.pop()
		if c != 0 {
			y = x
		}
		m.push(y)
	case opLocalGet:
		m.push(locals[n.value])
	case opLocalSet:
		locals[n.value] = m.pop()
	case opLocalTee:
		locals[n.value] = m.stack[len(m.stack)-1]
	case opGlobalGet:
		m.push(uint64(m.global))
	case opGlobalSet:
		m.global = uint32(m.pop())
	case opI32Const:
		m.push(uint64(uint32(n.value)))
	case opI64Const:
		m.push(uint64(n.value))
	default:
		m.compute(n)
	}
	return goesOn
}

// compute runs an instruction that works on the stack and the memory only.
func (m *machine) compute(n *node) {
	switch n.op {
	case opI32Eqz:
		m.push(boolean(uint32(m.pop()) == 0))
	case i32Wrap:
		m.push(uint64(uint32(m.pop())))
	case opI64ExtendU:
		m.push(uint64(uint32(m.pop())))
	case opMemorySize:
		m.push(uint64(len(m.memory) >> 16))
	case opMemoryGrow:
		pages, by := uint64(len(m.memory)>>16), uint64(uint32(m.pop()))
		if pages+by > programMaxPages {
			m.push(0xffffffff)
			return
		}
		m.spend(by * 8192)
		m.memory = append(m.memory, make([]byte, by<<16)...)
		m.push(pages)
	case opMisc:
		size, from, to := uint64(uint32(m.pop())), m.pop(), uint64(uint32(m.pop()))
		m.spend(size / 8)
		if n.misc == miscMemoryFill {
			for i := range m.part(to, size) {
				m.memory[to+uint64(i)] = byte(from)
			}
			return
		}
		from = uint64(uint32(from))
		m.part(to, size)
		copy(m.memory[to:], m.part(from, size))
	case i32Load8U:
		m.push(uint64(m.part(uint64(uint32(m.pop()))+uint64(n.value), 1)[0]))
	case i32Store8:
		v := m.pop()
		m.part(uint64(uint32(m.pop()))+uint64(n.value), 1)[0] = byte(v)
	default:
		y, x := m.pop(), m.pop()
		m.push(binaryOperation(n.op, x, y))
	}
}

// part is some of the memory.
func (m *machine) part(at, size uint64) []byte {
	if at+size > uint64(len(m.memory)) {
		panic(trapped)
	}
	return m.memory[at : at+size]
}

func binaryOperation(op byte, x, y uint64) uint64 {
	a, b := uint32(x), uint32(y)
	switch op {
	case i32Add:
		return uint64(a + b)
	case i32Sub:
		return uint64(a - b)
	case i32Mul:
		return uint64(a * b)
	case i32And:
		return uint64(a & b)
	case i32Xor:
		return uint64(a ^ b)
	case i32Shl:
		return uint64(a << (b & 31))
	case i32DivU:
		if b == 0 {
			panic(trapped)
		}
		return uint64(a / b)
	case i32Eq:
		return boolean(a == b)
	case i32LtU:
		return boolean(a < b)
	case i32GtS:
		return boolean(int32(a) > int32(b))
	case i64Add:
		return x + y
	case i64Mul:
		return x * y
	case i64Xor:
		return x ^ y
	case i64GtU:
		return boolean(x > y)
	}
	panic("the reference does not know the opcode")
}
