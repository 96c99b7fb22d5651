package docker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types"

	"github.com/caisson-dev/caisson/backends/program"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// execStream is the standard streams of a command in a container: reads give
// its stdout, taken out of what the engine multiplexes in place, without a
// goroutine or a copy more; its stderr is kept for errors.
type execStream struct {
	conn     io.ReadWriteCloser
	reader   *bufio.Reader // of conn
	exitCode func(context.Context) (code int, ended bool)
	stderr   program.Tail

	// mark is what the command prints first, and reached is called once when it
	// did; boot is what the container's first process said meanwhile. Refused says
	// that the container's runtime has spoken in the command's place.
	mark    string
	reached func()
	refused bool
	done    func() // called by Close
	boot    func() string

	// left is what is still to be read of the present frame of stdout. Only
	// Read uses it, which is not called concurrently.
	left uint32

	closeOnce sync.Once
	closeErr  error
}

func newExecStream(conn io.ReadWriteCloser, reader *bufio.Reader, exitCode func(context.Context) (int, bool)) *execStream {
	return &execStream{conn: conn, reader: reader, exitCode: exitCode, stderr: program.Tail{Max: maxStderrBytes}}
}

// frameHeader is the length of what precedes each frame: the stream's number,
// three zeros, the payload's length.
const frameHeader = 8

// Read reads the command's stdout. When the command failed, the error at its
// end is not io.EOF but says how.
func (s *execStream) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for s.left == 0 {
		if err := s.next(); err != nil {
			return 0, s.end(err)
		}
	}
	if uint64(len(p)) > uint64(s.left) {
		p = p[:s.left]
	}
	n, err := s.reader.Read(p)
	s.left -= uint32(n)
	if n > 0 {
		switch {
		case s.reached == nil:
		case strings.HasPrefix(string(p[:min(n, len(s.mark))]), s.mark):
			s.reached()
		default:
			s.refused = refuses(p[:n])
		}
		s.reached = nil // it is said first or never
		return n, nil
	}
	return 0, s.end(err)
}

// refuses reports whether text is what a container's runtime prints, on the command's
// stdout, where it cannot start one.
func refuses(text []byte) bool {
	return bytes.HasPrefix(text, []byte("OCI runtime exec failed")) || bytes.HasPrefix(text, []byte("cannot exec in a"))
}

// next reads up to the next frame of stdout.
func (s *execStream) next() error {
	var header [frameHeader]byte
	if _, err := io.ReadFull(s.reader, header[:]); err != nil {
		return err
	}
	length := binary.BigEndian.Uint32(header[4:])
	switch header[0] {
	case streamStdout:
		s.left = length
		return nil
	case streamStderr, streamSystem:
		_, err := io.CopyN(&s.stderr, s.reader, int64(length))
		return err
	default:
		return fmt.Errorf("the daemon sent a frame of the unknown stream %d", header[0])
	}
}

// end is the error at the end of the stream: what the command said when it
// failed, else err.
func (s *execStream) end(err error) error {
	if !errors.Is(err, io.EOF) {
		return err
	}
	if s.refused {
		e := tool.Errorf(tool.BackendUnavailable, "the container's runtime could not start the attach command").
			WithHint("the container may be ending just now, or be at its limit of processes (pids_limit) or memory: stop some of its processes, or close the session")
		e.Retryable = true
		return e
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	code, ended := s.exitCode(ctx)
	said := s.stderr.Line()
	if s.boot != nil && s.boot() != "" && said == "" {
		said = "the container's first process says: " + s.boot()
	}
	switch {
	case ended && code != 0 && said != "":
		return fmt.Errorf("the attach command in the container exited with %d: %s", code, said)
	case ended && code != 0:
		return fmt.Errorf("the attach command in the container exited with %d", code)
	}
	return io.EOF
}

// Write writes to the command's stdin.
func (s *execStream) Write(p []byte) (int, error) { return s.conn.Write(p) }

// BlocksThreads is what [wire.Blocks] asks for.
func (s *execStream) BlocksThreads() bool { return wire.Blocks(s.conn) }

// CloseWrite ends the command's stdin, if the connection can end one way alone.
func (s *execStream) CloseWrite() error {
	if c, ok := s.conn.(types.CloseWriter); ok {
		return c.CloseWrite()
	}
	return nil
}

// Close ends the connection. The command learns of it by the end of its stdin.
func (s *execStream) Close() error {
	s.closeOnce.Do(func() {
		if c, ok := s.conn.(net.Conn); ok {
			// A daemon that has the whole input may still be writing.
			_ = c.SetDeadline(time.Now())
		}
		s.closeErr = s.conn.Close()
		if s.done != nil {
			s.done()
		}
	})
	return s.closeErr
}
