package wire

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// writePiece is the most that one Write of the transport takes, in bytes, so
	// that progress can be told from a peer that reads nothing.
	writePiece = 256 << 10
	// joinRaw is up to where raw bytes are copied behind their frame rather than
	// written on their own, in bytes.
	joinRaw = 16 << 10
	// keepBuffer is the largest buffer that is kept for the next frame, in bytes.
	keepBuffer = 256 << 10
)

// Writer writes frames, each in one go whoever else writes. Its methods may be
// called concurrently.
type Writer struct {
	dst io.Writer
	// lock is held by its one element, so that waiting for it can be given up.
	lock chan struct{}
	err  error // why nothing can be written any more; guarded by lock
	// failed says that err is set, to whoever does not hold the lock.
	failed atomic.Bool
	stall  *stall // nil for no limit
}

// NewWriter makes a Writer to dst.
func NewWriter(dst io.Writer) *Writer { return &Writer{dst: dst, lock: make(chan struct{}, 1)} }

// onStall has f called when the peer takes nothing for the time of patience
// while something is to be written. f must make that write fail.
func (w *Writer) onStall(patience time.Duration, f func()) { w.stall = newStall(patience, f) }

// Write writes the frame and the raw bytes that follow it, whose number becomes
// the frame's Raw. A frame over [MaxFrame], more than [MaxRaw] bytes, and data
// that does not encode are errors before anything is written; after any other
// error the Writer is of no more use.
func (w *Writer) Write(f Frame, raw []byte) error {
	if len(raw) > MaxRaw {
		return errors.New("wire: more raw bytes than may follow one frame")
	}
	f.Raw = len(raw)
	return w.send(context.Background(), &f, nil, raw)
}

// send writes f, whose data is what data encodes to, and raw. It fails with
// errNothingSent in the chain when the peer cannot have seen the whole frame.
// ctx ends only the wait for other writers.
func (w *Writer) send(ctx context.Context, f *Frame, data any, raw []byte) error {
	buf := buffers.Get().(*[]byte)
	defer func() {
		if cap(*buf) <= keepBuffer {
			buffers.Put(buf)
		}
	}()
	line, err := appendFrame((*buf)[:0], f, data)
	if cap(line) > cap(*buf) {
		*buf = line[:0]
	}
	if err != nil {
		return notSent{err}
	}
	if len(raw) > 0 && len(raw) <= joinRaw {
		line, raw = append(line, raw...), nil
	}
	return w.sendLine(ctx, line, raw)
}

// sendLine writes whole frames and the raw bytes that follow the last one.
func (w *Writer) sendLine(ctx context.Context, line, raw []byte) error {
	if err := w.acquire(ctx); err != nil {
		return notSent{err}
	}
	defer func() { <-w.lock }()
	if w.err != nil {
		return notSent{w.err}
	}
	n, err := w.write(line)
	if err == nil {
		_, err = w.write(raw)
	}
	if err != nil {
		w.err = err
		w.failed.Store(true)
		if n < len(line) {
			return notSent{err}
		}
	}
	return err
}

func (w *Writer) acquire(ctx context.Context) error {
	select {
	case w.lock <- struct{}{}:
		return nil
	default:
	}
	select {
	case w.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// write writes all of b, piece by piece.
func (w *Writer) write(b []byte) (written int, err error) {
	for len(b) > 0 {
		if w.stall != nil {
			w.stall.begin()
		}
		n, err := w.dst.Write(b[:min(len(b), writePiece)])
		if w.stall != nil {
			w.stall.end()
		}
		written += n
		if err != nil {
			return written, err
		}
		b = b[n:]
	}
	return written, nil
}

// broken reports whether a write failed, so that none will succeed.
func (w *Writer) broken() bool { return w.failed.Load() }

// buffers are where frames are put together.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 1024); return &b }}

// notSent marks an error after which the peer cannot have got the frame.
type notSent struct{ err error }

func (e notSent) Error() string        { return e.err.Error() }
func (e notSent) Unwrap() error        { return e.err }
func (e notSent) Is(target error) bool { return target == ErrNotSent }
