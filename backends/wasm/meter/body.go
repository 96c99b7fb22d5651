package meter

// edit is one change to a function's body, in the order of their places.
type edit struct {
	// at and end are the offsets in the module of what is replaced; what takes
	// fuel replaces nothing.
	at, end uint32
	// value is the index of the function to call or to refer to, or the cost.
	value uint32
	kind  editKind
}

type editKind uint8

const (
	editTake   editKind = iota // takes the cost of a segment
	editCharge                 // the same, after looking whether there is as much
	editCall
	editRefFunc
)

// dead is the segment of code that cannot be reached.
const dead = -1

// frame is a block that is open.
type frame struct {
	op byte
	// entry is the segment in which the block begins.
	entry int
	// then is the segment in which the first arm of an if ended.
	then int
	// reach is the outermost frame that a branch from inside leads to.
	reach int
	// targeted says that a branch leads to the block's end, or a loop's head.
	targeted bool
	// before, after and middle are whether fuel was due at the block's beginning, at
	// any branch to its end, and at the end of the first arm of an if.
	before, after, middle bool
}

// body walks through a function and finds where its fuel is taken. A segment is
// code that executes as a whole or not at all, as long as nothing traps; it need not
// be in one piece: what follows a block belongs to what went before it, if no
// branch inside leads out of it.
//
// The fuel of every segment is taken at its head. Whether there is as much is looked
// at only where it must be, since a comparison and its branch cost several times
// what the subtraction does: where a function begins, at the head of a loop, and at
// the first segment after a call. What runs between two of these places is at most
// once through the code of one function.
type body struct {
	r      reader
	m      *module
	frames []frame
	edits  []edit
	// current is the index in edits of the segment's charge, or dead.
	current int
	// called says that a call may have been made since fuel was looked at.
	called bool
}

// walk decodes one body, locals and all, and collects its edits. It returns where
// the instructions begin.
func (b *body) walk(at, end int) (start int) {
	b.r = reader{src: b.m.src, pos: at, end: end}
	b.frames, b.edits = b.frames[:0], b.edits[:0]
	b.locals()
	start = b.r.pos
	b.current, b.called = dead, false
	b.open(editCharge)
	b.push(opBlock)
	for b.r.err == nil && len(b.frames) > 0 {
		b.instruction()
	}
	if b.r.err == nil && b.r.left() > 0 {
		b.r.fail(b.r.pos, "code after the end of a function")
	}
	return start
}

func (b *body) locals() {
	r := &b.r
	var sum uint64
	for range r.count() {
		at := r.pos
		sum += uint64(r.u32())
		r.valueType()
		if r.err != nil {
			return
		}
		if sum > maxLocals {
			r.fail(at, "a function has more than %d locals", maxLocals)
			return
		}
	}
	b.m.locals += int(sum)
	if b.m.locals > maxAllLocals {
		r.fail(r.pos, "the functions have more than %d locals together", maxAllLocals)
	}
}

// due says whether fuel is to be looked at before more code runs: a call may have
// been made, or the segment where it was to be looked at turned out to be empty.
func (b *body) due() bool {
	if b.called || b.current == dead {
		return b.called
	}
	s := &b.edits[b.current]
	return s.kind == editCharge && s.value == 0
}

// open begins a segment here.
func (b *body) open(kind editKind) {
	if b.due() {
		kind = editCharge
	}
	b.called = false
	b.current = len(b.edits)
	at := uint32(b.r.pos)
	b.edits = append(b.edits, edit{kind: kind, at: at, end: at})
}

func (b *body) push(op byte) {
	if len(b.frames) > maxNesting {
		b.r.fail(b.r.pos, "blocks are nested more than %d deep", maxNesting)
		return
	}
	b.frames = append(b.frames, frame{op: op, entry: b.current, then: dead, reach: len(b.frames), before: b.due()})
}

// replace puts a call, or a reference, in the place of the instruction since at.
func (b *body) replace(at int, kind editKind, function uint32) {
	b.edits = append(b.edits, edit{kind: kind, at: uint32(at), end: uint32(b.r.pos), value: function})
}

// branch notes that the current code may continue at the label.
func (b *body) branch(label uint32) {
	if b.current == dead || b.r.err != nil {
		return
	}
	target := len(b.frames) - 1 - int(label)
	b.frames[target].targeted = true
	b.frames[target].after = b.frames[target].after || b.due()
	top := &b.frames[len(b.frames)-1]
	top.reach = min(top.reach, target)
}

func (b *body) label() uint32 { return b.r.index("label", len(b.frames)) }

func (b *body) instruction() {
	at := b.r.pos
	op := b.r.byte()
	if b.current != dead && op != opElse && op != opEnd {
		b.edits[b.current].value++
	}
	switch op {
	case opBlock, opLoop, opIf:
		b.blockType()
		b.push(op)
		switch {
		case b.current == dead:
		case op == opLoop:
			b.open(editCharge)
		case op == opIf:
			b.open(editTake)
		}
	case opElse:
		b.otherwise(at)
	case opEnd:
		b.close()
	case opBr:
		b.branch(b.label())
		b.current = dead
	case opBrIf:
		b.branch(b.label())
		if b.current != dead {
			b.open(editTake)
		}
	case opBrTable:
		for range b.r.count() {
			b.branch(b.label())
		}
		b.branch(b.label())
		b.current = dead
	case opReturn:
		b.branch(uint32(len(b.frames) - 1))
		b.current = dead
	case opUnreachable:
		b.current = dead
	default:
		b.plain(at, op)
	}
}

// otherwise is the else of an if.
func (b *body) otherwise(at int) {
	top := &b.frames[len(b.frames)-1]
	if top.op != opIf {
		b.r.fail(at, "else without if")
		return
	}
	top.op, top.then, top.middle = opElse, b.current, b.due()
	b.current, b.called = top.entry, top.before
	if b.current != dead {
		b.open(editTake)
	}
}

// close is the end of a block: it decides which segment the code after it is in.
func (b *body) close() {
	index := len(b.frames) - 1
	f := b.frames[index]
	b.frames = b.frames[:index]
	if index == 0 {
		return
	}
	outer := &b.frames[index-1]
	outer.reach = min(outer.reach, f.reach)
	if f.entry == dead {
		b.current = dead
		return
	}
	if f.op == opLoop {
		// A branch to a loop leads to its head: its end is reached from above only.
		if b.current != dead && f.reach == index {
			b.current = f.entry
		}
		return
	}
	// More than one way may lead here: a branch, the arms of an if, its condition
	// when it was false.
	joins := f.targeted || f.op == opIf || f.op == opElse && f.then != dead && b.current != dead
	b.called = b.current != dead && b.due() || f.after ||
		f.op == opIf && f.before || f.op == opElse && f.then != dead && f.middle
	if f.op == opElse && b.current == dead {
		b.current = f.then
	}
	switch {
	case !joins && b.current == dead:
	case f.reach == index:
		b.current = f.entry
	case joins:
		b.open(editTake)
	}
}

func (b *body) blockType() {
	at := b.r.pos
	switch t := b.r.signed(33); {
	case b.r.err != nil:
	case t >= 0:
		if t >= int64(b.m.types) {
			b.r.fail(at, "type %d of %d", t, b.m.types)
		}
	default:
		// One byte, the same as that of a value type.
		b.r.pos = at
		if b.r.left() > 0 && b.r.src[at] == typeEmpty {
			b.r.pos++
			return
		}
		b.r.valueType()
	}
}

// plain reads the immediates of an instruction that does not branch.
func (b *body) plain(at int, op byte) {
	r, m := &b.r, b.m
	switch {
	case op == opNop, op == opDrop, op == opSelect, op == opRefIsNull, op >= opI32Eqz && op <= opI64Extend32S:
	case op == opCall:
		if i := r.index("function", m.functions); r.err == nil {
			b.called = true
			b.replace(at, editCall, m.callee(i))
		}
	case op == opRefFunc:
		if i := r.index("function", m.functions); r.err == nil {
			b.replace(at, editRefFunc, m.referee(i))
		}
	case op == opCallIndirect:
		r.index("type", m.types)
		r.index("table", len(m.tables))
		b.called = true
	case op == opSelectTyped:
		if n := r.byte(); n != 1 {
			r.fail(at, "select with %d types", n)
		}
		r.valueType()
	case op >= opLocalGet && op <= opLocalTee:
		r.index("local", maxLocals+maxParams)
	case op == opGlobalGet, op == opGlobalSet:
		r.index("global", m.globals)
	case op == opTableGet, op == opTableSet:
		r.index("table", len(m.tables))
	case op >= opI32Load && op <= opI64Store32:
		b.memoryArgument()
	case op == opMemorySize:
		r.zero()
	case op == opMemoryGrow:
		r.zero()
		b.ranged(at, added{op: op})
	case op == opI32Const:
		r.signed(32)
	case op == opI64Const:
		r.signed(64)
	case op == opF32Const:
		r.skip(4)
	case op == opF64Const:
		r.skip(8)
	case op == opRefNull:
		r.refType()
	case op == opMisc:
		b.misc(at)
	case op == opVector:
		b.vector(at)
	default:
		r.refuse(at, "%s", foreign(op))
	}
}

func (b *body) memoryArgument() {
	at := b.r.pos
	if align := b.r.u32(); align > 4 {
		b.r.refuse(at, "alignment %#x is not known", align)
	}
	b.r.u32()
}

// misc reads what follows opMisc.
func (b *body) misc(at int) {
	r, m := &b.r, b.m
	op := r.byte()
	a := added{op: opMisc, misc: op}
	switch op {
	case miscMemoryInit:
		a.x = r.index("data segment", m.dataSegments)
		r.zero()
	case miscDataDrop:
		r.index("data segment", m.dataSegments)
		return
	case miscMemoryCopy:
		r.zero()
		r.zero()
	case miscMemoryFill:
		r.zero()
	case miscTableInit:
		a.x = r.index("element segment", m.elementSegments)
		a.y = r.index("table", len(m.tables))
	case miscElemDrop:
		r.index("element segment", m.elementSegments)
		return
	case miscTableCopy:
		a.x = r.index("table", len(m.tables))
		a.y = r.index("table", len(m.tables))
	case miscTableGrow, miscTableFill:
		a.x = r.index("table", len(m.tables))
	case miscTableSize:
		r.index("table", len(m.tables))
		return
	default:
		if op > miscTruncSatLast {
			r.refuse(at, "opcode 0xfc %#x is not known", op)
		}
		return
	}
	b.ranged(at, a)
}

// ranged puts the call of a function that charges for it in the place of an
// instruction that works on a range.
func (b *body) ranged(at int, a added) {
	if b.r.err == nil {
		b.replace(at, editCall, b.m.index(a))
	}
}

// vector reads what follows opVector. Its opcode must have the shortest form: wazero
// takes one byte for it and leaves the second, always 1, to be a nop, so that any
// other form would mean another thing to it than to us.
func (b *body) vector(at int) {
	r := &b.r
	from := r.pos
	op := r.u32()
	if r.err != nil {
		return
	}
	if unknownVector(op) || r.pos-from > 2 || op < 0x80 && r.pos-from > 1 {
		r.refuse(at, "opcode 0xfd %#x, in %d bytes, is not known", op, r.pos-from)
		return
	}
	switch {
	case op <= vectorStore, op == vectorLoad32Zero, op == vectorLoad64Zero:
		b.memoryArgument()
	case op == vectorConst, op == vectorShuffle:
		r.skip(16)
	case op >= vectorExtract && op <= vectorReplaceLast:
		r.byte()
	case op >= vectorLane && op <= vectorLaneLast:
		b.memoryArgument()
		r.byte()
	}
}
