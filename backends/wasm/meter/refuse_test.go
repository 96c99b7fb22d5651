package meter

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// refused are modules that are not instrumented, what is said, and whether that is for
// what they use rather than for what is wrong with them.
func TestRefused(t *testing.T) {
	custom := func(section byte, content ...byte) []byte {
		return appendSection([]byte(header), section, content)
	}
	code := func(instructions ...byte) []byte { return one("", "", instructions) }
	exporting := assemble()
	exporting.function(ExportFuel, "", "")
	importing := assemble()
	importing.add(sectionImport, text(ImportModule), text(ImportRefuel), []byte{kindFunction}, u(importing.typ("II:I")))
	memories := assemble()
	memories.add(sectionMemory, []byte{0, 1})
	memories.add(sectionMemory, []byte{0, 1})
	tables := assemble()
	tables.table('r', DefaultMaxTableElements)
	tables.table('r', 1)
	locals := assemble()
	locals.add(sectionFunction, u(locals.typ("")))
	locals.add(sectionCode, u(7), u(1), u(1<<28), []byte{typeI32, opEnd})
	many := assemble()
	for range maxAllLocals/maxLocals + 1 {
		many.add(sectionFunction, u(many.typ("")))
		many.add(sectionCode, u(6), u(1), u(maxLocals), []byte{typeI32, opEnd})
	}
	wide := assemble()
	wide.typ(strings.Repeat("i", maxParams+1))
	bodies := assemble()
	bodies.add(sectionFunction, u(bodies.typ("")))
	nested := one("", "", bytes.Repeat([]byte{opBlock, typeEmpty}, maxNesting+1), bytes.Repeat([]byte{opEnd}, maxNesting+1))
	large := one("", "", bytes.Repeat([]byte{opNop}, maxBodySize))
	growing := one("", "", bytes.Repeat([]byte{opLoop, typeEmpty, opNop, opEnd}, 1_000_000))

	for _, r := range []struct {
		name, want  string
		module      []byte
		unsupported bool
	}{
		{"nothing", "no WebAssembly module", nil, false},
		{"another version", "no WebAssembly module", []byte("\x00asm\x0d\x00\x01\x00"), false},
		{"half a section", "vector of 5", append([]byte(header), sectionType, 5, 0), false},
		{"a section twice", "out of order", append(custom(sectionType, 0), sectionType, 1, 0), false},
		{"sections out of order", "out of order", append(custom(sectionFunction, 0), sectionType, 1, 0), false},
		{"a section that is too long", "longer than what it holds", custom(sectionType, 0, 0), false},
		{"an unknown section", "section 14", custom(14, 0), true},
		{"a vector of 4 billion", "a vector of 4294967295", custom(sectionType, 0xff, 0xff, 0xff, 0xff, 0x0f), false},
		{"a number of 33 bits", "32 bits", custom(sectionType, 0xff, 0xff, 0xff, 0xff, 0x1f), false},
		{"a number without end", "32 bits", custom(sectionType, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00), false},
		{"functions without bodies", "1 functions have 0 bodies", bodies.bytes(), false},
		{"code after the end", "code after the end", code(opEnd, opNop), false},
		{"a body without end", "too early", one("", "", op(opBlock, typeEmpty)), false},
		{"else without if", "else without if", code(opElse), false},
		{"two elses", "else without if", code(opI32Const, 0, opIf, typeEmpty, opElse, opElse, opEnd), false},
		{"a label too far", "label 2 of 1", code(opBr, 2), false},
		{"a function that is not there", "function 7 of 1", code(opCall, 7), false},
		{"the fuel, by its index", "global 0 of 0", code(opGlobalGet, 0, opDrop), false},
		{"a table that is not there", "table 0 of 0", code(opI32Const, 0, opTableGet, 0, opDrop), false},
		{"a type that is not there", "type 9 of 1", code(opBlock, 9, opEnd), false},
		{"a data segment that is not there", "data segment 0 of 0", code(opMisc, miscDataDrop, 0), false},
		{"a number of 33 bits with sign", "32 bits", code(opI32Const, 0xff, 0xff, 0xff, 0xff, 0x5f, opDrop), false},
		{"the name of the fuel", ExportFuel, exporting.bytes(), true},
		{"the function that refuels", ImportModule, importing.bytes(), true},
		{"two memories", "2 memories", memories.bytes(), true},
		{"large tables", "1048577 elements", tables.bytes(), false},
		{"many locals", "more than 50000 locals", locals.bytes(), false},
		{"many locals together", "together", many.bytes(), false},
		{"many parameters", "1001 parameters", wide.bytes(), false},
		{"deep nesting", "deep", nested, false},
		{"a large function", "a function has", large, false},
		{"what would grow too much", "would grow", growing, false},
		{"tail call", "opcode 0x12 belongs to tail calls", code(0x12, 0), true},
		{"indirect tail call", "tail calls", code(0x13, 0, 0), true},
		{"call_ref", "typed function references", code(0x14, 0), true},
		{"try", "exception handling", code(0x06, typeEmpty, opEnd), true},
		{"try_table", "exception handling", code(0x1f, typeEmpty, 0, opEnd), true},
		{"throw", "exception handling", code(0x08, 0), true},
		{"tags", "section 13", append(append(custom(sectionType, 1, 0x60, 0, 0), sectionTag, 3, 1), 0, 0), true},
		{"struct.new", "garbage collection", code(0xfb, 0, 0), true},
		{"atomic.fence", "threads", code(0xfe, 3, 0), true},
		{"shared memory", "limits of kind 0x3", custom(sectionMemory, 1, 3, 1, 2), true},
		{"64-bit memory", "limits of kind 0x4", custom(sectionMemory, 1, 4, 1), true},
		{"memory 1", "memory 1", code(opMemorySize, 1, opDrop), true},
		{"load of memory 1", "alignment 0x42", code(opI32Const, 0, i32Load, 0x42, 1, 0, opDrop), true},
		{"extended constant", "extended constants", custom(sectionGlobal, 1, typeI32, 0, opI32Const, 1, opI32Const, 2, i32Add, opEnd), true},
		{"relaxed SIMD", "0xfd 0x100", code(opVector, 0x80, 0x02), true},
		{"SIMD in a longer form", "in 3 bytes", code(opVector, 0x80, 0x81, 0x00), true},
		{"SIMD that an engine reads otherwise", "in 2 bytes", code(opVector, 0x80, 0x00), true},
		{"an unknown SIMD opcode", "0xfd 0x9a", code(opVector, 0x9a, 0x01), true},
		{"an unknown opcode", "opcode 0xff", code(0xff), true},
		{"an unknown 0xfc opcode", "opcode 0xfc 0x12", code(opMisc, 0x12), true},
		{"select of two", "select with 2", code(opSelectTyped, 2, typeI32, typeI32), false},
		{"anyref", "value type 0x6e", custom(sectionType, 1, 0x60, 1, 0x6e, 0), true},
		{"a struct type", "form 0x5f", custom(sectionType, 1, 0x5f, 0), true},
		{"a table with an initial value", "reference type 0x40", custom(sectionTable, 1, 0x40, 0, typeFuncref, 0, 1, opRefNull, typeFuncref, opEnd), true},
	} {
		_, err := Instrument(r.module, Options{})
		var e *Error
		switch {
		case !errors.As(err, &e):
			t.Errorf("%s: %v", r.name, err)
		case !strings.Contains(e.Error(), r.want):
			t.Errorf("%s: %v, want something about %q", r.name, e, r.want)
		case e.Unsupported != r.unsupported:
			t.Errorf("%s: %v: unsupported is %v", r.name, e, e.Unsupported)
		case e.Offset > len(r.module):
			t.Errorf("%s: offset %d of %d", r.name, e.Offset, len(r.module))
		}
	}
}

// TestRefusedOffset: the offset is that of the instruction.
func TestRefusedOffset(t *testing.T) {
	module := one("", "", op(opNop, opNop, 0x12, 0))
	_, err := Instrument(module, Options{})
	var e *Error
	if !errors.As(err, &e) || e.Offset != bytes.Index(module, []byte{opNop, opNop, 0x12})+2 {
		t.Errorf("%v", err)
	}
}

// TestNothingUnknown instruments nothing that only experimental features of the
// engine make valid: one instruction of each first byte, with immediates of zeros.
func TestNothingUnknown(t *testing.T) {
	ctx := t.Context()
	everything := api.CoreFeaturesV2 | experimental.CoreFeaturesThreads | experimental.CoreFeaturesTailCall |
		experimental.CoreFeaturesExtendedConst | experimental.CoreFeaturesExceptionHandling | experimental.CoreFeaturesTypedFunctionReferences
	known := wazero.NewRuntimeWithConfig(ctx, interpreted().WithCoreFeatures(api.CoreFeaturesV2))
	defer known.Close(ctx)
	more := wazero.NewRuntimeWithConfig(ctx, interpreted().WithCoreFeatures(everything))
	defer more.Close(ctx)
	valid := func(r wazero.Runtime, module []byte) bool {
		c, err := r.CompileModule(ctx, module)
		if err != nil {
			return false
		}
		c.Close(ctx)
		return true
	}
	found := 0
	for code := range 256 {
		for second := range 256 {
			if code != opMisc && code != opVector && code != 0xfe && second > 0 {
				break
			}
			opcode := append([]byte{byte(code)}, u(uint32(second))...)
			if code != opMisc && code != opVector && code != 0xfe {
				opcode = opcode[:1]
			}
			for zeros := range 4 {
				// What follows unreachable takes any operands.
				module := one("", "", op(opUnreachable), opcode, make([]byte, zeros), op(opUnreachable))
				_, err := Instrument(module, Options{})
				switch {
				case err != nil && valid(known, module):
					t.Errorf("%x with %d zeros is valid, but %v", opcode, zeros, err)
				case err == nil && !valid(known, module) && valid(more, module):
					t.Errorf("%x with %d zeros is valid with experimental features only, but was instrumented", opcode, zeros)
				case err == nil && valid(known, module):
					found++
				}
			}
		}
	}
	if found < 400 {
		t.Errorf("%d instructions were valid and instrumented", found)
	}
}

// TestHostileTime: rewriting takes time in proportion to the module, however its
// branches are nested.
func TestHostileTime(t *testing.T) {
	// Each of many branches leaves many blocks, and each of many labels is far out.
	const depth, branches = 50_000, 200_000
	code := cat(bytes.Repeat([]byte{opBlock, typeEmpty}, depth),
		bytes.Repeat(cat(i32(0), brIf(depth-1)), branches),
		i32(0), brTable(make([]uint32, branches)...),
		bytes.Repeat([]byte{opEnd}, depth))
	began := time.Now()
	if _, err := Instrument(one("", "", code), Options{}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 20*time.Second { // 30 ms; quadratic it would be minutes
		t.Errorf("it took %v", took)
	}
}
