package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/caisson-dev/caisson/rpc/protocol"
)

const (
	smallFile = 2 << 10
	largeFile = 16 << 20
	output    = 1 << 30
	sessions  = 200
)

// programRows are about the program itself.
func programRows(ctx context.Context, b *bench) error {
	if work := "start to initialize reply"; b.wants(work) {
		d, err := median(ctx, slowRounds, func() error {
			s, err := b.start(ctx, "{}")
			if err != nil {
				return err
			}
			return s.stop()
		})
		if err != nil {
			return err
		}
		bare, err := timeCommand(ctx, slowRounds, b.caisson, "version")
		if err != nil {
			return err
		}
		// The end of the service and its folders count too: an upper bound.
		b.add(row{work: work + ", and its end", ours: short(d), other: "caisson version " + short(bare),
			ratio: "–", target: "≤ 30ms", met: d <= 30*time.Millisecond})
	}
	if work := "binary"; b.wants(work) {
		info, err := os.Stat(b.caisson)
		if err != nil {
			return err
		}
		mib := float64(info.Size()) / (1 << 20)
		b.add(row{work: work, ours: fmt.Sprintf("%.1f MiB", mib), other: "–", ratio: "–", target: "≤ 30 MiB", met: mib <= 30})
	}
	return nil
}

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
	id, err := s.open(ctx, "")
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
	return s.delete(ctx, id)
}

func localRead(ctx context.Context, b *bench, s *service, id string) error {
	const work = "read_file of 2 KB, local"
	if !b.wants(work) {
		return nil
	}
	if err := writeText(filepath.Join(s.workspace, "small.txt"), smallFile); err != nil {
		return err
	}
	floor, err := pipeFloor(ctx, smallFile)
	if err != nil {
		return err
	}
	d, err := median(ctx, rounds*5, func() error {
		return s.tool(ctx, id, "read_file", map[string]any{"path": "small.txt"})
	})
	if err != nil {
		return err
	}
	b.add(atMost(work, d, "pipe floor", floor, 4))
	return nil
}

func localLargeRead(ctx context.Context, b *bench, s *service, id string) error {
	const work = "read of 16 MiB, local"
	if !b.wants(work) {
		return nil
	}
	if err := writeText(filepath.Join(s.workspace, "large.txt"), largeFile); err != nil {
		return err
	}
	d, err := median(ctx, rareRounds, func() error {
		r, err := s.FileRead(ctx, protocol.FileReadParams{SessionID: id, Path: "large.txt"})
		if err == nil && len(r.Data) != largeFile {
			err = fmt.Errorf("read %d bytes of %d", len(r.Data), largeFile)
		}
		return err
	})
	if err != nil {
		return err
	}
	const target = 125e6
	speed := largeFile / d.Seconds()
	b.add(row{work: work, ours: rate(largeFile, d), other: "–", ratio: "–", target: "≥ 125 MB/s", met: speed >= target})
	return nil
}

func localBash(ctx context.Context, b *bench, s *service, id string) error {
	const work = "bash true, local, standard"
	if !b.wants(work) {
		return nil
	}
	floor, err := timeCommand(ctx, rounds, "bash", "-c", "true")
	if err != nil {
		return err
	}
	d, err := median(ctx, rounds, func() error {
		return s.tool(ctx, id, "bash", map[string]any{"command": "true"})
	})
	if err != nil {
		return err
	}
	b.add(atMost(work, d, "fork+exec bash -c true", floor, 1.5))
	return nil
}

func localProcess(ctx context.Context, b *bench, s *service, id string) error {
	const work = "/bin/true, start to exited event"
	if !b.wants(work) {
		return nil
	}
	floor, err := timeCommand(ctx, rounds, "/bin/true")
	if err != nil {
		return err
	}
	d, err := median(ctx, rounds, func() error {
		r, err := s.ProcessStart(ctx, protocol.ProcessStartParams{SessionID: id, Argv: []string{"/bin/true"}})
		if err != nil {
			return err
		}
		return s.exited(ctx, r.Process.ID)
	})
	if err != nil {
		return err
	}
	b.add(atMost(work, d, "fork+exec", floor, 2))
	return nil
}

// localOutput compares a process that writes, read by nobody, with one that
// writes into a file.
func localOutput(ctx context.Context, b *bench, s *service, id string) error {
	const work = "process writing 1 GiB, unread"
	if !b.wants(work) {
		return nil
	}
	writer := fmt.Sprintf("head -c %d /dev/zero", output)
	file := filepath.Join(s.dir, "output")
	floor, err := timeCommand(ctx, rareRounds, "bash", "-c", writer+" >"+file)
	if err != nil {
		return err
	}
	if err := os.Remove(file); err != nil {
		return err
	}
	d, err := median(ctx, rareRounds, func() error {
		r, err := s.ProcessStart(ctx, protocol.ProcessStartParams{SessionID: id, Command: writer})
		if err != nil {
			return err
		}
		return s.exited(ctx, r.Process.ID)
	})
	if err != nil {
		return err
	}
	b.add(atMost(work, d, "into a file", floor, 1.2))
	return nil
}

// localSessions measures what an idle session costs.
func localSessions(ctx context.Context, b *bench, s *service, _ string) error {
	const work = "200 idle sessions, local"
	if !b.wants(work) {
		return nil
	}
	before, err := residentMemory(s.PID())
	if err != nil {
		return err
	}
	ids := make([]string, 0, sessions)
	for range sessions {
		id, err := s.open(ctx, "")
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	after, err := residentMemory(s.PID())
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := s.delete(ctx, id); err != nil {
			return err
		}
	}
	each := float64(after-before) / sessions / 1024
	b.add(row{work: work, ours: fmt.Sprintf("%.0f KiB each", each), other: "–", ratio: "–", target: "≤ 256 KiB", met: each <= 256})
	return nil
}

// searchRows compares grep with ripgrep on the Go standard library's source.
func searchRows(ctx context.Context, b *bench) (err error) {
	const work = "grep over the Go source tree, local"
	if !b.wants(work) {
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
	id, err := s.open(ctx, "")
	if err != nil {
		return err
	}
	peer, err := timeCommand(ctx, slowRounds, "rg", "--count", "func.*Deadline", s.workspace)
	if err != nil {
		return err
	}
	d, err := median(ctx, slowRounds, func() error {
		return s.tool(ctx, id, "grep", map[string]any{"pattern": "func.*Deadline", "output_mode": "count"})
	})
	if err != nil {
		return err
	}
	b.add(atMost(work, d, "rg", peer, 3))
	return s.delete(ctx, id)
}
