package tools

import (
	"bytes"
	"hash"

	"github.com/caisson-dev/caisson/backends/worker/tools/wide"
)

var newline = []byte{'\n'}

// lines picks a range of lines out of a stream and counts the others.
type lines struct {
	from  int64     // the first line that is wanted
	want  int64     // how many
	room  int       // bytes that the content may still have
	count bool      // go on to the end for the number of lines
	sum   hash.Hash // of the bytes that the stream is made of; nil: not wanted
	wide  bool      // these are UTF-16
	stays bool      // the pieces stay as they are, and need not be copied

	line    int64 // the number of the line at offset
	offset  int64 // of the next piece, in the file
	start   int64 // of the content, in the file
	content []byte
	full    bool // the range is complete or there is no more room
	cut     bool // there is more behind the content
	any     bool // a byte went by
	last    byte // the last that did
	stopped bool // before the end
}

// take is given the stream piece by piece and returns whether it wants more.
func (p *lines) take(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	p.any, p.last = true, b[len(b)-1]
	end := p.offset + p.size(b)
	for len(b) > 0 && p.line < p.from {
		// Whole pieces before the range are only counted.
		if n := int64(bytes.Count(b, newline)); p.line+n < p.from {
			p.line += n
			b = nil
			break
		}
		b = b[bytes.IndexByte(b, '\n')+1:]
		p.line++
	}
	if p.line >= p.from && p.content == nil && !p.full && len(b) > 0 {
		p.start = end - p.size(b)
	}
	if wanted := p.wanted(b); wanted > 0 {
		if p.content == nil && p.stays {
			p.content = b[:wanted:wanted]
		} else {
			p.content = append(p.content, b[:wanted]...)
		}
		b = b[wanted:]
	}
	p.offset = end
	if len(b) > 0 {
		p.cut = true
		p.line += int64(bytes.Count(b, newline))
		if !p.count {
			p.stopped = true
			return false
		}
	}
	return true
}

// wanted is how many bytes at the beginning of b belong to the content, which
// is told of them.
func (p *lines) wanted(b []byte) (wanted int) {
	for wanted < len(b) && !p.full {
		rest := b[wanted:]
		n := bytes.IndexByte(rest, '\n') + 1
		whole := n > 0
		if !whole {
			n = len(rest)
		}
		if n > p.room {
			n = character(rest, p.room)
			whole, p.full = false, true
		}
		wanted += n
		p.room -= n
		if whole {
			p.line++
			p.full = p.line-p.from >= p.want || p.room == 0
		}
	}
	return wanted
}

// size is how many bytes of the file a part of the stream is.
func (p *lines) size(b []byte) int64 {
	if p.wide {
		return wide.Size(b)
	}
	return int64(len(b))
}

// total is the number of lines of the stream, if it was seen to its end.
func (p *lines) total() (int64, bool) {
	if p.stopped {
		return 0, false
	}
	if p.any && p.last != '\n' {
		return p.line, true
	}
	return p.line - 1, true
}
