package worker

import (
	"errors"
	"io"
	"sync"
)

// stdio makes one stream of an input and an output, and tells when the input
// has ended: from then on the shutdown budget runs.
type stdio struct {
	in    io.Reader
	out   io.Writer
	ended func()
	once  sync.Once
}

func (s *stdio) Read(p []byte) (int, error) {
	n, err := s.in.Read(p)
	if err != nil {
		s.ended()
	}
	return n, err
}

func (s *stdio) Write(p []byte) (int, error) { return s.out.Write(p) }

// Close closes both. A read of an input that cannot be interrupted stays
// blocked.
func (s *stdio) Close() (err error) {
	s.once.Do(func() {
		for _, end := range []any{s.out, s.in} {
			if c, ok := end.(io.Closer); ok {
				err = errors.Join(err, c.Close())
			}
		}
	})
	return err
}
