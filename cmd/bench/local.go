package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"time"

	"github.com/caisson-dev/caisson/rpc/protocol"
)

// The rows of programRows, localRows and searchRows.
const (
	startWork     = "start to initialize reply"
	initWork      = "package initialisation"
	binaryWork    = "binary"
	workerWork    = "worker build"
	readWork      = "read_file of 2 KB, local"
	largeReadWork = "read of 16 MiB, local"
	bashWork      = "bash true, local, standard"
	processWork   = "/bin/true, start to exited event"
	sessionsWork  = "200 idle sessions, local, memory"
	manyWork      = "read_file of 2 KB beside them"
	grepWork      = "grep over the Go source tree, local"
)

const (
	smallFile = 2 << 10
	largeFile = 16 << 20
	sessions  = 200
)

// programRows are about the program itself.
func programRows(ctx context.Context, b *bench) error {
	if b.wants(startWork) {
		d, err := b.startTime(ctx)
		if err != nil {
			return err
		}
		bare, err := median(ctx, slowRounds, command(ctx, b.caisson, "version"))
		if err != nil {
			return err
		}
		b.add(startWork, row{ours: short(d), other: "caisson version " + short(bare), ratio: "–", target: "≤ 30 ms", met: d <= 30*time.Millisecond})
	}
	if b.wants(initWork) {
		d, err := b.initTime(ctx)
		if err != nil {
			return err
		}
		b.add(initWork, row{ours: short(d), other: "–", ratio: "–", target: "≤ 5 ms", met: d <= 5*time.Millisecond})
	}
	if b.wants(binaryWork) {
		if err := b.addSize(binaryWork, b.caisson, 30); err != nil {
			return err
		}
	}
	if b.wants(workerWork) {
		if err := b.workerSize(ctx); err != nil {
			return err
		}
	}
	return nil
}

// addSize adds the row of a file's size, which may be at most so many MiB.
func (b *bench) addSize(work, path string, most float64) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	mib := float64(info.Size()) / (1 << 20)
	b.add(work, row{ours: fmt.Sprintf("%.1f MiB", mib), other: "–", ratio: "–", target: fmt.Sprintf("≤ %.0f MiB", most), met: mib <= most})
	return nil
}

// workerSize builds the far end alone, as a release has it.
func (b *bench) workerSize(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "caisson-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	out := filepath.Join(dir, "worker")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", out, "./cmd/caisson-worker")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("the worker cannot be built: %w: %s", err, said)
	}
	return b.addSize(workerWork, out, 16)
}

// startTime is the time from starting the program to its answer, with state
// directories that are there, as at every start but the first.
func (b *bench) startTime(ctx context.Context) (d time.Duration, err error) {
	dir, err := os.MkdirTemp("", "caisson-bench-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return medianOf(ctx, slowRounds, func() (time.Duration, error) {
		start := time.Now()
		s, err := b.startIn(ctx, dir, "{}")
		d := time.Since(start)
		if err != nil {
			return 0, err
		}
		return d, s.end()
	})
}

// initTime is how long the program's packages take to initialise, as its
// runtime tells (GODEBUG=inittrace=1).
func (b *bench) initTime(ctx context.Context) (time.Duration, error) {
	return medianOf(ctx, slowRounds, func() (d time.Duration, err error) {
		command := exec.CommandContext(ctx, b.caisson, "version")
		command.Env = environment("GODEBUG=inittrace=1")
		out, err := command.CombinedOutput()
		if err != nil {
			return 0, err
		}
		for _, clock := range initClock.FindAllSubmatch(out, -1) {
			ms, err := strconv.ParseFloat(string(clock[1]), 64)
			if err != nil {
				return 0, err
			}
			d += time.Duration(ms * float64(time.Millisecond))
		}
		if d == 0 {
			return 0, errors.New("the program tells nothing of its initialisation")
		}
		return d, nil
	})
}

var initClock = regexp.MustCompile(`(?m)^init .* ([0-9.]+) ms clock`)

// localRows are about a session on this machine.
func localRows(ctx context.Context, b *bench) (err error) {
	s, err := b.start(ctx, "{}")
	if err != nil {
		return err
	}
	defer func() {
		if serr := s.stop(); err == nil {
			err = serr
		}
	}()
	id, err := s.open("")
	if err != nil {
		return err
	}
	for _, measure := range []func(context.Context, *bench, *service, string) error{
		localRead, localLargeRead, localBash, localProcess, localOutput, localSessions,
	} {
		if err := measure(ctx, b, s, id); err != nil {
			return err
		}
	}
	return s.delete(id)
}

// allThreads has a Go program take as many threads as it takes on all processors.
func allThreads() string { return fmt.Sprintf("GOMAXPROCS=%d", threads) }

// threads is asked for before anything is kept on one processor.
var threads = runtime.NumCPU()

// localRead measures on one processor: where the kernel puts two processes makes a
// round trip between them 7 or 47 µs, on either side of the comparison, and that
// is not what the row is about. The floor is at its shortest then.
func localRead(ctx context.Context, b *bench, _ *service, _ string) error {
	if !b.wants(readWork) {
		return nil
	}
	read := map[string]any{"path": "small.txt"}
	return onOneProcessor(func(int) (err error) {
		// It has the threads that it has on all of them.
		s, err := b.start(ctx, "{}", allThreads())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.stop()) }()
		id, err := s.open("")
		if err != nil {
			return err
		}
		if err := writeText(filepath.Join(s.workspace, "small.txt"), smallFile); err != nil {
			return err
		}
		c, err := besideFloor(ctx, s.tool(id, "read_file", read))
		if err != nil {
			return err
		}
		b.add(readWork, c.atMost("pipe floor", 4))
		return s.delete(id)
	})
}

func localLargeRead(ctx context.Context, b *bench, s *service, id string) error {
	if !b.wants(largeReadWork) {
		return nil
	}
	if err := writeText(filepath.Join(s.workspace, "large.txt"), largeFile); err != nil {
		return err
	}
	d, err := median(ctx, rareRounds, s.readLarge(id))
	if err != nil {
		return err
	}
	const target = 125e6
	speed := largeFile / d.Seconds()
	b.add(largeReadWork, row{ours: rate(largeFile, d), other: "–", ratio: "–", target: "≥ 125 MB/s", met: speed >= target})
	return nil
}

// readLarge returns a function that reads large.txt in one piece.
func (s *service) readLarge(id string) func() error {
	p := params(protocol.FileReadParams{SessionID: id, Path: "large.txt"})
	return func() error {
		message, err := s.call(protocol.MethodFileRead, p)
		if err == nil && len(message) < base64.StdEncoding.EncodedLen(largeFile) {
			err = fmt.Errorf("the answer has %d bytes", len(message))
		}
		return err
	}
}

func localBash(ctx context.Context, b *bench, s *service, id string) error {
	if !b.wants(bashWork) {
		return nil
	}
	c, err := versus(ctx, rounds, s.tool(id, "bash", map[string]any{"command": "true"}), command(ctx, "bash", "-c", "true"))
	if err != nil {
		return err
	}
	b.add(bashWork, c.atMost("fork+exec bash -c true", 1.5))
	return nil
}

func localProcess(ctx context.Context, b *bench, s *service, id string) error {
	if !b.wants(processWork) {
		return nil
	}
	c, err := versus(ctx, rounds, func() error {
		return s.run(protocol.ProcessStartParams{SessionID: id, Argv: []string{"/bin/true"}})
	}, command(ctx, "/bin/true"))
	if err != nil {
		return err
	}
	b.add(processWork, c.atMost("fork+exec", 2))
	return nil
}

// localSessions measures what idle sessions cost, and whether calls of another
// one are slower for them.
func localSessions(ctx context.Context, b *bench, s *service, id string) error {
	if !b.wants(sessionsWork) && !b.wants(manyWork) {
		return nil
	}
	if err := writeText(filepath.Join(s.workspace, "small.txt"), smallFile); err != nil {
		return err
	}
	read := s.tool(id, "read_file", map[string]any{"path": "small.txt"})
	alone, err := median(ctx, rounds*5, read)
	if err != nil {
		return err
	}
	pid := s.command.Process.Pid
	before, err := residentMemory(pid)
	if err != nil {
		return err
	}
	ids := make([]string, 0, sessions)
	for range sessions {
		id, err := s.open("")
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	after, err := residentMemory(pid)
	if err != nil {
		return err
	}
	beside, err := median(ctx, rounds*5, read)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := s.delete(id); err != nil {
			return err
		}
	}
	each := float64(after-before) / sessions / 1024
	b.add(sessionsWork, row{ours: fmt.Sprintf("%.0f KiB each", each), other: "–", ratio: "–", target: "≤ 256 KiB", met: each <= 256})
	b.add(manyWork, atMost(beside, "alone", alone, 1.2))
	return nil
}

// searchRows compares grep with ripgrep on the Go standard library's source.
func searchRows(ctx context.Context, b *bench) (err error) {
	if !b.wants(grepWork) {
		return nil
	}
	s, err := b.start(ctx, "{}")
	if err != nil {
		return err
	}
	defer func() {
		if serr := s.stop(); err == nil {
			err = serr
		}
	}()
	goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	s.workspace = filepath.Join(string(goroot[:len(goroot)-1]), "src")
	id, err := s.open("")
	if err != nil {
		return err
	}
	c, err := versus(ctx, slowRounds, s.tool(id, "grep", map[string]any{"pattern": "func.*Deadline", "output_mode": "count"}),
		command(ctx, "rg", "--count", "func.*Deadline", s.workspace))
	if err != nil {
		return err
	}
	b.add(grepWork, c.atMost("rg", 3))
	return s.delete(id)
}
