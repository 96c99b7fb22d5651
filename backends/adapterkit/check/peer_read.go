package check

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/caisson-dev/caisson/backends/program"
	"github.com/caisson-dev/caisson/backends/wire"
)

// read takes what the adapter sends, until its output ends or is none of an
// adapter's.
func (p *peer) read() {
	defer close(p.ended)
	in := bufio.NewReaderSize(listener{p}, 64<<10)
	junk, first := 0, ""
	for {
		line, err := readLine(in)
		var f frame
		switch {
		case p.closing.Load() || len(line) == 0: // the end is the program's to read
		case errors.Is(err, errLong):
			p.spoil("a line of its output is longer than a frame may be: more than 16 MiB")
			return
		case json.Unmarshal(line, &f) == nil && line[0] == '{' && f.ID != nil:
			if !p.heard.Swap(true) {
				junk, first = 0, "" // a banner
			}
			p.record("←", line)
			if p.take(f, in); p.spoilt() != "" {
				return
			}
		default:
			if junk += len(line); first == "" {
				first = p.redact(string(line[:min(len(line), 4*shownBytes)]))
				p.record("←", line)
				if p.heard.Load() {
					p.run.note(clauseFramesOnly, fmt.Sprintf("its output must be frames and nothing else, but it said %.120q: %s", first, noFrame(line)), p)
				}
			}
			p.wonder("%.120q, which is no frame: %s", p.redact(string(line[:min(len(line), shownBytes)])), noFrame(line))
			if junk > maxJunk {
				p.spoil(fmt.Sprintf("more than %d KiB of its output are no frames, such as %.120q", maxJunk>>10, first))
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// noFrame says what a line lacks to be a frame.
func noFrame(line []byte) string {
	var members map[string]any
	var f frame
	switch err := json.Unmarshal(line, &members); {
	case err != nil && json.Valid(line):
		return "a frame is an object"
	case err != nil:
		return "it is not JSON"
	case members["id"] == nil:
		return "it has no id"
	case kindOf(members["id"]) != "string":
		return fmt.Sprintf("ids are strings, and its is a %s", kindOf(members["id"]))
	}
	return fmt.Sprint(json.Unmarshal(line, &f))
}

// listener is the adapter's output, of which it keeps the line that has no end yet.
type listener struct{ p *peer }

// Read reads.
func (l listener) Read(b []byte) (int, error) {
	n, err := l.p.program.Read(b)
	said := b[:n]
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	if end := bytes.LastIndexByte(said, '\n'); end >= 0 {
		l.p.unended, said = l.p.unended[:0], said[end+1:]
	}
	l.p.unended = append(l.p.unended, said[:min(len(said), max(0, shownBytes-len(l.p.unended)))]...)
	return n, err
}

// wonder keeps what came and is nothing that was waited for.
func (p *peer) wonder(format string, a ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.strange = fmt.Sprintf(format, a...)
}

// instead says what has come in place of the reply to w, if anything has.
func (p *peer) instead(w *waiting) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case len(p.unended) > 0:
		return fmt.Sprintf("; its output ends in a line without a newline: %.120q", p.redact(string(p.unended)))
	case p.strange != "":
		return fmt.Sprintf(" with the id %q; what came last and was none: %s", w.id, p.strange)
	}
	return ""
}

// spoil says that the adapter is none, and why. It is not listened to any more.
func (p *peer) spoil(why string) {
	p.wedged.Store(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spoiled = why
}

func (p *peer) spoilt() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spoiled
}

// over says why nothing more comes from an adapter whose output has ended.
func (p *peer) over() string {
	if why := p.spoilt(); why != "" {
		return why
	}
	if !p.program.ExitedWithin(exiting) {
		return "it closed its output, and runs on"
	}
	var exit *program.ExitError
	if errors.As(p.program.Err(), &exit) {
		return "it has exited: " + exit.State
	}
	return "it has exited with 0"
}

// errLong is a line that is longer than a frame may be.
var errLong = errors.New("too long for a frame")

// readLine reads a line of at most what a frame may have.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > wire.MaxFrame {
			return line, errLong
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// take sorts a frame.
func (p *peer) take(f frame, in io.Reader) {
	var raw []byte
	if f.Raw > 0 && f.Raw <= wire.MaxRaw {
		raw = make([]byte, f.Raw)
		if _, err := io.ReadFull(in, raw); err != nil {
			return
		}
		// What has no newline in it was a piece.
		p.mu.Lock()
		p.unended = p.unended[:0]
		p.mu.Unlock()
	}
	switch f.Method {
	case "":
		p.answer(f)
	case "process":
		p.happened(f)
	case "tool":
		p.mu.Lock()
		if len(p.callbacks) < maxEvents {
			p.callbacks = append(p.callbacks, f)
		}
		p.mu.Unlock()
	case "body":
		p.piece(*f.ID, raw)
	case "body_taken": // what is sent here is never that long
	case "initialize":
		p.spoil("it sends back what it is sent, instead of answering it")
	}
}
