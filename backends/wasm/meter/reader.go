package meter

import (
	"fmt"
	"unicode/utf8"
)

// reader decodes the binary format between two offsets of a module. The first error
// sticks: what is read after it is zero, so a caller may look at err once for several
// reads, but must look before it trusts a count.
type reader struct {
	src      []byte
	pos, end int
	err      *Error
}

// fail records what is wrong at an offset.
func (r *reader) fail(at int, format string, args ...any) {
	if r.err == nil {
		r.err = &Error{Offset: at, Reason: fmt.Sprintf(format, args...)}
	}
	r.pos = r.end
}

// refuse records that a module needs what this package does not offer.
func (r *reader) refuse(at int, format string, args ...any) {
	if r.err == nil {
		r.fail(at, format, args...)
		r.err.Unsupported = true
	}
}

func (r *reader) left() int { return r.end - r.pos }

func (r *reader) byte() byte {
	if r.pos >= r.end {
		r.fail(r.pos, "it ends too early")
		return 0
	}
	b := r.src[r.pos]
	r.pos++
	return b
}

// skip passes over n bytes.
func (r *reader) skip(n int) {
	if n > r.left() {
		r.fail(r.pos, "it ends too early")
		return
	}
	r.pos += n
}

// u32 reads an unsigned number of at most 32 bits.
func (r *reader) u32() uint32 {
	var v uint32
	at := r.pos
	for shift := 0; shift < 35; shift += 7 {
		b := r.byte()
		if shift == 28 && b > 0x0f {
			break
		}
		v |= uint32(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
	r.fail(at, "a number does not fit 32 bits")
	return 0
}

// signed reads a signed number of at most so many bits.
func (r *reader) signed(bits int) int64 {
	var v int64
	at := r.pos
	for shift := 0; shift < bits; shift += 7 {
		b := r.byte()
		v |= int64(b&0x7f) << shift
		if b >= 0x80 {
			continue
		}
		if rest := bits - shift; rest < 7 {
			// The bits beyond the number's width must repeat its sign.
			if high := int8(b<<1) >> rest; high != 0 && high != -1 {
				break
			}
		}
		if shift+7 < 64 && b&0x40 != 0 {
			v |= -1 << (shift + 7)
		}
		return v
	}
	r.fail(at, "a number does not fit %d bits", bits)
	return 0
}

// count reads the length of a vector whose elements take at least one byte each, so
// that it never exceeds what is there.
func (r *reader) count() int {
	at := r.pos
	n := r.u32()
	if int64(n) > int64(r.left()) {
		r.fail(at, "a vector of %d elements in %d bytes", n, r.left())
		return 0
	}
	return int(n)
}

// index reads an index below a limit.
func (r *reader) index(what string, limit int) uint32 {
	at := r.pos
	i := r.u32()
	if r.err == nil && int64(i) >= int64(limit) {
		r.fail(at, "%s %d of %d", what, i, limit)
	}
	return i
}

// name reads a name; its bytes are part of the module.
func (r *reader) name() []byte {
	n := r.count()
	at := r.pos
	r.skip(n)
	if r.err != nil {
		return nil
	}
	s := r.src[at : at+n]
	if !utf8.Valid(s) {
		r.fail(at, "a name is not UTF-8")
	}
	return s
}

// Types of values.
const (
	typeI32       = 0x7f
	typeI64       = 0x7e
	typeF32       = 0x7d
	typeF64       = 0x7c
	typeV128      = 0x7b
	typeFuncref   = 0x70
	typeExternref = 0x6f
	// typeEmpty is the type of a block without parameters and results.
	typeEmpty = 0x40
)

func (r *reader) valueType() {
	at := r.pos
	switch t := r.byte(); t {
	case typeI32, typeI64, typeF32, typeF64, typeV128, typeFuncref, typeExternref:
	default:
		r.refuse(at, "value type %#x is not known", t)
	}
}

func (r *reader) refType() byte {
	at := r.pos
	t := r.byte()
	if t != typeFuncref && t != typeExternref {
		r.refuse(at, "reference type %#x is not known", t)
	}
	return t
}

// zero reads the byte that stands where later versions name a memory.
func (r *reader) zero() {
	at := r.pos
	if b := r.byte(); b != 0 {
		r.refuse(at, "memory %d: there is one memory only", b)
	}
}

// limits are the sizes of a table or memory.
type limits struct {
	min, max uint32
	bounded  bool
}

func (r *reader) limits() limits {
	at := r.pos
	var l limits
	switch flags := r.byte(); flags {
	case 0:
		l.min = r.u32()
	case 1:
		l.min, l.max, l.bounded = r.u32(), r.u32(), true
	default:
		r.refuse(at, "limits of kind %#x: shared and 64-bit ones are not known", flags)
	}
	return l
}
