package meter

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

func instrument(src []byte, o Options) (Module, error) {
	if o.MaxSize == 0 {
		o.MaxSize = DefaultMaxSize
	}
	if o.MaxTableElements == 0 {
		o.MaxTableElements = DefaultMaxTableElements
	}
	m := &module{src: src, maxTable: o.MaxTableElements, addedIndex: map[added]uint32{}, signatures: map[signature]uint32{}, referred: map[uint32]bool{}}
	if err := m.read(min(o.MaxSize, math.MaxInt32)); err != nil {
		return Module{}, err
	}
	out := m.write()
	if limit := m.maxGrown(); len(out) > limit {
		return Module{}, &Error{Reason: fmt.Sprintf("it would grow to %d bytes, %d are the limit", len(out), limit)}
	}
	return Module{Bytes: out, Charges: m.charges, Functions: m.written[sectionCode].count}, nil
}

// maxGrown is how large the module may become.
func (m *module) maxGrown() int { return MaxGrowth*len(m.src) + MaxGrowthBytes }

// code rewrites the functions' bodies.
func (m *module) code(r *reader) {
	n := r.count()
	out := make([]byte, 0, r.left()*3/2)
	b := &body{m: m}
	var one []byte
	for range n {
		at := r.pos
		size := r.count()
		from := r.pos
		r.skip(size)
		if r.err == nil && size > maxBodySize {
			r.fail(at, "a function has %d bytes, %d are the limit", size, maxBodySize)
		}
		if r.err != nil {
			return
		}
		start := b.walk(from, from+size)
		if b.r.err != nil {
			r.err = b.r.err
			return
		}
		one = append(one[:0], m.src[from:start]...)
		one = m.splice(one, start, from+size, b.edits)
		out = append(appendU32(out, uint32(len(one))), one...)
		if len(out) > m.maxGrown() {
			r.fail(at, "it would grow to more than %d bytes", m.maxGrown())
			return
		}
	}
	m.written[sectionCode] = section{count: n, body: out}
}

// splice appends a body's instructions with its edits.
func (m *module) splice(out []byte, from, to int, edits []edit) []byte {
	for _, e := range edits {
		if e.kind <= editCharge && e.value == 0 {
			continue
		}
		out = append(out, m.src[from:e.at]...)
		from = int(e.end)
		switch e.kind {
		case editTake, editCharge:
			m.charges++
			if e.kind == editCharge {
				out = m.want(out, constant(int64(e.value)))
			}
			out = m.take(out, constant(int64(e.value)))
		case editCall:
			out = appendIndexed(out, opCall, e.value)
		case editRefFunc:
			out = appendIndexed(out, opRefFunc, e.value)
		}
	}
	return append(out, m.src[from:to]...)
}

// write puts the module together: its sections, and in their vectors what is added.
func (m *module) write() []byte {
	functions, code := m.written[sectionFunction], m.written[sectionCode]
	for i := 0; i < len(m.added); i++ { // a body may add another function
		a := m.added[i]
		functions.add(appendU32(nil, m.typeOfAdded(a)))
		body := m.addedBody(nil, a)
		code.add(append(appendU32(nil, uint32(len(body))), body...))
	}

	imports := m.written[sectionImport]
	refuel := append(appendName(appendName(nil, ImportModule), ImportRefuel), kindFunction)
	imports.add(appendU32(refuel, m.typeIndex(signature{"\x7e\x7e", "\x7e"})))

	globals := m.written[sectionGlobal]
	globals.add(append(appendI64Const([]byte{typeI64, 1}, 0), opEnd))

	exports := m.written[sectionExport]
	exports.add(appendU32(append(appendName(nil, ExportFuel), kindGlobal), m.fuel()))

	elements := m.written[sectionElement]
	if len(m.referred) > 0 {
		// An export declares a function that code may refer to; now that another one
		// is exported in its place it has to be declared like this.
		list := section{count: len(m.referred)}
		for _, i := range slices.Sorted(maps.Keys(m.referred)) {
			list.body = appendU32(list.body, i)
		}
		elements.add(append(appendU32([]byte{elementsPassive | elementsIndexed, 0}, uint32(list.count)), list.body...))
	}

	out := make([]byte, 0, len(m.src)+len(code.body)-len(code.body)/2)
	out = append(out, header...)
	out = m.written[sectionType].append(out, sectionType)
	out = imports.append(out, sectionImport)
	out = functions.append(out, sectionFunction)
	out = m.boundedTables().append(out, sectionTable)
	out = m.written[sectionMemory].append(out, sectionMemory)
	out = globals.append(out, sectionGlobal)
	out = exports.append(out, sectionExport)
	if m.hasStart {
		out = appendSection(out, sectionStart, appendU32(nil, m.start))
	}
	out = elements.append(out, sectionElement)
	if m.hasDataCount {
		out = appendSection(out, sectionDataCount, appendU32(nil, uint32(m.dataSegments)))
	}
	out = code.append(out, sectionCode)
	out = m.written[sectionData].append(out, sectionData)
	if names := m.renumberedNames(); names != nil {
		out = appendSection(out, sectionCustom, append(appendName(nil, "name"), names...))
	}
	return out
}

// add appends an element.
func (s *section) add(element []byte) {
	s.count++
	s.body = append(s.body, element...)
}

func (s section) append(out []byte, id byte) []byte {
	if s.count == 0 {
		return out
	}
	count := appendU32(nil, uint32(s.count))
	out = appendU32(append(out, id), uint32(len(count)+len(s.body)))
	return append(append(out, count...), s.body...)
}

func appendSection(out []byte, id byte, content []byte) []byte {
	return append(appendU32(append(out, id), uint32(len(content))), content...)
}

func appendName(out []byte, name string) []byte {
	return append(appendU32(out, uint32(len(name))), name...)
}

// typeIndex returns the index of a type that is added.
func (m *module) typeIndex(s signature) uint32 {
	i, ok := m.signatures[s]
	if !ok {
		types := &m.written[sectionType]
		i = uint32(types.count)
		m.signatures[s] = i
		types.add(appendType(nil, s))
	}
	return i
}

func appendType(out []byte, s signature) []byte {
	out = append(out, 0x60)
	return appendName(appendName(out, s.params), s.results)
}
