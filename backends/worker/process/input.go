package process

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// input is the stdin of a background process: our end of a pipe, or its
// terminal.
type input struct {
	turn chan struct{} // one token: whoever has it writes
	tty  bool

	mu     sync.Mutex
	w      *os.File
	polled bool                                  // w can be waited for
	under  map[*context.CancelCauseFunc]struct{} // the writes that are under way or wait

	overtaking sync.Mutex // held from an overtake to its end
	cut        bool       // an overtake is under way: a write that comes is given up; guarded by mu
}

func newInput(w *os.File, tty bool) *input {
	in := &input{
		turn: make(chan struct{}, 1), w: w, tty: tty, polled: tty,
		under: map[*context.CancelCauseFunc]struct{}{},
	}
	in.turn <- struct{}{}
	return in
}

// file is what can be written to until a deadline. A pipe becomes that when it is
// first asked for: most are never written to, and it costs the poller a wake-up.
func (in *input) file() (*os.File, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.polled {
		return in.w, nil
	}
	f, err := polled(in.w)
	if err != nil {
		return nil, err
	}
	_ = in.w.Close() // f is the same pipe
	in.w, in.polled = f, true
	return f, nil
}

// open reports whether the input has not ended. It leaves the deadline alone, which
// belongs to whoever writes.
func (in *input) open() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	c, err := in.w.SyscallConn()
	return err == nil && c.Control(func(uintptr) {}) == nil
}

// close ends the input; os.ErrClosed says that it had ended.
func (in *input) close() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.w.Close()
}

// endOfFile is what a terminal in its usual mode takes for the end of a file.
const endOfFile = 0x04

// write writes all of data, or what goes until ctx ends.
func (in *input) write(ctx context.Context, data []byte) (int, error) {
	ctx, end := in.begin(ctx)
	defer end()
	select {
	case <-in.turn:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	defer func() { in.turn <- struct{}{} }()
	if ctx.Err() != nil {
		return 0, context.Cause(ctx) // also where its turn came at the same time
	}
	w, err := in.file()
	if err != nil {
		return 0, err
	}
	if err := w.SetWriteDeadline(time.Time{}); err != nil {
		return 0, err
	}
	givenUp := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(givenUp)
		_ = w.SetWriteDeadline(time.Unix(1, 0)) // fails only when it is closed, which ends the write too
	})
	n, err := w.Write(data)
	if !stop() {
		<-givenUp
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = context.Cause(ctx)
	}
	return n, err
}

// begin is the context of a write that can be overtaken until end is called.
func (in *input) begin(ctx context.Context) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.under[&cancel] = struct{}{}
	if in.cut {
		cancel(errOvertaken)
	}
	return ctx, func() {
		in.mu.Lock()
		delete(in.under, &cancel)
		in.mu.Unlock()
		cancel(nil)
	}
}

// overtake gives up all writes that are not done, and lets nobody write until over is called.
func (in *input) overtake() (over func()) {
	in.overtaking.Lock()
	in.mu.Lock()
	in.cut = true
	for cancel := range in.under {
		(*cancel)(errOvertaken)
	}
	in.mu.Unlock()
	<-in.turn // whoever has it is giving up
	return func() {
		in.mu.Lock()
		in.cut = false
		in.mu.Unlock()
		in.turn <- struct{}{}
		in.overtaking.Unlock()
	}
}

// Write writes data, at most [MaxWriteBytes], to the process's stdin and waits
// until it is taken, at most [MaxWriteWait]. When that or ctx ends first, the
// error says how much was written; so it does of one that an interrupt overtakes.
func (m *Manager) Write(ctx context.Context, id string, data []byte) (tool.Process, error) {
	p, err := m.find(id)
	if err != nil {
		return tool.Process{}, err
	}
	if len(data) > MaxWriteBytes {
		return p.snapshot(), tool.Errorf(tool.InvalidParams, "%d bytes are too much for one write: the most is %d", len(data), MaxWriteBytes).WithPath("input")
	}
	if err := p.takesInput(); err != nil {
		return p.snapshot(), err
	}
	bounded, cancel := context.WithTimeout(ctx, MaxWriteWait)
	defer cancel()
	n, err := p.stdin.write(bounded, data)
	switch {
	case err == nil:
		return p.snapshot(), nil
	case bounded.Err() != nil:
		e := tool.Errorf(tool.Timeout, "process %s took %d of %d bytes: it does not read its input", id, n, len(data))
		if ctx.Err() != nil {
			e.Kind = tool.EndKind(ctx)
		}
		e.Err = err
		return p.snapshot(), e
	case errors.Is(err, errOvertaken): // not cancelled: whoever writes has not asked for it
		return p.snapshot(), tool.Errorf(tool.InvalidParams, "process %s took %d of %d bytes: %w", id, n, len(data), err)
	default:
		return p.snapshot(), tool.Errorf(tool.InvalidParams, "process %s took %d of %d bytes: its input is closed: %w", id, n, len(data), err)
	}
}

// takesInput is nil while the process may take input.
func (p *proc) takesInput() error {
	if isClosed(p.exited) {
		return tool.Errorf(tool.InvalidParams, "process %s has ended and takes no input", p.id)
	}
	if p.stdin == nil || p.captures != nil {
		return tool.Errorf(tool.InvalidParams, "process %s takes no input: it was started in the foreground", p.id)
	}
	return nil
}

// InputAvailable reports whether the process still takes input.
func (m *Manager) InputAvailable(_ context.Context, id string) (bool, error) {
	p, err := m.find(id)
	if err != nil {
		return false, err
	}
	return p.takesInput() == nil && p.stdin.open(), nil
}

// CloseStdin ends the process's input, also under a blocked Write; on a
// terminal it types the end-of-file character. Closing twice is no error.
func (m *Manager) CloseStdin(ctx context.Context, id string) (tool.Process, error) {
	p, err := m.find(id)
	if err != nil {
		return tool.Process{}, err
	}
	if err := p.takesInput(); err != nil {
		return p.snapshot(), err
	}
	if p.stdin.tty {
		return m.Write(ctx, id, []byte{endOfFile})
	}
	if err := p.stdin.close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return p.snapshot(), tool.Errorf(tool.Internal, "close the input of process %s: %w", id, err)
	}
	return p.snapshot(), nil
}
