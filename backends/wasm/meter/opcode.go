package meter

import "fmt"

// Opcodes that the rewriting looks at or makes.
const (
	opUnreachable  = 0x00
	opNop          = 0x01
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opDrop         = 0x1a
	opSelect       = 0x1b
	opSelectTyped  = 0x1c
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opTableGet     = 0x25
	opTableSet     = 0x26
	opI32Load      = 0x28
	opI64Store32   = 0x3e
	opMemorySize   = 0x3f
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opF32Const     = 0x43
	opF64Const     = 0x44
	opI32Eqz       = 0x45
	opI32Ne        = 0x47
	opI64LtS       = 0x53
	opI64Sub       = 0x7d
	opI64Shl       = 0x86
	opI64ShrU      = 0x88
	opI64ExtendU   = 0xad
	opI64Extend32S = 0xc4
	opRefNull      = 0xd0
	opRefIsNull    = 0xd1
	opRefFunc      = 0xd2
	opMisc         = 0xfc
	opVector       = 0xfd
)

// Opcodes after opMisc.
const (
	miscTruncSatLast = 0x07
	miscMemoryInit   = 0x08
	miscDataDrop     = 0x09
	miscMemoryCopy   = 0x0a
	miscMemoryFill   = 0x0b
	miscTableInit    = 0x0c
	miscElemDrop     = 0x0d
	miscTableCopy    = 0x0e
	miscTableGrow    = 0x0f
	miscTableSize    = 0x10
	miscTableFill    = 0x11
)

// Opcodes after opVector that have immediates, and the ends of ranges of those.
const (
	vectorLoadFirst   = 0x00
	vectorStore       = 0x0b
	vectorConst       = 0x0c
	vectorShuffle     = 0x0d
	vectorExtract     = 0x15
	vectorReplaceLast = 0x22
	vectorLane        = 0x54
	vectorLaneLast    = 0x5b
	vectorLoad32Zero  = 0x5c
	vectorLoad64Zero  = 0x5d
	vectorLast        = 0xff
)

// unknownVector are the gaps among the opcodes after opVector.
func unknownVector(op uint32) bool {
	switch op {
	case 0x9a, 0xa2, 0xa5, 0xa6, 0xaf, 0xb0, 0xb2, 0xb3, 0xb4, 0xbb,
		0xc2, 0xc5, 0xc6, 0xcf, 0xd0, 0xd2, 0xd3, 0xd4, 0xe2, 0xee:
		return true
	}
	return op > vectorLast
}

// foreign names the instruction, and what it belongs to, of an opcode that is refused.
func foreign(op byte) string {
	belongs := "what is not in WebAssembly 2.0"
	switch op {
	case 0x06, 0x07, 0x08, 0x09, 0x0a, 0x18, 0x19, 0x1f:
		belongs = "exception handling"
	case 0x12, 0x13, 0x15:
		belongs = "tail calls"
	case 0x14, 0xd4, 0xd5, 0xd6:
		belongs = "typed function references"
	case 0xd3, 0xfb:
		belongs = "garbage collection"
	case 0xfe:
		belongs = "threads"
	}
	return fmt.Sprintf("opcode %#x belongs to %s", op, belongs)
}
