package engine

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// errOutput ends a guest that writes more than it may.
var errOutput = errors.New("it wrote more than it may")

// output is what a guest writes, on both of its streams.
type output struct {
	// limit is how much comes back of both streams together, in bytes.
	limit int64
	// truncate says that what is more is left out of the middle, and else ends the
	// guest.
	truncate  bool
	used      int64 // by the beginnings of both
	out, errs stream
}

// stream is one of them: its beginning as far as there is room, and then its end.
type stream struct {
	o     *output
	head  []byte
	tail  []byte
	total int64
}

func newOutput(limit int64, truncate bool) *output {
	o := &output{limit: limit, truncate: truncate}
	o.out.o, o.errs.o = o, o
	return o
}

// Write keeps what there is room for. It panics, and so ends the guest, where more
// is not to be left out.
func (s *stream) Write(p []byte) (int, error) {
	n := len(p)
	s.total += int64(n)
	fits := min(int64(n), s.o.limit-s.o.used)
	if len(s.tail) > 0 {
		fits = 0
	}
	s.o.used += fits
	s.head = append(s.head, p[:fits]...)
	if p = p[fits:]; len(p) == 0 {
		return n, nil
	}
	if !s.o.truncate {
		panic(errOutput)
	}
	room := int(s.o.limit)
	s.tail = append(s.tail, p[max(0, len(p)-room):]...)
	if len(s.tail) > 2*room {
		s.tail = append(s.tail[:0], s.tail[len(s.tail)-room:]...)
	}
	return n, nil
}

// finish returns both streams, together at most as long as the limit, and whether
// something was left out. A stream that is short comes whole.
func (o *output) finish() (out, errs []byte, truncated bool) {
	if o.out.total+o.errs.total <= o.limit {
		return o.out.head, o.errs.head, false
	}
	half := o.limit / 2
	forOut := max(half, o.limit-o.errs.total)
	forErrs := max(o.limit-half, o.limit-o.out.total)
	return o.out.cut(forOut), o.errs.cut(forErrs), true
}

// cut is the stream in at most most bytes: its beginning and its end, and between
// them a line that tells how much is missing. Characters are not cut.
func (s *stream) cut(most int64) []byte {
	if s.total <= most && s.total == int64(len(s.head)+len(s.tail)) {
		return append(s.head, s.tail...)
	}
	gap := func(n int64) string { return fmt.Sprintf("\n[%d bytes left out]\n", n) }
	room := most - int64(len(gap(s.total)))
	if room <= 0 {
		return s.head[:min(most, int64(len(s.head)))]
	}
	head := s.head[:min(room/2, int64(len(s.head)))]
	end := s.tail
	if s.total == int64(len(s.head)+len(s.tail)) { // nothing is missing between them
		end = append(s.head[len(head):len(s.head):len(s.head)], s.tail...)
	}
	end = end[max(0, int64(len(end))-(room-int64(len(head)))):]
	for len(head) > 0 && !endsWhole(head) {
		head = head[:len(head)-1]
	}
	for n := 0; n < utf8.UTFMax-1 && len(end) > 0 && !utf8.RuneStart(end[0]); n++ {
		end = end[1:]
	}
	missing := gap(s.total - int64(len(head)+len(end)))
	return append(append(append(make([]byte, 0, len(head)+len(missing)+len(end)), head...), missing...), end...)
}

// endsWhole reports whether b does not end within a character. What is no UTF-8 is
// cut anywhere.
func endsWhole(b []byte) bool {
	for i := 1; i <= min(utf8.UTFMax, len(b)); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			return utf8.FullRune(b[len(b)-i:])
		}
	}
	return true
}
