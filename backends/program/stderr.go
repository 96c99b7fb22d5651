package program

import (
	"io"
	"os"
	"time"
)

// stderr takes what a program prints to standard error. The package os/exec would do that
// too, but tells of an exit only when it is done, which may be long after.
type stderr struct {
	// read and write are the ends of the pipe, both nil where the program has been given
	// a file, of which nothing is seen.
	read, write *os.File
	to          io.Writer
	ended       chan struct{} // closed when there is nobody left who could print
}

// takeStderr gives what a program's standard error is to be, so that w has what comes.
func takeStderr(w io.Writer) (*stderr, io.Writer, error) {
	s := &stderr{to: w, ended: make(chan struct{})}
	if _, file := w.(*os.File); file || w == nil {
		close(s.ended)
		return s, w, nil
	}
	var err error
	if s.read, s.write, err = os.Pipe(); err != nil {
		close(s.ended)
		return s, nil, err
	}
	return s, s.write, nil
}

// started takes what comes, once the program has been started or could not be.
func (s *stderr) started() error {
	if s.read == nil {
		return nil
	}
	go func() {
		defer close(s.ended)
		defer s.read.Close()         // who prints is told when nobody takes it
		_, _ = io.Copy(s.to, s.read) // an error is the end of it
	}()
	return s.write.Close()
}

// wait waits until nobody is left who could print, for at most limit, and reports
// whether that is so.
func (s *stderr) wait(limit time.Duration) bool {
	select {
	case <-s.ended:
		return true
	default:
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-s.ended:
		return true
	case <-timer.C:
		return false
	}
}

// stop takes nothing any more.
func (s *stderr) stop() {
	if s.read != nil {
		_ = s.read.Close() // a read that is blocked fails by it
	}
	<-s.ended
}

// holders is [holders] of standard error.
func (s *stderr) holders() string { return holders(s.read) }
