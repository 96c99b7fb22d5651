package supervise

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/backends/worker"
	"github.com/caisson-dev/caisson/backends/worker/endpoint"
	"github.com/caisson-dev/caisson/backends/worker/process"
	"github.com/caisson-dev/caisson/backends/worker/self"
)

// readyFD is the descriptor on which a started worker says that it listens:
// the first after the standard ones.
const readyFD = 3

// readyWord is what it says.
const readyWord = "ready\n"

// Start starts a worker on a socket that outlives this process and is no child
// of it, and returns when it listens. The executable is this program, or empty
// for the one that runs; env are the variables of the worker and of its commands,
// nil for those of this process. An error quotes the worker's last words.
func Start(ctx context.Context, executable string, o worker.Options, env []string) error {
	executable, err := program(executable)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, executable, append([]string{"worker", "--detach"}, o.Args()...)...)
	cmd.Args[0] = self.Name(executable)
	cmd.Env, cmd.Dir = env, string(filepath.Separator)
	var stderr bytes.Buffer
	cmd.Stderr = &limitedWriter{w: &stderr, left: maxQuote}
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return fmt.Errorf("start a worker: %w%s", err, quoted(stderr.Bytes()))
	}
	return nil
}

// detach starts a worker in a session of its own and lets go of it once it
// listens. Its caller exits then, so that the worker has no parent of ours.
func detach(ctx context.Context, o worker.Options) error {
	executable, err := program("")
	if err != nil {
		return err
	}
	s, err := spawn(executable, o, unblocked(os.StartProcess))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := s.await(ctx); err != nil {
		kill := s.process.Kill()
		if errors.Is(kill, os.ErrProcessDone) {
			kill = nil
		}
		_, wait := s.process.Wait()
		return errors.Join(err, kill, wait)
	}
	return s.process.Release()
}

// program is the path of this program.
func program(executable string) (string, error) {
	if executable != "" {
		return executable, nil
	}
	executable, err := self.Path()
	if err != nil {
		return "", fmt.Errorf("find the program to start: %w", err)
	}
	return executable, nil
}

// spawned is a worker that may not listen yet.
type spawned struct {
	process *os.Process
	ready   *os.File // its end is the worker's, or the worker's readiness
	log     string   // where its last words are
	logFrom int64    // and from where on
}

type startFunc func(name string, argv []string, attr *os.ProcAttr) (*os.Process, error)

// spawn starts a worker with nothing of ours open but its log: not what whoever
// started us has left open either, who may wait for the end of it.
func spawn(executable string, o worker.Options, start startFunc) (*spawned, error) {
	if err := process.SealDescriptors(); err != nil {
		return nil, fmt.Errorf("keep descriptors from the worker: %w", err)
	}
	path := filepath.Join(worker.SessionDir(o.State, o.Session), "worker.log")
	log, from, err := openLog(path)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the worker has its own
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	argv := append([]string{self.Name(executable), "worker", "--ready-fd=" + strconv.Itoa(readyFD)}, o.Args()...)
	p, err := start(executable, argv, &os.ProcAttr{
		Dir:   string(filepath.Separator),
		Env:   os.Environ(),
		Files: []*os.File{null, null, log, w},
		Sys:   ownSession(),
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", executable, err), r.Close())
	}
	return &spawned{process: p, ready: r, log: path, logFrom: from}, nil
}

// await returns nil once the worker listens, and an error that quotes its last
// words when it ended before, or when ctx did.
func (s *spawned) await(ctx context.Context) error {
	defer s.ready.Close()
	stop := context.AfterFunc(ctx, func() {
		// A pipe that takes no deadline is waited for to the worker's end.
		_ = s.ready.SetReadDeadline(time.Unix(1, 0))
	})
	defer stop()
	b, err := io.ReadAll(io.LimitReader(s.ready, int64(len(readyWord))))
	switch {
	case string(b) == readyWord:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("the worker does not listen: %w", ctx.Err())
	default:
		return errors.Join(fmt.Errorf("the worker ended before it listened%s", s.lastWords()), err)
	}
}

func (s *spawned) lastWords() string {
	f, err := endpoint.OpenPlain(s.log, os.O_RDONLY)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	from := max(s.logFrom, info.Size()-maxQuote)
	b, err := io.ReadAll(io.NewSectionReader(f, from, maxQuote))
	if err != nil {
		return ""
	}
	return quoted(b)
}

func quoted(b []byte) string {
	if s := strings.TrimSpace(string(b)); s != "" {
		return ": " + s
	}
	return ""
}

// openLog opens a worker's log to append, after moving a long one aside.
func openLog(path string) (f *os.File, size int64, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, 0, fmt.Errorf("make the session's directory: %w", err)
	}
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		if err := os.Rename(path, path+".old"); err != nil {
			return nil, 0, fmt.Errorf("move the old log aside: %w", err)
		}
	} else if err == nil {
		size = info.Size()
	}
	f, err = endpoint.OpenPlain(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY)
	if err != nil {
		return nil, 0, fmt.Errorf("open the worker's log: %w", err)
	}
	return f, size, nil
}

// limitedWriter passes on the first bytes and drops the rest, so that nobody
// who provokes messages can fill a disk.
type limitedWriter struct {
	w    io.Writer
	left int
}

func (l *limitedWriter) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	if n > 0 {
		if _, err := l.w.Write(p[:n]); err != nil {
			return 0, err
		}
		l.left -= n
	}
	return len(p), nil
}
