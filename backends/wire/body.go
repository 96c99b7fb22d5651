package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
)

const (
	// bodyPiece is how much of a body one frame carries, in bytes: little enough
	// that other frames are hardly held up on a slow stream.
	bodyPiece = 256 << 10
	// takenStep is how much is taken before the sender hears of it, in bytes.
	takenStep = BodyWindow / 4
)

// An outbox is the sender's view of one body.
type outbox struct {
	id, token string
	w         *Writer
	taken     atomic.Int64  // what the receiver said that it took
	more      chan struct{} // has an element when taken grew
}

func newOutbox(w *Writer, id, token string) *outbox {
	return &outbox{id: id, token: token, w: w, more: make(chan struct{}, 1)}
}

// grow notes that the receiver took total bytes so far.
func (o *outbox) grow(total int64) {
	if total > o.taken.Load() { // only the reading goroutine calls grow
		o.taken.Store(total)
		wake(o.more)
	}
}

// piece sends one piece, once the receiver has room for it.
func (o *outbox) piece(ctx context.Context, done <-chan struct{}, sent int64, p []byte) error {
	for sent+int64(len(p)) > o.taken.Load()+BodyWindow {
		select {
		case <-o.more:
		case <-done:
			return errNotWanted
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return o.w.send(ctx, &Frame{ID: o.id, Method: methodBody, Token: o.token, Raw: len(p)}, nil, p)
}

// sendBytes sends a body that is in memory. It ends early when ctx or done do.
func (o *outbox) sendBytes(ctx context.Context, done <-chan struct{}, body []byte) error {
	for sent := 0; sent < len(body); {
		p := body[sent:min(len(body), sent+bodyPiece)]
		if err := o.piece(ctx, done, int64(sent), p); err != nil {
			return err
		}
		sent += len(p)
	}
	return nil
}

// sendStream sends the next size bytes of src.
func (o *outbox) sendStream(ctx context.Context, src io.Reader, size int64) error {
	buf := make([]byte, min(size, bodyPiece))
	for sent := int64(0); sent < size; {
		p := buf[:min(size-sent, bodyPiece)]
		if _, err := io.ReadFull(src, p); err != nil {
			return fmt.Errorf("the content ended after %d of %d bytes: %w", sent, size, cutShort(err))
		}
		if err := o.piece(ctx, nil, sent, p); err != nil {
			return err
		}
		sent += int64(len(p))
	}
	return nil
}

// abort tells the receiver that the rest will not come, and why.
func (o *outbox) abort(ctx context.Context, cause error, detailed bool) error {
	f := errorFrame(o.id, cause, detailed)
	f.Method, f.Token = methodBody, o.token
	return o.w.send(ctx, &f, nil, nil)
}

// errNotWanted ends the sending of a body whose receiver has answered already.
var errNotWanted = errors.New("the body is not wanted any more")

// An inbox is the receiver's view of one body: filled by the goroutine that
// reads the connection, which it never holds up, and emptied by another one.
type inbox struct {
	size int64
	// tell reports to the sender how many bytes were taken.
	tell    func(ctx context.Context, total int64) error
	changed chan struct{} // has an element when anything below changed
	told    int64         // the last total told; owned by the emptying side

	mu     sync.Mutex
	got    int64    // bytes that came
	taken  int64    // bytes of them that were taken
	whole  []byte   // a collected body, as far as it came
	pieces [][]byte // a streamed body's pieces that were not taken
	stream bool
	err    error // why no more will come
}

func newInbox(size int64, stream bool, tell func(context.Context, int64) error) *inbox {
	return &inbox{size: size, stream: stream, tell: tell, changed: make(chan struct{}, 1)}
}

// receive reads a piece of n bytes from r. Its error is the end of the
// connection.
func (in *inbox) receive(r *Reader, n int) error {
	p, err := in.room(n)
	if err != nil {
		return err
	}
	if err := r.ReadRaw(p); err != nil {
		return err
	}
	in.mu.Lock()
	in.got += int64(n)
	if in.stream {
		in.pieces = append(in.pieces, p)
	} else {
		in.taken = in.got
	}
	in.mu.Unlock()
	wake(in.changed)
	return nil
}

// room is where the next n bytes go.
func (in *inbox) room(n int) ([]byte, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case n == 0 || in.got+int64(n) > in.size:
		return nil, &FrameError{Reason: fmt.Sprintf("a piece of %d bytes of a body that has %d of %d bytes", n, in.got, in.size)}
	case in.stream && in.got+int64(n) > in.taken+BodyWindow:
		return nil, &FrameError{Reason: "a body is sent faster than it is taken"}
	case in.stream:
		return make([]byte, n), nil
	}
	end := len(in.whole) + n
	if end > cap(in.whole) {
		// Sizes are believed only as far as bytes have come for them.
		bigger := make([]byte, len(in.whole), min(in.size, int64(max(end, 2*cap(in.whole), BodyWindow))))
		copy(bigger, in.whole)
		in.whole = bigger
	}
	p := in.whole[len(in.whole):end]
	in.whole = in.whole[:end]
	return p, nil
}

// complete reports whether all bytes came.
func (in *inbox) complete() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.got == in.size
}

// abort notes that no more will come.
func (in *inbox) abort(err error) {
	in.mu.Lock()
	if in.err == nil && in.got < in.size {
		in.err = err
	}
	in.mu.Unlock()
	wake(in.changed)
}

// collect waits for the whole body.
func (in *inbox) collect(ctx context.Context) ([]byte, error) {
	for {
		in.mu.Lock()
		got, whole, err := in.got, in.whole, in.err
		in.mu.Unlock()
		switch {
		case got == in.size:
			return whole, nil
		case err != nil:
			return nil, err
		}
		if err := in.tellTaken(ctx, got); err != nil {
			return nil, err
		}
		if err := in.wait(ctx); err != nil {
			return nil, err
		}
	}
}

// next waits for a piece and takes it; io.EOF comes after the last.
func (in *inbox) next(ctx context.Context) ([]byte, error) {
	for {
		in.mu.Lock()
		var p []byte
		if len(in.pieces) > 0 {
			p, in.pieces[0] = in.pieces[0], nil
			in.pieces = in.pieces[1:]
			in.taken += int64(len(p))
		}
		taken, err := in.taken, in.err
		in.mu.Unlock()
		switch {
		case p != nil:
			return p, in.tellTaken(ctx, taken)
		case taken == in.size:
			return nil, io.EOF
		case err != nil:
			return nil, err
		}
		if err := in.wait(ctx); err != nil {
			return nil, err
		}
	}
}

// tellTaken tells the sender, when it could otherwise have to wait for it.
func (in *inbox) tellTaken(ctx context.Context, taken int64) error {
	if in.told+BodyWindow >= in.size || taken-in.told < takenStep {
		return nil
	}
	in.told = taken
	return in.tell(ctx, taken)
}

func (in *inbox) wait(ctx context.Context) error {
	select {
	case <-in.changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wake puts an element into a channel of one, unless there is one.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
