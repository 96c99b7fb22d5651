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

// collect takes the output that is not at its end yet until it is, in goroutines of
// their own, and then calls drain. A reader never slows the command down: what
// cannot be kept is counted or dropped.
func (p *proc) collect() {
	files, streams := p.remaining()
	if len(files) == 0 {
		return
	}
	p.m.mu.Lock()
	p.outputs = files
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

// remaining are the files of the output that nobody has seen the end of, and where
// each goes.
func (p *proc) remaining() (files []*os.File, streams []*streamTo) {
	if p.term != nil {
		return []*os.File{p.term}, p.streams
	}
	for i, fd := range p.pipes {
		if fd >= 0 {
			files, streams = append(files, os.NewFile(uintptr(fd), "output")), append(streams, p.streams[i])
		}
	}
	return files, streams
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
		p.keep(buf[:n], to)
		if err != nil {
			if !errors.Is(err, io.EOF) && p.term == nil && !errors.Is(err, os.ErrClosed) {
				p.m.o.Log.Warn("output could not be read", "process", p.id, "error", err)
			}
			return // a terminal ends with an error, which is its end of file
		}
	}
}

// keep puts a piece of output where its stream goes.
func (p *proc) keep(piece []byte, to *streamTo) {
	if to.capture != nil {
		_, _ = to.capture.Write(piece) // takes everything
	}
	if to.merged {
		_, _ = p.out.Write(piece) // takes everything
	}
}

// abandon closes our ends of the output, whoever holds the others.
func (p *proc) abandon() {
	for _, f := range p.outputs {
		_ = f.Close() // its copier may have closed it
	}
}
