//go:build unix

package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/rpc/protocol"
)

// script is a process whose output and end are known beforehand.
type script struct {
	command string
	tty     *protocol.TTY
	// output is all that it prints, unless it echoes what is written to it.
	output string
	echoes bool
	// code is how it ends by itself; lasts says that it does not.
	code  int
	lasts bool
}

// process is what is known of one process that was acknowledged.
type process struct {
	script
	id, operation string
	began         time.Time // before it was asked for

	pieces  []piece // what was written to one that echoes
	closed  effect  // whether its input was closed; nothing, unknown or done
	stopped effect  // whether it was stopped, or a signal was sent
	final   *protocol.Process
}

// piece is one write to a process's input.
type piece struct {
	text string
	e    effect
}

// counting is what a script prints that counts up to n.
func counting(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strconv.Itoa(i) + "\n")
	}
	return b.String()
}

// status checks a record of the process. Lost is honest only when something
// happened to the worker since the process was asked for.
func (p *process) status(r protocol.Process, disturbed time.Time) error {
	if p.final != nil && (r.Status != p.final.Status || r.Signal != p.final.Signal || r.TotalBytes < p.final.TotalBytes) {
		return fmt.Errorf("it had ended as %s, and now it is %s", told(*p.final), told(r))
	}
	switch r.Status {
	case protocol.ProcessStarting, protocol.ProcessRunning, protocol.ProcessStopping:
		return nil
	case protocol.ProcessLost:
		if disturbed.Before(p.began) {
			return fmt.Errorf("it is lost and nobody did anything to its worker: %s", r.Reason)
		}
	case protocol.ProcessExited:
		if err := p.ending(r); err != nil {
			return err
		}
	default:
		return fmt.Errorf("its status is %s", told(r))
	}
	p.final = &r
	return nil
}

// ending checks how it exited.
func (p *process) ending(r protocol.Process) error {
	if p.stopped != nothing && (r.Signal == "SIGTERM" || r.Signal == "SIGHUP") {
		return nil
	}
	natural := !p.lasts && (!p.echoes || p.closed != nothing)
	if natural && r.ExitCode != nil && *r.ExitCode == p.code {
		return nil
	}
	return fmt.Errorf("it ended as %s; it was to end with %d by itself: %t, was stopped: %t", told(r), p.code, natural, p.stopped != nothing)
}

// wrote checks output from an offset on. Complete says that there is no more.
func (p *process) wrote(offset int64, text string, complete bool) error {
	if !p.echoes {
		return within(p.output, offset, text, complete && p.stopped == nothing && !p.lost())
	}
	if offset != 0 {
		return nil // what comes before decides what may be here
	}
	return p.echoed(text, complete && !p.lost() && p.stopped == nothing)
}

func (p *process) lost() bool { return p.final != nil && p.final.Status == protocol.ProcessLost }

// within checks that text stands in all at the offset, and ends it if it is
// complete.
func within(all string, offset int64, text string, complete bool) error {
	end := offset + int64(len(text))
	switch {
	case end > int64(len(all)):
		return fmt.Errorf("it printed at least %d bytes, and can print %d only", end, len(all))
	case all[offset:end] != text:
		return fmt.Errorf("at %d it printed %s, and should %s", offset, head(text), head(all[offset:end]))
	case complete && end != int64(len(all)):
		return fmt.Errorf("its output ends at %d of %d bytes", end, len(all))
	}
	return nil
}

// echoed checks what an echoing process printed: every acknowledged piece once,
// in order, and of the unknown ones each at most once.
func (p *process) echoed(text string, complete bool) error {
	rest := text
	for _, w := range p.pieces {
		switch {
		case strings.HasPrefix(rest, w.text):
			rest = rest[len(w.text):]
		case strings.HasPrefix(w.text, rest):
			if complete && (w.e == done || rest != "") {
				return fmt.Errorf("of %q came back %q only", w.text, rest)
			}
			if rest != "" {
				return nil // more is to come
			}
		case w.e == done:
			return fmt.Errorf("after %d bytes %s came back, and should %q", len(text)-len(rest), head(rest), w.text)
		}
	}
	if rest != "" {
		return fmt.Errorf("nobody wrote what came back: %s", head(rest))
	}
	return nil
}

// told is a record in few words.
func told(r protocol.Process) string {
	s := string(r.Status)
	if r.ExitCode != nil {
		s += fmt.Sprintf(" with %d", *r.ExitCode)
	}
	if r.Signal != "" {
		s += " by " + r.Signal
	}
	if r.Reason != "" {
		s += " (" + r.Reason + ")"
	}
	return s
}
