package process

import (
	"errors"
	"syscall"

	"github.com/caisson-dev/caisson/backends/tool"
)

// errOvertaken ends a write that an interrupt does not wait for.
var errOvertaken = errors.New("an interrupt overtook it")

// keyOf is the character of a key that is named as terminals show it, such as ^C.
func keyOf(name string) (key byte, ok bool) {
	if len(name) != 2 || name[0] != '^' || name[1] < '@' || name[1] > '_' {
		return 0, false
	}
	return name[1] - '@', true
}

// press does at once what p's terminal does for a key that makes a signal, as it is set up
// now: also where a process that does not read holds up what was written before, which is
// given up. A key that makes none does nothing here: its place is behind what was written.
func (p *proc) press(name string, key byte) error {
	if err := p.takesInput(); err != nil {
		return err
	}
	if !p.stdin.tty {
		return tool.Errorf(tool.InvalidParams, "process %s has no terminal, and no keys", p.id).
			WithPath("signal").WithHint("send the signal: SIGINT")
	}
	s := signalOfKey(p.term, key)
	if s == 0 {
		return tool.Errorf(tool.Unsupported, "the terminal of process %s makes no signal of %s now: it is read as what was typed", p.id, name).
			WithPath("signal").WithHint("write the key, or send the signal that is meant: SIGINT")
	}
	return p.interrupt(s)
}

// interrupt signals p and, where the signal is one that its terminal drops for what was
// typed, drops what is still being written, too: it would come behind the signal.
func (p *proc) interrupt(s syscall.Signal) error {
	if p.stdin != nil && p.stdin.tty && dropsTyped(p.term, s) {
		defer p.stdin.overtake()()
	}
	return p.signal(s)
}
