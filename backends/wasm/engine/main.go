package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/caisson-dev/caisson/backends/wire"
)

// Main runs the engine on the standard streams when args, without the program's
// name, say so; handled is false otherwise. A program that is to be started as an
// engine, such as a test's, calls it first.
func Main(args []string) (handled bool, code int) {
	if len(args) == 0 || args[0] != Command {
		return false, 0
	}
	if len(args) == 2 && args[1] == compileArg {
		if err := compileOne(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintf(os.Stderr, "caisson %s %s: %v\n", Command, compileArg, err)
			return true, 1
		}
		return true, 0
	}
	if len(args) > 1 {
		fmt.Fprintf(os.Stderr, "caisson %s: it takes no arguments\n", Command)
		return true, 2
	}
	drop := make(chan os.Signal, 1)
	signal.Notify(drop, syscall.SIGPIPE, syscall.SIGHUP)
	defer signal.Stop(drop)
	if err := serve(context.Background(), &streams{in: os.Stdin, out: os.Stdout}); err != nil {
		fmt.Fprintf(os.Stderr, "caisson %s: %v\n", Command, err)
		return true, 1
	}
	return true, 0
}

// serve answers requests until the input ends. It does not wait long for guests:
// nobody is left to hear of them.
func serve(ctx context.Context, rw *streams) error {
	if err := dieWithParent(); err != nil {
		return err
	}
	debug.SetMemoryLimit(heapLimit)
	rw.ended = func() { time.AfterFunc(lastRuns, func() { os.Exit(1) }) }
	s := newServer()
	err := wire.Serve(ctx, rw, s, wire.ServerOptions{MaxRequests: maxRequests})
	return errors.Join(err, s.close(ctx))
}

// streams are the standard streams as one.
type streams struct {
	in    io.ReadCloser
	out   io.WriteCloser
	ended func()
	once  sync.Once
}

// Read reads the input, and tells when it has ended.
func (s *streams) Read(p []byte) (int, error) {
	n, err := s.in.Read(p)
	if err != nil {
		s.once.Do(s.ended)
	}
	return n, err
}

// Write writes the output.
func (s *streams) Write(p []byte) (int, error) { return s.out.Write(p) }

// Close closes both.
func (s *streams) Close() error { return errors.Join(s.out.Close(), s.in.Close()) }
