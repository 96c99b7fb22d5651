package process

import (
	"os"
	"time"
)

// awaitRest waits for the rest of the output of a process that has ended, and reports
// whether its end came. Somebody whom it left behind may hold its pipes, so after grace
// it gives up. What the process itself wrote is in the pipes by now, and that is waited
// for, however late a busy machine comes to read it.
func (p *proc) awaitRest(grace time.Duration) (ended bool) {
	if isClosed(p.drained) { // a timer that nobody needs wakes a thread as others do
		return true
	}
	before := p.taken()
	for {
		expired, free := after(grace)
		select {
		case <-p.drained:
			free()
			return true
		case <-expired:
		}
		// When as much was taken as the pipes can hold, the rest is somebody else's.
		if !untaken(p.outputs) || p.taken()-before > int64(len(p.outputs))*maxPiece {
			return isClosed(p.drained)
		}
	}
}

// taken is how many bytes of output have been read.
func (p *proc) taken() (total int64) {
	if p.out != nil && p.captures == nil {
		total, _, _ = p.out.state()
	}
	for _, c := range p.captures {
		total += c.size()
	}
	return total
}

// untaken reports whether somebody has yet to read what is in one of the outputs, or to
// find its end.
func untaken(outputs []*os.File) bool {
	closed := 0
	for _, f := range outputs {
		c, err := f.SyscallConn()
		if err != nil {
			return false
		}
		var bytes, ended bool
		if err := c.Control(func(fd uintptr) { bytes, ended = peek(int(fd)) }); err != nil {
			closed++ // its end was found
		}
		if bytes || ended {
			return true
		}
	}
	return closed > 0 && closed == len(outputs) // who found the last end is about to tell
}
