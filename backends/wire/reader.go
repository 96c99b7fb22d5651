package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

const (
	// minBuffer is what an idle reader holds, in bytes.
	minBuffer = 16 << 10
	// takeSize is from where on data is handed over with its buffer instead of
	// being copied, in bytes.
	takeSize = 128 << 10
)

// Reader reads frames and the raw bytes after them. It holds at most one frame
// in memory, and its buffer shrinks again. It is not safe for concurrent use.
type Reader struct {
	src        io.Reader
	buf        []byte
	start, end int // the bytes that were read and not used
	scanned    int // in them no newline stands before this index
	raw        int // raw bytes of the last frame that were not read
	bulk       bool
	quote      bool // put the head of a bad line into errors; a host's has a token
	frame      rawFrame
}

// NewReader makes a Reader of src.
func NewReader(src io.Reader) *Reader { return &Reader{src: src} }

// Bulk says whether the peer announced [CapBulk]. Until then the members raw and
// body are ignored.
func (r *Reader) Bulk(on bool) { r.bulk = on }

// Read reads the next frame. Raw bytes of the previous one that were not read
// are dropped. It fails with [io.EOF] at an end between frames, with
// [io.ErrUnexpectedEOF] at one elsewhere, and with a [*FrameError] for a line
// that is no frame; after any failure there is nothing more to read.
func (r *Reader) Read() (Frame, error) {
	f, err := r.next()
	if err != nil {
		return Frame{}, err
	}
	frame, err := f.frame()
	if err != nil {
		return Frame{}, r.bad(f.detail, "not a frame: member \"detail\": %v", err)
	}
	return frame, nil
}

// ReadRaw reads the next len(p) of the raw bytes that follow the last frame; p
// must not ask for more than are left.
func (r *Reader) ReadRaw(p []byte) error {
	if len(p) > r.raw {
		return errors.New("wire: more raw bytes are asked for than follow the frame")
	}
	n := copy(p, r.buf[r.start:r.end])
	r.start += n
	r.raw -= len(p)
	if n == len(p) {
		return nil
	}
	if _, err := io.ReadFull(r.src, p[n:]); err != nil {
		return cutShort(err)
	}
	return nil
}

// next is Read without the copy: the frame is valid until the next call.
func (r *Reader) next() (*rawFrame, error) {
	if err := r.dropRaw(); err != nil {
		return nil, err
	}
	line, err := r.line(MaxFrame)
	if err != nil {
		return nil, err
	}
	if err := r.frame.parse(line, r.bulk); err != nil {
		return nil, r.bad(line, "not a frame: %v", err)
	}
	r.raw = r.frame.raw
	return &r.frame, nil
}

// buffered reports whether something has been read behind the last frame.
func (r *Reader) buffered() bool { return r.end > r.start }

// line reads a line, which it returns without its newline; it is valid until
// the next read. limit counts the newline.
func (r *Reader) line(limit int) ([]byte, error) {
	for {
		if i := bytes.IndexByte(r.buf[r.scanned:r.end], '\n'); i >= 0 {
			newline := r.scanned + i
			line := r.buf[r.start:newline]
			r.start, r.scanned = newline+1, newline+1
			if len(line)+1 > limit {
				return nil, r.bad(line, "a line of more than %d bytes", limit)
			}
			return line, nil
		}
		r.scanned = r.end
		if r.end-r.start >= limit {
			return nil, r.bad(r.buf[r.start:r.end], "a line of more than %d bytes", limit)
		}
		if err := r.fill(limit); err != nil {
			if r.end > r.start {
				err = cutShort(err)
			}
			return nil, err
		}
	}
}

// fill reads more bytes behind those that are there.
func (r *Reader) fill(limit int) error {
	r.makeRoom(limit)
	for range maxEmptyReads {
		n, err := r.src.Read(r.buf[r.end:])
		r.end += n
		if n > 0 {
			return nil // a failure comes again
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// maxEmptyReads is how often a source may return neither bytes nor an error.
const maxEmptyReads = 100

// makeRoom makes room in the buffer: at its end, by moving what is in it to the
// front, or by a bigger one.
func (r *Reader) makeRoom(limit int) {
	used := r.end - r.start
	switch {
	case used == 0 && (r.buf == nil || len(r.buf) > takeSize):
		r.buf = make([]byte, minBuffer)
	case r.end < len(r.buf):
		if used > 0 {
			return
		}
	case used > len(r.buf)/2:
		bigger := make([]byte, max(minBuffer, min(2*len(r.buf), limit)))
		copy(bigger, r.buf[r.start:r.end])
		r.buf = bigger
	default:
		copy(r.buf, r.buf[r.start:r.end])
	}
	r.scanned -= r.start
	r.start, r.end = 0, used
}

// dropRaw passes over the raw bytes that nobody read.
func (r *Reader) dropRaw() error {
	n := min(r.raw, r.end-r.start)
	r.start += n
	r.raw -= n
	r.scanned = r.start
	if r.raw == 0 {
		return nil
	}
	_, err := io.CopyN(io.Discard, r.src, int64(r.raw))
	r.raw = 0
	return cutShort(err)
}

// take makes data, which is a part of the last line, outlive it. Small data is
// copied; with large data the buffer changes hands.
func (r *Reader) take(data []byte) []byte {
	if len(data) < takeSize || len(data) < len(r.buf)/4 {
		return bytes.Clone(data)
	}
	rest := r.buf[r.start:r.end]
	fresh := make([]byte, max(minBuffer, len(rest)))
	copy(fresh, rest)
	r.buf, r.start, r.end, r.scanned = fresh, 0, len(rest), 0
	return data[:len(data):len(data)]
}

// bad is the error for a line.
func (r *Reader) bad(line []byte, format string, args ...any) *FrameError {
	e := &FrameError{Reason: fmt.Sprintf(format, args...)}
	if r.quote {
		e.Head = bytes.Clone(line[:min(len(line), quotedHead)])
	}
	return e
}

// cutShort is err for a place where the input must not end.
func cutShort(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
