// Package program runs a trusted program whose standard streams are a connection:
// an adapter of the service, or the peer that an adapter delegates to. It is for
// both ends of wire protocol 4 and knows nothing of it; the commands of an
// environment, which nobody trusts, are not its business.
package program

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// Options say what to run.
type Options struct {
	// Argv is the program and its arguments. The program is an absolute path, or a
	// name that is looked up in PATH.
	Argv []string
	// Path is the file that is started under the name Argv[0], where it is not that.
	Path string
	// Env is its environment, nil this program's; Dir its working directory, empty
	// this program's.
	Env []string
	Dir string
	// Stderr takes what it prints to standard error.
	Stderr io.Writer
	// Grace is how long it may take from the end of its input to its own exit; then it
	// is killed with all its descendants.
	Grace time.Duration
	// LetGo is how long a Close waits after the exit for whoever else still holds the
	// program's output, so that [Program.Held] can say so. 0: nobody is waited for, and
	// nothing is said.
	LetGo time.Duration
}

const (
	// drain is how long output may still be read after the exit: what is in the
	// pipe is there at once, and nobody who kept the other end is waited for.
	drain = 5 * time.Second
	// stderrDrain is the same of standard error, which is not there for who reads the
	// output, but for what an error says: that waits for it.
	stderrDrain = time.Second
	// reap is how long the kernel may take to end what was killed.
	reap = 5 * time.Second
)

// ErrKilled is in the chain of the error of a Close that had to use force.
var ErrKilled = errors.New("it did not exit in time and was killed")

// An ExitError says how a program ended.
type ExitError struct {
	// Name is the program's, as it was asked for.
	Name string
	// State says how: "exit status 3", "signal: killed".
	State string
	// Asked says that its input had ended before.
	Asked bool
}

func (e *ExitError) Error() string { return fmt.Sprintf("%s ended: %s", e.Name, e.State) }

// Program is a program that was started, as one stream: Read gives its standard
// output, Write its standard input. When it has ended its process group is ended
// with it. Its methods may be called concurrently.
type Program struct {
	name    string
	grace   time.Duration
	letGo   time.Duration
	cmd     *exec.Cmd
	tree    *tree
	in, out *os.File
	stderr  *stderr

	gone   chan struct{} // closed when state is set and nothing of it is left
	exited chan struct{} // closed after gone, when standard error has been taken
	state  *ExitError    // nil after an exit with 0

	mu       sync.Mutex
	over     bool // its output has ended while its input had not
	closing  bool // its input was ended before its output
	closed   sync.Once
	closeErr error
	held     []string
}

// Start starts the program. It fails when there is no such program; what it then
// does is only known by its output.
func Start(o Options) (*Program, error) {
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, theirIn.Close(), in.Close())
	}
	cmd := exec.Command(cmp.Or(o.Path, o.Argv[0])) //nolint:noctx // ended by Close
	cmd.Args = o.Argv
	cmd.Env, cmd.Dir = o.Env, o.Dir
	cmd.Stdin, cmd.Stdout = theirIn, theirOut
	p := &Program{name: o.Argv[0], grace: o.Grace, letGo: o.LetGo, cmd: cmd, in: in, out: out, gone: make(chan struct{}), exited: make(chan struct{})}
	p.stderr, cmd.Stderr, err = takeStderr(o.Stderr)
	if err == nil {
		p.tree, err = start(cmd)
		err = errors.Join(err, p.stderr.started())
	}
	err = errors.Join(err, theirIn.Close(), theirOut.Close())
	if err != nil {
		p.stderr.stop()
		return nil, errors.Join(err, in.Close(), out.Close())
	}
	go p.wait()
	return p, nil
}

// wait waits for the exit, ends what of the program's group is left, and has a last look
// at standard error.
func (p *Program) wait() {
	defer close(p.exited)
	err := p.tree.wait(p.cmd)
	// A grandchild that left the group may hold the other ends.
	_ = p.out.SetReadDeadline(time.Now().Add(drain)) // where pipes know none it stays open until Close
	if err != nil {
		p.state = &ExitError{Name: p.name, State: err.Error(), Asked: p.asked()}
		if p.cmd.ProcessState != nil {
			p.state.State = p.cmd.ProcessState.String()
		}
	}
	close(p.gone)
	p.stderr.wait(stderrDrain)
	if p.letGo == 0 {
		p.stderr.stop() // else Close sees whether it is held any longer
	}
}

// asked reports whether the program's input was ended.
func (p *Program) asked() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closing
}

// Pid is the program's process id, which is also that of its group.
func (p *Program) Pid() int { return p.cmd.Process.Pid }

// Gone is closed when the program has exited and its group is gone. What it has printed
// to standard error may not have been taken yet.
func (p *Program) Gone() <-chan struct{} { return p.gone }

// Exited is closed after Gone, when what the program has printed to standard error has
// been taken too: within a second, if others hold that.
func (p *Program) Exited() <-chan struct{} { return p.exited }

// ExitedWithin waits for Exited, for at most limit, and reports whether the program has
// exited, whoever holds its standard error.
func (p *Program) ExitedWithin(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-timer.C:
	}
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// Err is how the program ended: nil while it runs and after an exit with 0, else
// an [*ExitError].
func (p *Program) Err() error {
	select {
	case <-p.gone:
		if p.state != nil {
			return p.state
		}
	default:
	}
	return nil
}

// Read reads its output. At the end of it the error is [io.EOF].
func (p *Program) Read(b []byte) (int, error) {
	n, err := p.out.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, os.ErrClosed) {
		err = io.EOF
	}
	if errors.Is(err, io.EOF) {
		p.mu.Lock()
		p.over = true
		p.mu.Unlock()
	}
	return n, err
}

// Write writes to its input.
func (p *Program) Write(b []byte) (int, error) { return p.in.Write(b) }

// Close is CloseWithin the grace that the program was started with.
func (p *Program) Close() error { return p.CloseWithin(p.grace) }

// CloseWithin ends the program's input and waits until it has exited itself, for at most
// the grace; then it is killed with its descendants, and the error has [ErrKilled]
// in its chain. Who holds its streams after its exit is watched beyond the grace, see
// [Options.LetGo]. Another error says that it exited badly after its input had
// ended. Closing again waits and returns the same.
func (p *Program) CloseWithin(grace time.Duration) error {
	p.closed.Do(func() {
		p.mu.Lock()
		p.closing = !p.over
		p.mu.Unlock()
		_ = p.in.Close() // a write that is blocked fails by it
		p.closeErr = p.end(grace)
		_ = p.out.Close()
	})
	return p.closeErr
}

// Held says, after a Close that had to kill nothing, which of the program's streams
// somebody that it has left behind still held [Options.LetGo] after its exit, and as far
// as that can be seen who.
func (p *Program) Held() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

// seeHeld finds out what Held says: drained gives how reading the output ended.
func (p *Program) seeHeld(drained <-chan error) {
	var held []string
	begun := time.Now()
	timer := time.NewTimer(p.letGo)
	defer timer.Stop()
	select {
	case err := <-drained:
		if err != nil { // the deadline of wait's
			held = append(held, "standard output"+holders(p.out))
		}
	case <-timer.C:
		held = append(held, "standard output"+holders(p.out))
	}
	if !p.stderr.wait(p.letGo - time.Since(begun)) {
		held = append(held, "standard error"+p.stderr.holders())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = held
}

// end waits for the exit. Meanwhile nobody else may be reading, and a program
// that still writes must not wait for that.
func (p *Program) end(within time.Duration) error {
	drained, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		_, err := io.Copy(io.Discard, p.out)
		drained <- err
	}()
	defer func() {
		_ = p.out.Close()
		<-ended
	}()
	defer p.stderr.stop()
	grace := time.NewTimer(within)
	defer grace.Stop()
	select {
	case <-p.gone:
		<-p.exited // soon
		if p.letGo > 0 {
			p.seeHeld(drained)
		}
		if p.state != nil && p.state.Asked {
			return p.state
		}
		return nil // it ended by itself, and who reads its output knows
	case <-grace.C:
	}
	p.tree.kill()
	killed := fmt.Errorf("%s: %w after %v; what it had begun elsewhere may go on", p.name, ErrKilled, within)
	reaping := time.NewTimer(reap)
	defer reaping.Stop()
	select {
	case <-p.gone:
		<-p.exited // soon
		return killed
	case <-reaping.C:
		return fmt.Errorf("%w, and does not end even so", killed)
	}
}
