package connection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/caisson-dev/caisson/backends/program"
	"github.com/caisson-dev/caisson/backends/tool"
)

// Stream is a remote command, or subsystem, that runs: Read is its standard
// output, Write its standard input. Close, and the end of the connection, make
// a blocked Read and Write return at once, which a channel of the library's
// does not do. One Read and one Write may be called at once, and everything else.
type Stream struct {
	session *ssh.Session
	link    *link
	stderr  *program.Tail

	out   *io.PipeReader
	stdin io.WriteCloser

	// The writing goroutine gets the length of what buffer holds, and answers
	// with what became of it; a length of less than 0 is the end.
	writing    sync.Mutex
	inputEnded bool
	buffer     []byte
	give       chan int
	given      chan error

	closeOnce sync.Once
	closed    chan struct{}
	// ended is closed when the command has ended; exit and err are set before.
	ended chan struct{}
	exit  Exit
	err   error
}

// open opens a session and starts something on it.
func (l *link) open(ctx context.Context, launch func(*ssh.Session) error) (*Stream, error) {
	type outcome struct {
		s   *Stream
		err error
	}
	result := make(chan outcome)
	gone := make(chan struct{})
	defer close(gone)
	if !l.begin(func() {
		s, err := l.start(launch)
		select {
		case result <- outcome{s, err}:
		case <-gone:
			if s != nil {
				s.Close()
			}
		}
	}) {
		return nil, l.gone()
	}
	select {
	case o := <-result:
		return o.s, o.err
	case <-ctx.Done():
		return nil, contextError(ctx, "starting a session on "+l.route.last().String())
	}
}

// gone is the error for a link that has ended, or is about to.
func (l *link) gone() error {
	select {
	case <-l.done:
		return l.err
	default:
		return &tool.Error{Kind: tool.BackendUnavailable, Message: fmt.Sprintf("the connection to %s was closed", l.route.last()), Retryable: true, Err: errClosed}
	}
}

// contextError is the error for a context that ended.
func contextError(ctx context.Context, doing string) error {
	return &tool.Error{Kind: tool.EndKind(ctx), Message: doing + " was given up", Err: context.Cause(ctx)}
}

// start opens the session; it blocks for as long as the far end does.
func (l *link) start(launch func(*ssh.Session) error) (*Stream, error) {
	session, err := l.client.NewSession()
	if err != nil {
		return nil, l.explain(err)
	}
	s := &Stream{
		session: session, link: l, stderr: &program.Tail{Max: MaxStderr},
		buffer: make([]byte, streamBuffer), give: make(chan int), given: make(chan error),
		closed: make(chan struct{}), ended: make(chan struct{}),
	}
	session.Stderr = s.stderr
	stdout, err := session.StdoutPipe()
	if err == nil {
		s.stdin, err = session.StdinPipe()
	}
	if err != nil {
		session.Close()
		return nil, err
	}
	for _, v := range l.env {
		// Nobody waits for the answer: a server may let it be.
		if _, err := session.SendRequest("env", false, ssh.Marshal(v)); err != nil {
			session.Close()
			return nil, l.explain(err)
		}
	}
	if err := launch(session); err != nil {
		session.Close()
		if errors.Is(err, ErrNoSFTP) || errors.Is(err, errNoCommands) {
			return nil, err
		}
		return nil, l.explain(err)
	}
	l.opened()
	var in *io.PipeWriter
	s.out, in = io.Pipe()
	for _, f := range []func(){s.wait, func() { s.read(in, stdout) }, func() { s.write(in) }} {
		if !l.begin(f) {
			// The connection has just ended, and with it what was begun.
			s.Close()
			return nil, l.gone()
		}
	}
	return s, nil
}

// requestRefused reports whether a server has answered no: the library has no
// type for it.
func requestRefused(err error) bool {
	text := err.Error()
	return strings.HasPrefix(text, "ssh: ") && strings.HasSuffix(text, " failed")
}

// explain says that the connection has ended, where that is why err came.
func (l *link) explain(err error) error {
	var refused *ssh.OpenChannelError
	if errors.As(err, &refused) {
		return err
	}
	// The end of the connection is known a moment later than what it does.
	timer := time.NewTimer(newsTimeout)
	defer timer.Stop()
	select {
	case <-l.done:
		return l.err
	case <-timer.C:
		return err
	}
}

// wait waits for the end of the command.
func (s *Stream) wait() {
	err := s.session.Wait()
	s.link.closedSession()
	var exit *ssh.ExitError
	var missing *ssh.ExitMissingError
	switch {
	case err == nil:
	case errors.As(err, &exit):
		s.exit = Exit{Code: exit.ExitStatus(), Signal: exit.Signal()}
	case errors.As(err, &missing):
		// It was the connection, or the server, that ended.
		s.err = s.link.explain(errors.New("the command ended without an exit status"))
	default:
		s.err = s.link.explain(err)
	}
	close(s.ended)
}

// read moves the output on.
func (s *Stream) read(in *io.PipeWriter, stdout io.Reader) {
	buf := make([]byte, streamBuffer)
	for {
		n, err := stdout.Read(buf)
		if n > 0 {
			if _, werr := in.Write(buf[:n]); werr != nil {
				return // closed
			}
		}
		if err == nil {
			continue
		}
		if errors.Is(err, io.EOF) {
			err = s.outputEnded()
		}
		in.CloseWithError(err)
		return
	}
}

// outputEnded tells the end of the output from that of the connection, both of
// which the library calls the same.
func (s *Stream) outputEnded() error {
	timer := time.NewTimer(newsTimeout)
	defer timer.Stop()
	select {
	case <-s.ended:
		if s.err != nil && !s.link.alive() {
			return s.link.err
		}
	case <-s.link.done:
		return s.link.err
	case <-timer.C: // the command has closed its output and goes on
	}
	return io.EOF
}

// write moves the input on. When the connection ends it has the output end too:
// whoever does not read must not hold up the end.
func (s *Stream) write(in *io.PipeWriter) {
	for {
		var n int
		select {
		case n = <-s.give:
		case <-s.closed:
			return
		case <-s.link.done:
			in.CloseWithError(s.link.err)
			return
		}
		var err error
		if n < 0 {
			err = s.stdin.Close()
		} else {
			_, err = s.stdin.Write(s.buffer[:n])
		}
		select {
		case s.given <- err:
		case <-s.closed:
			return
		case <-s.link.done:
			in.CloseWithError(s.link.err)
			return
		}
	}
}

// Read reads standard output. io.EOF is the end of the output; a connection
// that ended is an error that says so.
func (s *Stream) Read(p []byte) (int, error) {
	n, err := s.out.Read(p)
	if errors.Is(err, io.ErrClosedPipe) {
		err = os.ErrClosed
	}
	return n, err
}

// Write writes standard input. After CloseWrite, and to a command that has
// ended, it gives io.ErrClosedPipe.
func (s *Stream) Write(p []byte) (int, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	written := 0
	for len(p) > 0 {
		if err := s.usable(); err != nil {
			return written, err
		}
		if s.inputEnded {
			return written, io.ErrClosedPipe
		}
		n := copy(s.buffer, p)
		if err := s.hand(n); err != nil {
			return written, err
		}
		written += n
		p = p[n:]
	}
	return written, nil
}

// usable is the error of a stream that has ended. The buffer of such a one may
// still be read from.
func (s *Stream) usable() error {
	select {
	case <-s.closed:
		return os.ErrClosed
	case <-s.link.done:
		return s.link.err
	default:
		return nil
	}
}

// hand gives the writing goroutine n bytes and waits for what becomes of them.
func (s *Stream) hand(n int) error {
	select {
	case s.give <- n:
	case <-s.closed:
		return os.ErrClosed
	case <-s.link.done:
		return s.link.err
	}
	select {
	case err := <-s.given:
		if errors.Is(err, io.EOF) {
			// The channel is closed, by the command's end or the connection's.
			select {
			case <-s.ended:
			case <-s.closed:
			}
			if !s.link.alive() {
				return s.link.err
			}
			return io.ErrClosedPipe
		}
		if err != nil {
			return s.link.explain(err)
		}
		return nil
	case <-s.closed:
		return os.ErrClosed
	case <-s.link.done:
		return s.link.err
	}
}

// CloseWrite ends standard input.
func (s *Stream) CloseWrite() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	if s.inputEnded {
		return nil
	}
	s.inputEnded = true
	if err := s.hand(-1); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	return nil
}

// Stderr is the tail of standard error so far, at most [MaxStderr] bytes, as it
// came.
func (s *Stream) Stderr() string { return s.stderr.String() }

// Signal sends a signal, named without SIG, and does not wait. Not every server
// delivers it, and none to a command that it is just starting.
func (s *Stream) Signal(name string) error {
	if err := s.usable(); err != nil {
		return err
	}
	if !s.link.begin(func() { _ = s.session.Signal(ssh.Signal(name)) }) { // nothing comes back
		return s.link.gone()
	}
	return nil
}

// Wait waits for the end of the command, whose output must be read meanwhile.
// The error is that of a connection that ended first, or of ctx.
func (s *Stream) Wait(ctx context.Context) (Exit, error) {
	select {
	case <-s.ended:
		return s.exit, s.err
	default:
	}
	select {
	case <-s.ended:
		return s.exit, s.err
	case <-ctx.Done():
		return Exit{}, contextError(ctx, "waiting for a command on "+s.link.route.last().String())
	}
}

// Close ends the stream; a command that still runs is not ended by it.
func (s *Stream) Close() error {
	s.closeOnce.Do(func() {
		close(s.closed)
		if s.out != nil {
			s.out.CloseWithError(os.ErrClosed)
		}
		// It may block for as long as the far end does.
		s.link.begin(func() { _ = s.session.Close() }) // the far end may have closed it already
	})
	return nil
}

// String is how a command ended, for a person.
func (e Exit) String() string {
	if e.Signal != "" {
		return "signal " + e.Signal
	}
	return "exit status " + strconv.Itoa(e.Code)
}
