package process

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
)

// output is all that a process has written: counted from its first byte, of
// which the last [KeepOutput] are kept, in a file that is a ring. Below
// ringSize bytes the file is the plain output.
//
// Writers take turns (begin, end); readers never hold one up.
type output struct {
	base   string // of the names of its files, made when the first byte goes to disk
	memory int    // how much may wait in memory instead

	turn   sync.Mutex // held by who writes
	copied bool       // it cannot be spliced; guarded by turn

	mu     sync.Mutex
	held   []byte // what is in memory: everything, while there is no file
	file   ringFile
	end    *os.File // where total is kept once the file does not tell
	total  int64
	closed bool
	err    error         // why the output from total on is not kept
	wake   chan struct{} // closed on progress; nil while nobody waits
}

// ringFile is what output needs of an *[os.File].
type ringFile interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Fd() uintptr
}

// openOutput finds what an earlier worker left. It is complete.
func openOutput(base string) (*output, error) {
	o := &output{base: base, closed: true}
	info, err := os.Stat(base + outputSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return o, nil
	}
	if err != nil {
		return nil, err
	}
	o.total = info.Size()
	b, err := readPlain(base + endSuffix)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case len(b) == 8:
		// The number is only ever behind the bytes, by one piece.
		o.total = max(o.total, int64(binary.LittleEndian.Uint64(b)))
	}
	return o, nil
}

// state is the count of all bytes, the offset of the oldest kept one, and
// whether all are in.
func (o *output) state() (total, base int64, closed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total, o.baseLocked(), o.closed
}

func (o *output) baseLocked() int64 { return max(0, o.total-KeepOutput) }

// Write appends p. It always takes all of p: what cannot be kept is dropped,
// so that a full disk never stops a process, and failure tells why.
func (o *output) Write(p []byte) (int, error) {
	o.turn.Lock()
	defer o.turn.Unlock()
	n := len(p)
	if o.keepInMemory(p) {
		return n, nil
	}
	if err := o.toDisk(); err != nil {
		return n, nil
	}
	for len(p) > 0 {
		at, room := o.place()
		k, err := o.file.WriteAt(p[:min(int64(len(p)), room)], at)
		o.advance(k, err)
		if err != nil {
			return n, nil
		}
		p = p[k:]
	}
	return n, nil
}

func (o *output) keepInMemory(p []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file != nil || o.err != nil || len(o.held)+len(p) > o.memory {
		return false
	}
	o.held = append(o.held, p...)
	o.total += int64(len(p))
	o.progressLocked()
	return true
}

// toDisk moves what is in memory to the file, which is there afterwards. The
// caller has the turn.
func (o *output) toDisk() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil || o.file != nil {
		return o.err
	}
	f, err := os.OpenFile(o.base+outputSuffix, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil && len(o.held) > 0 {
		if _, err = f.WriteAt(o.held, 0); err != nil {
			err = errors.Join(err, f.Close())
		}
	}
	if err != nil {
		o.err = err
		return err
	}
	o.file, o.held, o.memory = f, nil, 0
	return nil
}

// flush is toDisk for who does not write.
func (o *output) flush() error {
	o.turn.Lock()
	defer o.turn.Unlock()
	return o.toDisk()
}

// place is where in the file the next byte goes, and how many fit there before
// the ring goes round. The caller has the turn, and a file.
func (o *output) place() (at, room int64) {
	at = o.total % ringSize
	return at, min(maxPiece, ringSize-at)
}

// advance counts n bytes that are in the file now, or notes why there are no
// more. The caller has the turn.
func (o *output) advance(n int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.total += int64(n)
	if o.total > ringSize && err == nil {
		err = o.storeEndLocked()
	}
	if err != nil {
		o.err = err
	}
	o.progressLocked()
}

// storeEndLocked keeps total where a later worker finds it: the size of the
// file tells it no more.
func (o *output) storeEndLocked() error {
	if o.end == nil {
		f, err := os.OpenFile(o.base+endSuffix, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		o.end = f
	}
	_, err := o.end.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(o.total)), 0)
	return err
}

// close says that the last byte is in.
func (o *output) close() error {
	o.turn.Lock()
	defer o.turn.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.progressLocked()
	var err error
	if o.file != nil {
		err = o.file.Close()
	}
	if o.end != nil {
		err = errors.Join(err, o.end.Close())
	}
	return err
}

// remove removes the files of an output that is closed.
func (o *output) remove() error {
	return errors.Join(removeIfThere(o.base+outputSuffix), removeIfThere(o.base+endSuffix))
}

// failure is why output was dropped, and from which offset on.
func (o *output) failure() (int64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total, o.err
}

func (o *output) progressLocked() {
	if o.wake != nil {
		close(o.wake)
		o.wake = nil
	}
}

// changed is closed when there is more than total, or no more will come.
func (o *output) changed(total int64) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.total > total || o.closed {
		done := make(chan struct{})
		close(done)
		return done
	}
	if o.wake == nil {
		o.wake = make(chan struct{})
	}
	return o.wake
}

// readAt fills p from offset on, or from the oldest kept byte when that is
// later, and returns where it began.
func (o *output) readAt(p []byte, offset int64) (start int64, n int, err error) {
	for {
		o.mu.Lock()
		start = max(offset, o.baseLocked())
		n = int(min(int64(len(p)), max(0, o.total-start)))
		file := o.file
		if file == nil && o.held != nil {
			n = copy(p, o.held[min(start, int64(len(o.held))):])
			o.mu.Unlock()
			return start, n, nil
		}
		o.mu.Unlock()
		if n == 0 {
			return start, 0, nil
		}
		if err := o.readRing(file, p[:n], start); err != nil {
			return start, 0, err
		}
		// Was it overwritten meanwhile? Up to one piece may be on its way.
		o.mu.Lock()
		intact := start >= o.total+maxPiece-ringSize
		o.mu.Unlock()
		if intact {
			return start, n, nil
		}
	}
}

// readRing reads all of p from the ring. The file may be closed.
func (o *output) readRing(file ringFile, p []byte, offset int64) error {
	if file != nil {
		err := readWrapped(file, p, offset)
		if !errors.Is(err, fs.ErrClosed) {
			return err
		}
	}
	f, err := os.Open(o.base + outputSuffix)
	if err != nil {
		return err
	}
	return errors.Join(readWrapped(f, p, offset), f.Close())
}

func readWrapped(r io.ReaderAt, p []byte, offset int64) error {
	for len(p) > 0 {
		at := offset % ringSize
		n, err := r.ReadAt(p[:min(int64(len(p)), ringSize-at)], at)
		if n == 0 && err != nil {
			return err
		}
		p, offset = p[n:], offset+int64(n)
	}
	return nil
}
