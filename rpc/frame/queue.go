package frame

import (
	"slices"
	"strconv"
	"sync"
	"time"
)

// headerRoom is the space that a buffer leaves for its header.
const headerRoom = len("Content-Length: \r\n\r\n") + len("1073741824")

// closing ends a long item.
var closing = []byte{'}'}

// keepItems is the longest list of items that is kept for reuse, in items.
const keepItems = 1024

// buffer is one encoded message behind room for its header.
type buffer struct {
	bytes []byte
}

// buffers recycles the buffers of short messages, largeBuffers those of long ones,
// which would be lost to short ones.
var (
	buffers      = sync.Pool{New: func() any { return &buffer{bytes: make([]byte, headerRoom, 1024)} }}
	largeBuffers = sync.Pool{New: func() any { return &buffer{bytes: make([]byte, headerRoom, keepBuffer)} }}
)

// newBuffer is a buffer for a message of about size bytes.
func newBuffer(size int) *buffer {
	pool := &buffers
	if size > keepBuffer {
		pool = &largeBuffers
	}
	b := pool.Get().(*buffer)
	b.bytes = slices.Grow(b.bytes[:headerRoom], size)
	return b
}

// item is one message on its way out.
type item struct {
	*buffer
	start        int // where the header begins
	notification bool
	// long is a result that is not worth a copy: it is written behind the
	// buffer, and a brace behind it ends the message.
	long []byte
	done func()
}

// seal writes the header right before the body.
func (it *item) seal() {
	var digits [20]byte
	body := len(it.bytes) - headerRoom
	if it.long != nil {
		body += len(it.long) + len(closing)
	}
	length := strconv.AppendInt(digits[:0], int64(body), 10)
	const before, after = "Content-Length: ", "\r\n\r\n"
	it.start = headerRoom - len(before) - len(length) - len(after)
	header := it.bytes[it.start:it.start]
	header = append(header, before...)
	header = append(header, length...)
	_ = append(header, after...)
}

// data is what stands in the buffer: all of it, but for a long item.
func (it *item) data() []byte { return it.bytes[it.start:] }

func (it *item) len() int {
	n := len(it.bytes) - it.start
	if it.long != nil {
		n += len(it.long) + len(closing)
	}
	return n
}

// finish gives the buffer back and tells whoever waits.
func (it *item) finish() {
	switch {
	case cap(it.bytes) <= keepBuffer:
		buffers.Put(it.buffer)
	case cap(it.bytes) <= poolBuffer:
		largeBuffers.Put(it.buffer)
	}
	it.buffer, it.long = nil, nil
	if it.done != nil {
		it.done()
	}
}

// queue holds the messages that wait to be written, in order. It is bounded by
// refusing, not by waiting: whoever pushes must never be held up by the peer.
type queue struct {
	mu    sync.Mutex
	ready sync.Cond // something is queued and nobody writes, or the queue is closed
	// writing says that somebody has taken items and writes them.
	writing bool

	items []item
	spare []item // the slice that items swaps with, to save allocations
	// messages and bytes count what is queued or being written, notified the
	// bytes of notifications alone.
	messages int
	bytes    int64
	notified int64
	// idleCh is closed when messages is zero again; nil while nobody waits.
	idleCh chan struct{}
	// lessCh is closed when something has been written, or never will be; nil
	// while nobody waits. wroteAt is when that was last, or when the first of what
	// waits came.
	lessCh  chan struct{}
	wroteAt time.Time
	// closed is why nothing more is taken; nil while open.
	closed error
}

func (q *queue) init() { q.ready.L = &q.mu }

// push queues the item, or says why not: the reason of close, or [ErrSlowPeer]
// when the peer has let too much pile up. Wake says whether the one who waits in
// take is to write it; else whoever pushed calls grab.
func (q *queue) push(it item, wake bool) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := int64(it.len())
	switch {
	case q.closed != nil:
		return q.closed
	case q.messages >= MaxQueued, it.notification && q.notified+n > MaxNotified && q.messages > 0:
		return ErrSlowPeer
	}
	if q.messages == 0 {
		q.wroteAt = time.Now()
	}
	q.items = append(q.items, it)
	q.messages++
	q.bytes += n
	if it.notification {
		q.notified += n
	}
	if wake && !q.writing {
		q.ready.Signal()
	}
	return nil
}

// take waits for items and returns all of them; false when the queue is closed.
// They are written and given to wrote, then leave is called.
func (q *queue) take() ([]item, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for (len(q.items) == 0 || q.writing) && q.closed == nil {
		q.ready.Wait()
	}
	if q.closed != nil {
		return nil, false
	}
	return q.all(), true
}

// grab is take for whoever does not wait: false also when there is nothing to
// write, or somebody writes already.
func (q *queue) grab() ([]item, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 || q.writing || q.closed != nil {
		return nil, false
	}
	return q.all(), true
}

// leave ends what take and grab began.
func (q *queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.writing = false
	if len(q.items) > 0 {
		q.ready.Signal()
	}
}

func (q *queue) all() []item {
	q.writing = true
	taken := q.items
	q.items, q.spare = q.spare[:0], taken
	if cap(q.spare) > keepItems {
		q.spare = nil
	}
	return taken
}

// wrote accounts for items that are done with, written or not.
func (q *queue) wrote(items []item) {
	q.mu.Lock()
	for i := range items {
		n := int64(items[i].len())
		q.messages--
		q.bytes -= n
		if items[i].notification {
			q.notified -= n
		}
	}
	if q.messages == 0 && q.idleCh != nil {
		close(q.idleCh)
		q.idleCh = nil
	}
	q.wroteAt = time.Now()
	if q.lessCh != nil {
		close(q.lessCh)
		q.lessCh = nil
	}
	q.mu.Unlock()
	for i := range items {
		items[i].finish()
		items[i] = item{}
	}
}

// close refuses everything from now on and drops what is queued. It reports
// whether it was the first to.
func (q *queue) close(reason error) bool {
	q.mu.Lock()
	if q.closed != nil {
		q.mu.Unlock()
		return false
	}
	q.closed = reason
	dropped := q.items
	q.items = nil
	q.ready.Broadcast()
	q.mu.Unlock()
	q.wrote(dropped)
	return true
}

func (q *queue) err() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

func (q *queue) backlog() (messages int, bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.messages, q.bytes
}

// behind reports whether more than so many messages, or bytes of notifications,
// wait, and since when nothing has been written; less is closed when something has.
func (q *queue) behind(messages int, bytes int64) (less <-chan struct{}, since time.Time, behind bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed != nil || q.messages <= messages && q.notified <= bytes {
		return nil, time.Time{}, false
	}
	if q.lessCh == nil {
		q.lessCh = make(chan struct{})
	}
	return q.lessCh, q.wroteAt, true
}

// idle is a channel that is closed when nothing is queued or being written.
func (q *queue) idle() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.messages == 0 {
		done := make(chan struct{})
		close(done)
		return done
	}
	if q.idleCh == nil {
		q.idleCh = make(chan struct{})
	}
	return q.idleCh
}
