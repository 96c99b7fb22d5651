package search

import (
	"bytes"
	"errors"
	"io"

	"github.com/caisson-dev/caisson/backends/worker/tools/wide"
)

const (
	// bufferSize is what a worker reads at a time: most source files whole.
	bufferSize = 256 << 10
	// maxLine bounds the buffer: a longer line is searched in pieces.
	maxLine = 8 << 20
	// sniff is how much of a file is looked at for a NUL byte, which text does
	// not hold, before it is searched.
	sniff = 8 << 10
)

// byteOrderMark begins some text files and belongs to no line.
var byteOrderMark = []byte("\ufeff")

// ErrBinary is the end of a search in a file that is no text.
var ErrBinary = errors.New("a binary file is not searched")

// scanner reads a file in windows of whole lines into a buffer that is used
// again for the next file.
type scanner struct {
	buffer []byte
	r      io.Reader
	end    int  // buffer[:end] is filled
	marked bool // the beginning was looked at for a byte order mark of UTF-16
	last   bool // there is no more
	window int  // buffer[:window] are whole lines
	dfa    *dfa // for the matcher that was used last
}

func (s *scanner) reset(r io.Reader) {
	if cap(s.buffer) == 0 || cap(s.buffer) > maxLine/8 {
		s.buffer = make([]byte, bufferSize)
	}
	s.r, s.end, s.last, s.marked, s.window = r, 0, false, false, 0
}

// next moves on to the next window, keeping the bytes from keep on, which are
// in front of it then. It returns false at the end of the file, and ErrBinary
// for a file that begins like a binary one.
func (s *scanner) next(keep int) (bool, error) {
	first := s.window == 0
	s.end = copy(s.buffer, s.buffer[keep:s.end])
	kept := s.window - keep
	s.window = kept
	for !s.last {
		if s.end == len(s.buffer) {
			if i := bytes.LastIndexByte(s.buffer[kept:s.end], '\n'); i >= 0 {
				s.window = kept + i + 1
				break
			}
			if len(s.buffer) >= maxLine {
				s.window = s.end
				break
			}
			s.buffer = append(s.buffer, make([]byte, len(s.buffer))...)
		}
		n, err := s.r.Read(s.buffer[s.end:])
		s.end += n
		if err != nil {
			if !errors.Is(err, io.EOF) {
				return false, err
			}
			s.last = true
		}
		if !s.marked && (s.end >= wide.MarkSize || s.last) {
			s.decode()
		}
	}
	if s.last {
		s.window = s.end
	}
	if first {
		if bytes.IndexByte(s.buffer[:min(s.end, sniff)], 0) >= 0 {
			return false, ErrBinary
		}
		if bytes.HasPrefix(s.buffer[:s.window], byteOrderMark) {
			s.end = copy(s.buffer, s.buffer[len(byteOrderMark):s.end])
			s.window -= len(byteOrderMark)
		}
	}
	return s.window > kept, nil
}

// decode goes on with the text of a file that begins with a byte order mark of
// UTF-16.
func (s *scanner) decode() {
	s.marked = true
	e := wide.Detect(s.buffer[:s.end])
	if e == wide.None {
		return
	}
	begun := bytes.NewReader(bytes.Clone(s.buffer[wide.MarkSize:s.end]))
	s.r, s.end, s.last = wide.NewReader(e, io.MultiReader(begun, s.r)), 0, false
}

// lines returns the borders of matching lines in text one by one, the newline
// left out. from is where a line begins.
func (m *Matcher) lines(s *scanner, text []byte, from int, yield func(start, end int) bool) {
	if m.filter == nil {
		m.scan(s, text, from, yield)
		return
	}
	f := m.filter.start(text)
	for from < len(text) {
		at := f.find(from)
		if at < 0 {
			return
		}
		start := bytes.LastIndexByte(text[from:at], '\n') + 1 + from
		end := lineEnd(text, at)
		if (m.exact || s.matches(m, text[start:end])) && !yield(start, end) {
			return
		}
		from = end + 1
	}
}

// scan looks at every line.
func (m *Matcher) scan(s *scanner, text []byte, from int, yield func(start, end int) bool) {
	for from < len(text) {
		var start, end int
		if d := s.automaton(m); d.usable() {
			at := d.find(text, from)
			if at < 0 {
				return
			}
			start, end = bytes.LastIndexByte(text[from:at], '\n')+1+from, lineEnd(text, at)
		} else {
			start, end = from, lineEnd(text, from)
			if !m.re.Match(text[start:end]) {
				from = end + 1
				continue
			}
		}
		if !yield(start, end) {
			return
		}
		from = end + 1
	}
}

// automaton is the scanner's own for the matcher.
func (s *scanner) automaton(m *Matcher) *dfa {
	if s.dfa == nil || s.dfa.prog != m.prog {
		s.dfa = newDFA(m.prog)
	}
	return s.dfa
}

// matches reports whether a line, given without its newline, matches.
func (s *scanner) matches(m *Matcher, line []byte) bool {
	d := s.automaton(m)
	if !d.usable() {
		return m.re.Match(line)
	}
	if len(line) == 0 {
		return d.step(d.start, '\n').found
	}
	return d.find(line, 0) >= 0
}

// lineEnd is where the line that holds text[at] ends.
func lineEnd(text []byte, at int) int {
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i
	}
	return len(text)
}

// count counts the matching lines of a file, up to limit. It fails with
// [ErrBinary] for a file that would be named and is no text.
func (m *Matcher) count(s *scanner, r io.Reader, limit int) (int, error) {
	s.reset(r)
	n := 0
	for {
		more, err := s.next(s.window)
		if err != nil || !more {
			return n, err
		}
		text := s.buffer[:s.window]
		binary := false
		m.lines(s, text, 0, func(int, int) bool {
			// Only a file that would be named is looked through for a late NUL.
			if binary = n == 0 && bytes.IndexByte(text, 0) >= 0; binary {
				return false
			}
			n++
			return n < limit
		})
		if binary {
			return 0, ErrBinary
		}
		if n >= limit {
			return n, nil
		}
	}
}
