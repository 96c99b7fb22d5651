package meter

import "slices"

// Sections by their numbers; they stand in the order of sectionOrder.
const (
	sectionCustom    = 0
	sectionType      = 1
	sectionImport    = 2
	sectionFunction  = 3
	sectionTable     = 4
	sectionMemory    = 5
	sectionGlobal    = 6
	sectionExport    = 7
	sectionStart     = 8
	sectionElement   = 9
	sectionCode      = 10
	sectionData      = 11
	sectionDataCount = 12
	sectionTag       = 13
	sections         = 14
)

// place returns where a section stands among the others.
func place(id byte) int {
	if id == sectionDataCount {
		return sectionElement*2 + 1
	}
	return int(id) * 2
}

// Kinds of imports and exports.
const (
	kindFunction = 0
	kindTable    = 1
	kindMemory   = 2
	kindGlobal   = 3
	kindTag      = 4
)

const header = "\x00asm\x01\x00\x00\x00"

// section is a section that consists of a vector, as it will be written: its
// elements without their number.
type section struct {
	count int
	body  []byte
}

// module is what is known of the module that comes in, and its sections as they
// will be written.
type module struct {
	src      []byte
	maxTable uint32

	types, functions, imported int
	parameters                 []uint16 // of each type, how many
	typeOf                     []uint32 // of each function
	globals, memories          int
	tables                     []table
	importedTables             int
	tableElements              uint64 // that they begin with, all together
	locals                     int    // of all functions together
	hasStart                   bool
	start                      uint32
	elementSegments            int
	hasDataCount               bool
	dataSegments               int
	hasNames                   bool
	names                      []byte

	written [sections]section
	charges int
	// addedIndex has the functions that are added, and added the same in the order
	// of their indices; signatures has the types that are.
	addedIndex map[added]uint32
	added      []added
	// referred are the functions that bodies refer to without calling them, by their
	// new indices.
	referred   map[uint32]bool
	signatures map[signature]uint32
}

// read decodes the sections and prepares them for writing, code too.
func (m *module) read(maxSize int) *Error {
	r := &reader{src: m.src, end: len(m.src)}
	if len(m.src) > maxSize {
		r.fail(0, "it has %d bytes, %d are the limit", len(m.src), maxSize)
		return r.err
	}
	if len(m.src) < len(header) || string(m.src[:len(header)]) != header {
		r.fail(0, "this is no WebAssembly module of version 1")
		return r.err
	}
	r.pos = len(header)
	last := 0
	for r.err == nil && r.left() > 0 {
		at := r.pos
		id := r.byte()
		size := r.count()
		from := r.pos
		r.skip(size)
		if r.err != nil {
			break
		}
		if id >= sections {
			r.refuse(at, "section %d is not known", id)
			break
		}
		if id != sectionCustom {
			if place(id) <= last {
				r.fail(at, "section %d is out of order, or there twice", id)
				break
			}
			last = place(id)
		}
		s := &reader{src: m.src, pos: from, end: from + size}
		m.section(id, s)
		if s.err == nil && s.left() > 0 {
			s.fail(s.pos, "section %d is longer than what it holds", id)
		}
		if s.err != nil {
			return s.err
		}
	}
	if r.err == nil {
		m.complete(r)
	}
	return r.err
}

// complete checks what only all sections together tell.
func (m *module) complete(r *reader) {
	own := m.functions - m.imported
	switch code, data := m.written[sectionCode].count, m.written[sectionData].count; {
	case code != own:
		r.fail(r.pos, "%d functions have %d bodies", own, code)
	case m.hasDataCount && data != m.dataSegments:
		r.fail(r.pos, "%d data segments were announced, there are %d", m.dataSegments, data)
	case m.memories > 1:
		r.refuse(r.pos, "there are %d memories, one is known", m.memories)
	}
}

func (m *module) section(id byte, r *reader) {
	switch id {
	case sectionCustom:
		m.custom(r)
	case sectionType:
		m.vector(r, id, m.functionType)
		m.types = m.written[id].count
	case sectionImport:
		m.vector(r, id, m.importOf)
		m.imported = m.functions
	case sectionFunction:
		m.vector(r, id, func(c *copier) {
			m.function(c.r)
		})
	case sectionTable:
		m.importedTables = len(m.tables)
		m.vector(r, id, m.table)
	case sectionMemory:
		m.vector(r, id, m.memory)
	case sectionGlobal:
		m.vector(r, id, func(c *copier) {
			m.globalType(c)
			m.constant(c)
		})
	case sectionExport:
		m.vector(r, id, m.export)
	case sectionStart:
		m.hasStart = true
		if i := r.index("function", m.functions); r.err == nil {
			m.start = m.entry(i)
		}
	case sectionElement:
		m.vector(r, id, m.elements)
		m.elementSegments = m.written[id].count
	case sectionDataCount:
		m.hasDataCount = true
		m.dataSegments = int(r.u32())
	case sectionCode:
		m.code(r)
	case sectionData:
		m.vector(r, id, m.data)
	default:
		r.refuse(r.pos, "section %d, of exception handling, is not known", id)
	}
}

// copier writes what a reader reads, but for what is said to be different.
type copier struct {
	r    *reader
	out  []byte
	mark int // up to where the source is written
}

// instead writes something in the place of the source from an offset to the reader.
func (c *copier) instead(at int, b []byte) {
	c.out = append(append(c.out, c.r.src[c.mark:at]...), b...)
	c.mark = c.r.pos
}

// done returns all that was written.
func (c *copier) done() []byte {
	rest := c.r.src[c.mark:c.r.pos]
	if c.out == nil {
		return slices.Clip(rest) // what is added later must not end up in the source
	}
	return append(c.out, rest...)
}

// vector reads a section that is a vector.
func (m *module) vector(r *reader, id byte, element func(*copier)) {
	n := r.count()
	c := &copier{r: r, mark: r.pos}
	for range n {
		if r.err != nil {
			return
		}
		element(c)
	}
	m.written[id] = section{count: n, body: c.done()}
}

func (m *module) functionType(c *copier) {
	r := c.r
	at := r.pos
	if form := r.byte(); form != 0x60 {
		r.refuse(at, "type of form %#x is not known", form)
	}
	if len(m.parameters) == maxTypes {
		r.fail(at, "there are more than %d types", maxTypes)
	}
	for vector := range 2 {
		n := r.count()
		if n > maxParams {
			r.fail(at, "a type has %d parameters or results, %d are the limit", n, maxParams)
			return
		}
		if vector == 0 {
			m.parameters = append(m.parameters, uint16(n))
		}
		for range n {
			r.valueType()
		}
	}
}

// function reads the type of a function, imported or own.
func (m *module) function(r *reader) {
	at := r.pos
	t := r.index("type", m.types)
	if m.functions++; m.functions > maxFunctions {
		r.fail(at, "there are more than %d functions", maxFunctions)
		return
	}
	m.typeOf = append(m.typeOf, t)
}

func (m *module) importOf(c *copier) {
	r := c.r
	at := r.pos
	from := r.name()
	r.name()
	if string(from) == ImportModule {
		r.refuse(at, "it imports from %q, which is kept for metering", ImportModule)
		return
	}
	at = r.pos
	switch kind := r.byte(); kind {
	case kindFunction:
		m.function(r)
	case kindTable:
		m.table(c)
	case kindMemory:
		m.memory(c)
	case kindGlobal:
		m.globalType(c)
	default:
		r.refuse(at, "import of kind %d is not known", kind)
	}
}

// table is the type of a table.
type table struct {
	element byte
	limits
}

// table reads a table's type, own or imported.
func (m *module) table(c *copier) {
	r := c.r
	at := r.pos
	t := table{r.refType(), r.limits()}
	m.tables = append(m.tables, t)
	m.tableElements += uint64(t.min)
	switch {
	case r.err != nil:
	case len(m.tables) > maxTables:
		r.fail(at, "there are more than %d tables", maxTables)
	case m.tableElements > uint64(m.maxTable):
		r.fail(at, "the tables begin with %d elements, %d are the limit", m.tableElements, m.maxTable)
	case t.bounded && t.min > t.max:
		r.fail(at, "a table's minimum is above its maximum")
	}
}

// boundedTables are the module's own tables, which may grow into equal shares of what
// the limit leaves. How far imported ones grow is the host's affair.
func (m *module) boundedTables() section {
	var s section
	own := m.tables[m.importedTables:]
	for _, t := range own {
		limit := t.min + (m.maxTable-uint32(m.tableElements))/uint32(len(own))
		if t.bounded {
			limit = min(limit, t.max)
		}
		s.add(appendU32(appendU32([]byte{t.element, 1}, t.min), limit))
	}
	return s
}

func (m *module) memory(c *copier) {
	at := c.r.pos
	if l := c.r.limits(); l.bounded && l.min > l.max {
		c.r.fail(at, "a memory's minimum is above its maximum")
	}
	m.memories++
}

func (m *module) globalType(c *copier) {
	c.r.valueType()
	at := c.r.pos
	if mutable := c.r.byte(); mutable > 1 {
		c.r.refuse(at, "global of kind %#x is not known", mutable)
	}
	m.globals++
}

// constant reads an initial value or offset.
func (m *module) constant(c *copier) {
	r := c.r
	at := r.pos
	switch op := r.byte(); op {
	case opI32Const:
		r.signed(32)
	case opI64Const:
		r.signed(64)
	case opF32Const:
		r.skip(4)
	case opF64Const:
		r.skip(8)
	case opGlobalGet:
		r.index("global", m.globals)
	case opRefNull:
		r.refType()
	case opRefFunc:
		m.functionIndex(c, m.callee)
	case opVector:
		if r.u32() != vectorConst || r.pos != at+2 {
			r.fail(at, "a constant that is none")
		}
		r.skip(16)
	default:
		r.refuse(at, "opcode %#x in a constant is not known", op)
	}
	at = r.pos
	if op := r.byte(); op != opEnd {
		r.refuse(at, "opcode %#x in a constant belongs to extended constants", op)
	}
}

// functionIndex reads the index of a function and writes the one that stands for it.
func (m *module) functionIndex(c *copier, is func(uint32) uint32) {
	at := c.r.pos
	i := c.r.index("function", m.functions)
	if c.r.err == nil {
		c.instead(at, appendU32(nil, is(i)))
	}
}

func (m *module) export(c *copier) {
	r := c.r
	at := r.pos
	if string(r.name()) == ExportFuel {
		r.refuse(at, "it exports %q, which is kept for metering", ExportFuel)
		return
	}
	at = r.pos
	switch kind := r.byte(); kind {
	case kindFunction:
		m.functionIndex(c, m.entry)
	case kindTable:
		r.index("table", len(m.tables))
	case kindMemory:
		r.index("memory", m.memories)
	case kindGlobal:
		r.index("global", m.globals)
	default:
		r.refuse(at, "export of kind %d is not known", kind)
	}
}

// Flags of an element segment.
const (
	elementsPassive     = 1 // or declarative
	elementsIndexed     = 2 // names its table; with elementsPassive: declarative
	elementsExpressions = 4
)

func (m *module) elements(c *copier) {
	r := c.r
	at := r.pos
	flags := r.u32()
	if flags > 7 {
		r.refuse(at, "element segment of kind %d is not known", flags)
		return
	}
	if flags&elementsPassive == 0 {
		if flags&elementsIndexed != 0 {
			r.index("table", len(m.tables))
		}
		m.constant(c)
	}
	if flags&(elementsPassive|elementsIndexed) != 0 {
		at = r.pos
		if flags&elementsExpressions != 0 {
			r.refType()
		} else if kind := r.byte(); kind != 0 {
			r.refuse(at, "elements of kind %d are not known", kind)
		}
	}
	for range r.count() {
		if r.err != nil {
			return
		}
		if flags&elementsExpressions != 0 {
			m.constant(c)
		} else {
			m.functionIndex(c, m.callee)
		}
	}
}

func (m *module) data(c *copier) {
	r := c.r
	at := r.pos
	switch flags := r.u32(); flags {
	case 0:
		m.constant(c)
	case 1:
	case 2:
		r.zero()
		m.constant(c)
	default:
		r.refuse(at, "data segment of kind %d is not known", flags)
	}
	r.skip(r.count())
}

// custom keeps the names and drops all else.
func (m *module) custom(r *reader) {
	name := r.name()
	if string(name) == "name" {
		if m.hasNames {
			r.fail(r.pos, "there are two name sections")
			return
		}
		m.hasNames = true
		m.names = r.src[r.pos:r.end]
	}
	if r.err == nil {
		r.pos = r.end
	}
}
