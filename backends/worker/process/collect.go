package process

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
)

// streamTo says where one stream of a command goes.
type streamTo struct {
	capture *capture // of a foreground command, or nil
	merged  bool     // into the process's output too
}

// collect takes output from the files until all have ended, in goroutines of
// their own, and then calls drain. A reader never slows the command down: what
// cannot be kept is counted or dropped.
func (p *proc) collect(files []*os.File, streams []*streamTo) {
	p.outputs = files
	p.m.mu.Lock()
	p.m.open[p] = struct{}{}
	p.m.mu.Unlock()
	var open atomic.Int32
	open.Store(int32(len(files)))
	for i, f := range files {
		p.m.work.Go(func() {
			p.copyOut(f, streams[i])
			if open.Add(-1) == 0 {
				p.drain()
				p.tellDrained()
			}
		})
	}
}

// copyOut moves one stream until its end.
func (p *proc) copyOut(f *os.File, to *streamTo) {
	defer f.Close()
	if to.capture == nil && p.term == nil && splice(f, p.out) {
		return
	}
	buf := p.m.buffers.Get().(*[copySize]byte)
	defer p.m.buffers.Put(buf)
	for {
		n, err := f.Read(buf[:])
		if to.capture != nil {
			_, _ = to.capture.Write(buf[:n]) // takes everything
		}
		if to.merged {
			_, _ = p.out.Write(buf[:n]) // takes everything
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && p.term == nil && !errors.Is(err, os.ErrClosed) {
				p.m.o.Log.Warn("output could not be read", "process", p.id, "error", err)
			}
			return // a terminal ends with an error, which is its end of file
		}
	}
}

// abandon closes our ends of the output, whoever holds the others.
func (p *proc) abandon() {
	for _, f := range p.outputs {
		_ = f.Close() // its copier may have closed it
	}
}
