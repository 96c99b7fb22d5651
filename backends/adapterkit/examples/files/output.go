//go:build unix

package main

import (
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// maxOutput is how much of each stream a foreground command returns, in bytes, and
// maxRead how much one read of a process does.
const (
	maxOutput = 512 << 10
	maxRead   = 1 << 20
)

// limited keeps the head of what is written.
type limited struct {
	mu   sync.Mutex
	data []byte
	cut  bool
}

func (l *limited) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	room := min(len(p), maxOutput-len(l.data))
	l.data = append(l.data, p[:room]...)
	l.cut = l.cut || room < len(p)
	return len(p), nil
}

func (l *limited) take() (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return text(l.data), l.cut
}

func text(data []byte) string { return strings.ToValidUTF8(string(data), "�") }

// head is the beginning of a process's output.
func (r *registry) head(id string, most int64) (string, bool, error) {
	f, err := os.Open(r.outputFile(id))
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	cut := int64(len(data)) > most
	if cut {
		data = data[:most]
	}
	return text(data), cut, err
}

// pollEvery is how often a read that waits looks for more.
const pollEvery = 20 * time.Millisecond

// read reads output: the tail without an offset, else forward from it, waiting for
// some.
func (r *registry) read(ctx context.Context, id string, o tool.ReadOptions) (tool.ReadResult, error) {
	begun := time.Now()
	p, err := r.find(id)
	if err != nil {
		return tool.ReadResult{}, err
	}
	f, err := os.Open(r.outputFile(id))
	if err != nil {
		return tool.ReadResult{}, err
	}
	defer f.Close()
	out := tool.ReadResult{}
	most := int64(min(o.MaxBytes, maxRead))
	if o.OffsetBytes != nil {
		if out.TimedOut, err = r.await(ctx, p, f, *o.OffsetBytes, o.Wait); err != nil {
			return out, err
		}
	}
	info, err := f.Stat()
	if err != nil {
		return out, err
	}
	out.TotalBytes = info.Size()
	out.StartOffset = max(0, out.TotalBytes-most)
	if o.OffsetBytes != nil {
		out.StartOffset = min(*o.OffsetBytes, out.TotalBytes)
	}
	out.Output = make([]byte, min(most, out.TotalBytes-out.StartOffset))
	if _, err := f.ReadAt(out.Output, out.StartOffset); err != nil && err != io.EOF {
		return out, err
	}
	out.EndOffset = out.StartOffset + int64(len(out.Output))
	out.Process, out.Duration = r.snapshot(p), time.Since(begun)
	return out, nil
}

// await waits until there is output beyond offset, the process has ended, or the
// time is over, which it reports.
func (r *registry) await(ctx context.Context, p *process, f *os.File, offset int64, wait time.Duration) (timedOut bool, err error) {
	over := time.NewTimer(wait)
	defer over.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		info, err := f.Stat()
		if err != nil || info.Size() > offset {
			return false, err
		}
		select {
		case <-p.ended:
			return false, nil
		case <-tick.C:
		case <-over.C:
			return wait > 0, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}
