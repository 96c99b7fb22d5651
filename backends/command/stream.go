package command

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caisson-dev/caisson/backends/program"
	"github.com/caisson-dev/caisson/backends/tool"
)

// stream is the connection to one adapter.
type stream struct {
	name    string
	program *program.Program
	stderr  *tail
	grace   time.Duration
	spoke   atomic.Bool

	once sync.Once
	err  error
}

// Read reads the adapter's output. The error at its end says how the adapter
// ended.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.program.Read(p)
	if n > 0 {
		s.spoke.Store(true)
	}
	if errors.Is(err, io.EOF) {
		err = s.ended()
	}
	return n, err
}

// ended is the error at the end of the output. What the adapter said about it is
// added by whoever shows it.
func (s *stream) ended() error {
	if !s.program.ExitedWithin(exitWait) {
		return s.failed("closed its output")
	}
	var exit *program.ExitError
	switch err := s.program.Err(); {
	case errors.As(err, &exit) && exit.Asked:
		return io.EOF // Close says it
	case errors.As(err, &exit):
		return s.failed("ended: " + exit.State)
	default:
		return s.failed("ended by itself")
	}
}

// failed is the error of an adapter that did something that it should not have.
// It would do that again.
func (s *stream) failed(how string) error {
	e := tool.Errorf(tool.BackendUnavailable, "the adapter %s %s", s.name, how)
	return e.WithHint("run it by hand to see what is wrong with it; caisson adapter check tries it")
}

// said is what the adapter said on standard error, for the end of a message.
func (s *stream) said() string {
	if text := s.stderr.String(); text != "" {
		return "; it said: " + text
	}
	return ""
}

// Write writes to the adapter's input.
func (s *stream) Write(p []byte) (int, error) { return s.program.Write(p) }

// Close ends the adapter's input and waits for its exit, for at most the shutdown
// budget, or a moment where it never said a word; then it is killed with all that
// it started.
func (s *stream) Close() error {
	s.once.Do(func() {
		grace := s.grace
		if !s.spoke.Load() {
			grace = min(grace, silentGrace)
		}
		err := s.program.CloseWithin(grace)
		var exit *program.ExitError
		switch {
		case err == nil:
		case errors.As(err, &exit):
			s.err = &tool.Error{
				Kind: tool.OutcomeUnknown, Err: err,
				Message: fmt.Sprintf("the adapter %s did not end in order: %s%s", s.name, exit.State, s.said()),
				Hint:    "what it had begun may be left; look there before you remove anything",
			}
		default:
			s.err = &tool.Error{
				Kind: tool.OutcomeUnknown, Err: err,
				Message: fmt.Sprintf("the adapter %s did not end within %v and was killed; what it had begun elsewhere may be left%s", s.name, grace, s.said()),
				Hint:    "look there before you remove anything; shutdown_timeout_ms gives it longer",
			}
		}
	})
	return s.err
}
