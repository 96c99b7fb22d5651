package meter

// Parts of the name section that are kept.
const (
	namesModule    = 0
	namesFunctions = 1
)

// renumberedNames is the content of the name section as far as it names the module
// and its functions, or nil where there is none or it makes no sense: names are for
// stack traces, and a module is not worse for bad ones.
func (m *module) renumberedNames() []byte {
	var out []byte
	var functions section
	r := &reader{src: m.names, end: len(m.names)}
	for r.err == nil && r.left() > 0 {
		id := r.byte()
		size := r.count()
		part := &reader{src: m.names, pos: r.pos, end: r.pos + size}
		r.skip(size)
		switch id {
		case namesModule:
			out = appendSection(nil, namesModule, appendName(nil, string(part.name())))
		case namesFunctions:
			functions = m.functionNames(part)
		default:
			part.pos = part.end
		}
		if part.err != nil || part.left() > 0 {
			return nil
		}
	}
	if r.err != nil || functions.count == 0 {
		return nil
	}
	for _, a := range m.added {
		functions.add(appendName(appendU32(nil, m.index(a)), a.String()))
	}
	return functions.append(out, namesFunctions)
}

// functionNames reads names of functions, in ascending order of their indices.
func (m *module) functionNames(r *reader) section {
	var s section
	next := uint32(0)
	for range r.count() {
		at := r.pos
		i := r.index("function", m.functions)
		name := r.name()
		if r.err == nil && i < next {
			r.fail(at, "names are out of order")
		}
		if r.err != nil {
			break
		}
		next = i + 1
		s.add(appendName(appendU32(nil, m.renumber(i)), string(name)))
	}
	return s
}
