package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/caisson-dev/caisson/rpc/protocol"
)

// The rows of localOutput.
const (
	unreadWork     = "output of 1 GiB, unread"
	slowlyWork     = "output of 1 GiB, read slowly"
	subscribedWork = "output of 1 GiB, to the last byte"
	memoryWork     = "memory for output of 1 GiB"
)

const (
	output = 1 << 30
	// slowly is the pause after each message of a client that reads slowly.
	slowly = 20 * time.Millisecond
	// maxOutputMemory is what 1 GiB of output may take of memory.
	maxOutputMemory = 64 << 20
)

// localOutput compares a process that writes, read by nobody, slowly or to the
// last byte, with one that writes into a file, and with base64 over a pipe.
func localOutput(ctx context.Context, b *bench, s *service, id string) (err error) {
	if !slices.ContainsFunc([]string{unreadWork, slowlyWork, subscribedWork, memoryWork}, b.wants) {
		return nil
	}
	writer := fmt.Sprintf("head -c %d /dev/zero", output)
	start := protocol.ProcessStartParams{SessionID: id, Command: writer}
	if err := s.run(start); err != nil { // so that the worker runs
		return err
	}
	memory, err := watchMemory(s)
	if err != nil {
		return err
	}
	file := command(ctx, "bash", "-c", writer+" >"+filepath.Join(s.dir, "output"))
	if b.wants(unreadWork) {
		c, err := versus(ctx, fewRounds, func() error { return s.run(start) }, file)
		if err != nil {
			return err
		}
		b.add(unreadWork, c.atMost("into a file", 1.2))
	}
	if b.wants(slowlyWork) {
		c, err := versusOf(ctx, fewRounds, func() (time.Duration, error) { return s.runSlowly(start) }, clocked(file))
		if err != nil {
			return err
		}
		b.add(slowlyWork, c.atMost("into a file", 1.2))
	}
	if b.wants(subscribedWork) {
		if err := s.subscribedRow(ctx, b, start, writer); err != nil {
			return err
		}
	}
	if !b.wants(memoryWork) {
		return nil
	}
	took, err := memory()
	if err != nil {
		return err
	}
	b.add(memoryWork, row{
		ours: fmt.Sprintf("%d MiB", took>>20), other: "–", ratio: "–",
		target: fmt.Sprintf("≤ %d MiB", maxOutputMemory>>20), met: took <= maxOutputMemory,
	})
	return nil
}

func (s *service) subscribedRow(ctx context.Context, b *bench, start protocol.ProcessStartParams, writer string) error {
	var whole []float64
	c, err := versusOf(ctx, fewRounds, func() (time.Duration, error) {
		d, n, err := s.runSubscribed(start)
		whole = append(whole, float64(n)/output)
		// What was skipped was not read: as if it were all at this speed.
		return time.Duration(float64(d) * output / float64(max(n, 1))), err
	}, clocked(func() error { return drain(ctx, writer+" | base64 -w 0") }))
	if err != nil {
		return err
	}
	r := c.faster("", 0.5).rates(output, c, "base64")
	if share := middle(whole); share < 1 {
		r.ours += fmt.Sprintf(" of %.0f %%", share*100)
	}
	b.add(subscribedWork, r)
	return nil
}

// drain runs a shell line and reads its output to the end.
func drain(ctx context.Context, line string) error {
	command := exec.CommandContext(ctx, "bash", "-c", line)
	out, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, struct{ io.Reader }{out})
	return errors.Join(err, command.Wait())
}

// runSlowly starts a process and reads its output slowly. It returns how long
// the process ran, as the service tells.
func (s *service) runSlowly(p protocol.ProcessStartParams) (time.Duration, error) {
	id, err := s.subscribe(p)
	if err != nil {
		return 0, err
	}
	for !s.ended(id) {
		if _, _, err := s.next(); err != nil {
			return 0, err
		}
		time.Sleep(slowly)
	}
	_, err = s.call(protocol.MethodProcessUnsubscribe, params(protocol.ProcessParams{SessionID: p.SessionID, ProcessID: id}))
	d := s.exits[id]
	delete(s.exits, id)
	return d, err
}

// runSubscribed starts a process and reads its output to the last byte. It
// returns how long that took, and how many bytes came.
func (s *service) runSubscribed(p protocol.ProcessStartParams) (d time.Duration, n int64, err error) {
	begun := time.Now()
	id, err := s.subscribe(p)
	if err != nil {
		return 0, 0, err
	}
	last := false
	event := s.notified
	defer func() { s.notified = event }()
	s.notified = func(method string, message []byte) {
		if method != protocol.MethodProcessOutput {
			event(method, message)
			return
		}
		_, data, _ := bytes.Cut(message, []byte(`"data":"`))
		n += int64(base64.StdEncoding.DecodedLen(max(bytes.IndexByte(data, '"'), 0)))
		last = bytes.Contains(message[max(0, len(message)-len(head(message))):], []byte(`"eof":true`))
	}
	for !last {
		if _, _, err := s.next(); err != nil {
			return 0, 0, err
		}
	}
	d = time.Since(begun)
	for !s.ended(id) {
		if _, _, err := s.next(); err != nil {
			return 0, 0, err
		}
	}
	delete(s.exits, id)
	return d, n, nil
}

// subscribe starts a process and subscribes to its output.
func (s *service) subscribe(p protocol.ProcessStartParams) (id string, err error) {
	r, err := ask[protocol.ProcessResult](s, protocol.MethodProcessStart, p)
	if err != nil {
		return "", err
	}
	from := int64(0)
	_, err = s.call(protocol.MethodProcessSubscribe, params(protocol.ProcessSubscribeParams{
		SessionID: p.SessionID, ProcessID: r.Process.ID, FromOffset: &from,
	}))
	return r.Process.ID, err
}

// watchMemory begins to watch the memory of the service and of its workers; the
// returned function tells by how much it has grown at most, in bytes.
func watchMemory(s *service) (grown func() (int64, error), err error) {
	pids := []int{s.command.Process.Pid}
	workers, err := workersOf(s.dir)
	if err != nil {
		return nil, err
	}
	pids = append(pids, workers...)
	var before int64
	for _, pid := range pids {
		// The highest that it was begins anew (proc(5)).
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
			return nil, err
		}
		n, err := memoryOf(pid, "VmRSS:")
		if err != nil {
			return nil, err
		}
		before += n
	}
	return func() (int64, error) {
		var most int64
		for _, pid := range pids {
			n, err := memoryOf(pid, "VmHWM:")
			if err != nil {
				return 0, err
			}
			most += n
		}
		return most - before, nil
	}, nil
}

// workersOf are the processes whose command line names the directory.
func workersOf(dir string) (pids []int, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		// One that has ended meanwhile is none.
		if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && bytes.Contains(line, []byte(dir)) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
