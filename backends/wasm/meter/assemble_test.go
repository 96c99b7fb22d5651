package meter

// assembly is a module in the making. Types are written as letters: i and I are i32
// and i64, f and F are f32 and f64, v is v128, r and x are funcref and externref;
// "iI:i" takes two values and returns one.
type assembly struct {
	types   []string
	names   map[string]uint32 // of functions
	parts   [sections][][]byte
	start   []byte
	custom  []byte
	counted bool
}

func assemble() *assembly { return &assembly{names: map[string]uint32{}} }

var letters = map[byte]byte{'i': typeI32, 'I': typeI64, 'f': typeF32, 'F': typeF64, 'v': typeV128, 'r': typeFuncref, 'x': typeExternref}

func valueTypes(s string) []byte {
	var out []byte
	for i := range len(s) {
		out = append(out, letters[s[i]])
	}
	return out
}

// typ returns the index of a function type.
func (a *assembly) typ(t string) uint32 {
	for i, known := range a.types {
		if known == t {
			return uint32(i)
		}
	}
	a.types = append(a.types, t)
	params, results := t, ""
	for i := range len(t) {
		if t[i] == ':' {
			params, results = t[:i], t[i+1:]
		}
	}
	a.add(sectionType, appendType(nil, signature{string(valueTypes(params)), string(valueTypes(results))}))
	return uint32(len(a.types) - 1)
}

func (a *assembly) add(section byte, parts ...[]byte) {
	a.parts[section] = append(a.parts[section], cat(parts...))
}

// host imports env.name.
func (a *assembly) host(name, t string) {
	a.names[name] = uint32(len(a.names))
	a.add(sectionImport, text("env"), text(name), []byte{kindFunction}, u(a.typ(t)))
}

// function adds a function, exported by its name, with locals of the types that are
// named. Imports come first.
func (a *assembly) function(name, t, locals string, code ...[]byte) {
	a.names[name] = uint32(len(a.names))
	a.add(sectionFunction, u(a.typ(t)))
	a.add(sectionExport, text(name), []byte{kindFunction}, u(a.names[name]))
	body := u(uint32(len(locals)))
	for _, l := range valueTypes(locals) {
		body = append(body, 1, l)
	}
	body = append(append(body, cat(code...)...), opEnd)
	a.add(sectionCode, u(uint32(len(body))), body)
}

// memory adds the memory and exports it.
func (a *assembly) memory(pages, limit uint32) {
	a.add(sectionMemory, []byte{1}, u(pages), u(limit))
	a.add(sectionExport, text("memory"), []byte{kindMemory, 0})
}

func (a *assembly) table(t byte, size uint32) { a.add(sectionTable, []byte{letters[t], 0}, u(size)) }

func (a *assembly) global(name string, t byte, init []byte) {
	a.add(sectionExport, text(name), []byte{kindGlobal}, u(uint32(len(a.parts[sectionGlobal]))))
	a.add(sectionGlobal, []byte{letters[t], 1}, init, []byte{opEnd})
}

// elements adds an active segment of functions in table 0.
func (a *assembly) elements(at int32, functions ...string) {
	list := u(uint32(len(functions)))
	for _, f := range functions {
		list = append(list, u(a.names[f])...)
	}
	a.add(sectionElement, []byte{0}, i32(at), []byte{opEnd}, list)
}

func (a *assembly) passiveData(s string) {
	a.counted = true
	a.add(sectionData, []byte{1}, text(s))
}

func (a *assembly) activeData(at int32, s string) {
	a.add(sectionData, []byte{0}, i32(at), []byte{opEnd}, text(s))
}

func (a *assembly) call(name string) []byte { return indexed(opCall, a.names[name]) }

func (a *assembly) bytes() []byte {
	out := []byte(header)
	for _, id := range []byte{sectionType, sectionImport, sectionFunction, sectionTable, sectionMemory, sectionGlobal, sectionExport, sectionStart, sectionElement, sectionDataCount, sectionCode, sectionData} {
		switch {
		case id == sectionStart && a.start != nil:
			out = appendSection(out, id, a.start)
		case id == sectionDataCount && a.counted:
			out = appendSection(out, id, u(uint32(len(a.parts[sectionData]))))
		default:
			out = section{count: len(a.parts[id]), body: cat(a.parts[id]...)}.append(out, id)
		}
	}
	return append(out, a.custom...)
}

// one makes a module of one function, run, and a memory of 1 to 3 pages.
func one(t, locals string, code ...[]byte) []byte {
	a := assemble()
	a.memory(1, 3)
	a.function("run", t, locals, code...)
	return a.bytes()
}

func cat(parts ...[]byte) []byte {
	var out []byte
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func u(v uint32) []byte { return appendU32(nil, v) }

func text(s string) []byte { return appendName(nil, s) }

func op(code ...byte) []byte { return code }

func indexed(code byte, i uint32) []byte { return appendIndexed(nil, code, i) }

func get(i uint32) []byte { return indexed(opLocalGet, i) }
func set(i uint32) []byte { return indexed(opLocalSet, i) }
func tee(i uint32) []byte { return indexed(opLocalTee, i) }

func i32(v int32) []byte {
	c := appendI64Const(nil, int64(v))
	c[0] = opI32Const
	return c
}

func i64(v int64) []byte { return appendI64Const(nil, v) }

func br(label uint32) []byte   { return indexed(opBr, label) }
func brIf(label uint32) []byte { return indexed(opBrIf, label) }

func brTable(labels ...uint32) []byte {
	out := append([]byte{opBrTable}, u(uint32(len(labels)-1))...)
	for _, l := range labels {
		out = append(out, u(l)...)
	}
	return out
}

// void is the type of a block without parameters and results.
var void = []byte{typeEmpty}

func result(letter byte) []byte { return []byte{letters[letter]} }

func block(t []byte, code ...[]byte) []byte {
	return cat([]byte{opBlock}, t, cat(code...), []byte{opEnd})
}
func loop(t []byte, code ...[]byte) []byte {
	return cat([]byte{opLoop}, t, cat(code...), []byte{opEnd})
}

func when(t []byte, then ...[]byte) []byte { return cat([]byte{opIf}, t, cat(then...), []byte{opEnd}) }

func either(t, then, otherwise []byte) []byte {
	return cat([]byte{opIf}, t, then, []byte{opElse}, otherwise, []byte{opEnd})
}

func misc(code byte, immediates ...byte) []byte { return append([]byte{opMisc, code}, immediates...) }

func vec(code uint32, immediates ...byte) []byte {
	return append(appendU32([]byte{opVector}, code), immediates...)
}

// Opcodes of arithmetic that tests use.
const (
	i32Eq     = 0x46
	i32LtU    = 0x49
	i32GtS    = 0x4a
	i32Add    = 0x6a
	i32Sub    = 0x6b
	i32Mul    = 0x6c
	i32DivU   = 0x6e
	i32And    = 0x71
	i32Xor    = 0x73
	i32Shl    = 0x74
	i64Add    = 0x7c
	i64Mul    = 0x7e
	i64Xor    = 0x85
	i64GtU    = 0x56
	i32Wrap   = 0xa7
	i32Load   = 0x28
	i32Store  = 0x36
	i32Store8 = 0x3a
	i32Load8U = 0x2d
)
