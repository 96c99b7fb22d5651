package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/rs/zerolog"
)

// logger makes the program's log on stderr: lines for a person where stderr is
// a terminal, else one JSON object a line.
func (a *app) logger(level string) (*slog.Logger, error) {
	if a.logLevel != "" {
		level = a.logLevel
	}
	l, err := zerolog.ParseLevel(level)
	if err != nil || l < zerolog.DebugLevel || l > zerolog.ErrorLevel {
		return nil, usagef("the log level %q is none of debug, info, warn, error", level)
	}
	out := a.errs
	if isTerminal(out) {
		out = zerolog.ConsoleWriter{Out: out, TimeFormat: time.TimeOnly}
	}
	return slog.New(zerolog.NewSlogHandler(zerolog.New(out).Level(l))), nil
}

func isTerminal(stream any) bool {
	if s, ok := stream.(*spool); ok {
		stream = s.out
	}
	f, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

const (
	// maxSpool is how many bytes of log wait for whoever reads stderr.
	maxSpool = 1 << 20
	// spoolEnd is how long, at the very end, they may still be read.
	spoolEnd = time.Second
)

// spool is a writer that never waits for the reader of out, so that a client that
// takes stderr and does not read it holds nothing up. What does not fit is
// counted, and told when there is room again.
type spool struct {
	out  io.Writer
	more chan struct{} // something waits, or the spool is closed
	done chan struct{} // closed when nothing more will be written

	mu      sync.Mutex
	waiting []byte
	lost    int
	closed  bool
}

func newSpool(out io.Writer) *spool {
	s := &spool{out: out, more: make(chan struct{}, 1), done: make(chan struct{})}
	go s.run()
	return s
}

// Write implements [io.Writer].
func (s *spool) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting)+len(p) > maxSpool {
		s.lost++
	} else {
		s.waiting = append(s.waiting, p...)
	}
	s.wake()
	return len(p), nil
}

// close waits until all is written, but no longer than spoolEnd.
func (s *spool) close() {
	s.mu.Lock()
	s.closed = true
	s.wake()
	s.mu.Unlock()
	select {
	case <-s.done:
	case <-time.After(spoolEnd):
	}
}

func (s *spool) wake() {
	select {
	case s.more <- struct{}{}:
	default:
	}
}

func (s *spool) run() {
	defer close(s.done)
	for range s.more {
		s.mu.Lock()
		text, lost, closed := s.waiting, s.lost, s.closed
		s.waiting, s.lost = nil, 0
		s.mu.Unlock()
		if lost > 0 {
			text = fmt.Appendf(text, "{\"level\":\"warn\",\"message\":\"%d lines of the log are missing here: it was not read\"}\n", lost)
		}
		// There is nowhere to tell of an error.
		_, _ = s.out.Write(text)
		if closed {
			return
		}
	}
}
