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
	rushingWork    = "output of 1 GiB, as it comes"
	memoryWork     = "memory for output of 1 GiB"
)

const (
	output = 1 << 30
	// slowly is the pause after each message of a client that reads slowly.
	slowly = 20 * time.Millisecond
	// maxOutputMemory is what 1 GiB of output may take of memory.
	maxOutputMemory = 64 << 20
	// portion is what a writer that waits for its reader writes at a time, and
	// ahead how many of them it may be ahead: less than is kept of its output.
	portion = 16 << 20
	ahead   = 3
)

// localOutput compares a process that writes, read by nobody, slowly or to the
// last byte, with one that writes into a file, and with base64 over a pipe.
func localOutput(ctx context.Context, b *bench, s *service, id string) (err error) {
	if !slices.ContainsFunc([]string{unreadWork, slowlyWork, subscribedWork, rushingWork, memoryWork}, b.wants) {
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
	if err := s.subscribedRows(ctx, b, start, writer); err != nil {
		return err
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

// subscribedRows are about a client that reads all output as fast as it can: of a
// writer that waits for its reader, so that all of it comes, and of one that
// waits for nobody, of whose output comes what is still kept.
func (s *service) subscribedRows(ctx context.Context, b *bench, rushing protocol.ProcessStartParams, writer string) error {
	waiting := rushing
	waiting.Command = fmt.Sprintf("while read -r; do head -c %d /dev/zero; done", portion)
	for _, r := range []struct {
		work  string
		start protocol.ProcessStartParams
		waits bool
	}{{subscribedWork, waiting, true}, {rushingWork, rushing, false}} {
		if !b.wants(r.work) {
			continue
		}
		var rates, shares []float64
		c, err := versusOf(ctx, fewRounds, func() (time.Duration, error) {
			d, n, err := s.runSubscribed(r.start, r.waits)
			rates = append(rates, float64(n)/1e6/d.Seconds())
			shares = append(shares, 100*float64(output-n)/output)
			return d, err
		}, clocked(func() error { return drain(ctx, writer+" | base64 -w 0") }))
		if err != nil {
			return err
		}
		// Only what came counts, and gaps are told, or a failure.
		gaps := middle(shares)
		row := c.faster("", 0.5).rates(output, c, "base64")
		row.ours = fmt.Sprintf("%.0f MB/s", middle(rates))
		if r.waits {
			row.met = row.met && slices.Max(shares) == 0
		} else {
			row.ratio, row.target = "–", "–"
		}
		if gaps > 0 {
			row.ours += fmt.Sprintf(", %.0f %% gap", gaps)
		}
		b.add(r.work, row)
	}
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
// returns how long that took, and how many bytes came. A process that waits gets a
// line for each portion that it may write.
func (s *service) runSubscribed(p protocol.ProcessStartParams, waits bool) (d time.Duration, n int64, err error) {
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
		if _, data, found := bytes.Cut(message, []byte(`"data":"`)); found {
			data, _, _ = bytes.Cut(data, []byte(`"`))
			padding := len(data) - len(bytes.TrimRight(data, "="))
			n += int64(base64.StdEncoding.DecodedLen(len(data)) - padding)
		}
		last = bytes.Contains(message[max(0, len(message)-len(head(message))):], []byte(`"eof":true`))
	}
	asked := int64(0)
	for !last {
		for waits && asked < output && asked < n+ahead*portion {
			asked += portion
			if err := s.allow(p.SessionID, id, asked == output); err != nil {
				return 0, 0, err
			}
		}
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

// allow gives a process that waits a line; the last one is followed by the end of
// the input.
func (s *service) allow(session, process string, last bool) error {
	line := protocol.ProcessWriteParams{SessionID: session, ProcessID: process, Data: "\n"}
	if _, err := s.call(protocol.MethodProcessWrite, params(line)); err != nil || !last {
		return err
	}
	_, err := s.call(protocol.MethodProcessCloseStdin, params(protocol.ProcessParams{SessionID: session, ProcessID: process}))
	return err
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
