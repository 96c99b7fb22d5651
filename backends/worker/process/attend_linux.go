package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// attend waits on the calling thread for the end of a process that was just started,
// and takes its output meanwhile. Most commands end so soon that this is all they
// need: one thread wakes up, once, where otherwise the poller would wake a goroutine
// for the end and one for each output. It reports true when the process can be
// reaped; else, after attention, everything goes on as it was left. Output whose end
// has not come is left to others.
func (p *proc) attend(pidfd int) (ended bool) {
	if pidfd < 0 || p.term != nil {
		return false
	}
	fds := make([]unix.PollFd, 1+len(p.pipes))
	fds[0] = unix.PollFd{Fd: int32(pidfd), Events: unix.POLLIN}
	for i, fd := range p.pipes {
		fds[1+i] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	}
	for until := time.Now().Add(attention); !ended; {
		left := time.Until(until)
		if left <= 0 {
			return false
		}
		if _, err := unix.Poll(fds, int((left+time.Millisecond-1)/time.Millisecond)); err != nil && err != unix.EINTR {
			return false
		}
		if fds[0].Revents != 0 {
			if ended, _ = hasEnded(pidfd); !ended {
				return false // an older kernel, which says anything of such descriptors
			}
		}
		for i := range p.pipes {
			switch f := &fds[1+i]; {
			case f.Revents&unix.POLLIN != 0:
				if more, _ := p.take(i); !more {
					f.Fd = -1 // whoever waits for it afterwards takes the rest
				}
			case f.Revents != 0:
				f.Fd = -1 // it is at its end, which takeEnds finds again
			}
		}
	}
	_ = unix.Close(pidfd) // nothing depends on it any more
	p.takeEnds()
	return true
}

// takeEnds takes what is left of the outputs of a process that has ended. One that
// somebody else holds open is collected.
func (p *proc) takeEnds() {
	drained := true
	for i, fd := range p.pipes {
		if !p.takeRestOf(i) {
			drained = false
			continue
		}
		_ = unix.Close(fd) // nothing was written through it
		p.pipes[i] = -1
	}
	if drained {
		p.drain()
		return
	}
	p.collect()
}

// takeRestOf takes what a pipe can hold, and reports whether that was the end.
func (p *proc) takeRestOf(i int) (ended bool) {
	for range restPieces {
		more, ended := p.take(i)
		if !more {
			return ended
		}
	}
	return false
}

// take takes one piece of an output. More says that another call may find more at once;
// where it is false, ended says whether the pipe is at its end or only empty for now.
func (p *proc) take(i int) (more, ended bool) {
	fd, to := p.pipes[i], p.streams[i]
	if to.capture == nil {
		moved, err := p.out.spliceFrom(fd)
		return moved > 0, moved == 0 && err == nil
	}
	buf := p.m.buffers.Get().(*[copySize]byte)
	defer p.m.buffers.Put(buf)
	n, err := unix.Read(fd, buf[:])
	if n > 0 {
		p.keep(buf[:n], to)
	}
	return n > 0 || err == unix.EINTR, n == 0 && err == nil
}
