package process

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// splice moves a pipe into o until the pipe ends, inside the kernel. It
// reports false, having lost nothing, when the rest must be copied: the file
// system cannot do it, or the output can no longer be kept.
func splice(pipe *os.File, o *output) bool {
	c, err := pipe.SyscallConn()
	if err != nil {
		return false
	}
	var r rush
	for {
		var moved int
		var failed error
		err := c.Read(func(fd uintptr) (done bool) {
			moved, failed = o.spliceFrom(int(fd))
			return !errors.Is(failed, unix.EAGAIN)
		})
		if err != nil || failed != nil {
			return false
		}
		if moved == 0 {
			return true
		}
		r.took(moved, c)
	}
}

// A rush is a pipe that is written to fast. Its pieces, if they were small and
// taken one by one, would cost a change of threads each, on both sides; so the pipe
// is made wide and left to fill for a moment. Its writer is not held up: that is
// less than the moment in which anybody fills a wide pipe.
type rush struct {
	last    time.Time // when the last piece was taken, or its pause was over
	row     int       // pieces that followed on one another
	widened bool      // was tried
	wide    bool
}

// took notes a piece, widens the pipe when it is worth it, and pauses.
func (r *rush) took(moved int, pipe syscall.RawConn) {
	now := time.Now()
	if now.Sub(r.last) > rushInterval {
		r.row = 0
	}
	r.row++
	r.last = now
	rushes := r.row >= rushPieces
	if !r.widened && (rushes || moved >= copySize) {
		r.widened = true
		_ = pipe.Control(func(fd uintptr) { r.wide = widen(int(fd)) }) // fails when it is closed, which the next piece tells
	}
	if rushes && r.wide && moved < rushPiece {
		pause := unix.NsecToTimespec(int64(rushPause))
		_ = unix.Nanosleep(&pause, nil) // a signal ends it early; a timer of the runtime's may take a millisecond
		r.last = time.Now()
	}
}

// spliceFrom moves one piece; 0 is the end of the pipe, EAGAIN an empty one.
func (o *output) spliceFrom(pipe int) (moved int, err error) {
	o.turn.Lock()
	defer o.turn.Unlock()
	if _, _, closed := o.state(); closed {
		return 0, nil // somebody else took the end
	}
	if o.copied {
		return 0, unix.EINVAL
	}
	defer func() {
		// Whoever copies now has read what must come before anything that is spliced.
		o.copied = err != nil && !errors.Is(err, unix.EAGAIN)
	}()
	if o.file == nil {
		// A process that writes nothing gets no file.
		if bytes, ended := peek(pipe); !bytes {
			if ended {
				return 0, nil
			}
			return 0, unix.EAGAIN
		}
	}
	if err := o.toDisk(); err != nil {
		return 0, err
	}
	at, room := o.place()
	for {
		n, err := unix.Splice(pipe, nil, int(o.file.Fd()), &at, int(room), unix.SPLICE_F_NONBLOCK|unix.SPLICE_F_MOVE)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return 0, err
		}
		if n > 0 {
			o.advance(int(n), nil)
		}
		return int(n), nil
	}
}

// takeRest takes what is left of the output of a process that has ended, and
// reports true if that was its end. The goroutine that collects is on its way, but
// to wait for it costs a change of threads.
func (p *proc) takeRest() bool {
	if p.out == nil || p.captures != nil || p.term != nil {
		return false
	}
	c, err := p.outputs[0].SyscallConn()
	if err != nil {
		return false
	}
	ended := false
	_ = c.Control(func(fd uintptr) { // fails when it is closed
		for range restPieces {
			moved, err := p.out.spliceFrom(int(fd))
			if moved == 0 {
				ended = err == nil
				return
			}
		}
	})
	if ended {
		p.drain()
	}
	return ended
}
