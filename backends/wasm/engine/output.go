package engine

import (
	"bytes"
	"errors"
)

// errOutput ends a guest that writes more than it may.
var errOutput = errors.New("it wrote more than it may")

// output is what a guest writes, on both of its streams.
type output struct {
	left      int64
	truncate  bool
	truncated bool
	out, errs bytes.Buffer
}

// stream is one of them.
type stream struct {
	o  *output
	to *bytes.Buffer
}

// Write keeps what there is room for. It panics, and so ends the guest, where more
// is not to be dropped.
func (s stream) Write(p []byte) (int, error) {
	n := min(int64(len(p)), s.o.left)
	s.o.left -= n
	s.to.Write(p[:n])
	if n < int64(len(p)) {
		s.o.truncated = true
		if !s.o.truncate {
			panic(errOutput)
		}
	}
	return len(p), nil
}

// body is both streams, one after the other.
func (o *output) body() []byte {
	if o.errs.Len() == 0 {
		return o.out.Bytes()
	}
	o.out.Grow(o.errs.Len())
	return append(o.out.Bytes(), o.errs.Bytes()...)
}
