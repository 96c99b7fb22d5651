package process

import (
	"context"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// Read returns output. Without an offset it gives the tail, at once. With one
// it reads forward, waiting up to o.Wait, at most [MaxReadWait], for output at
// that offset and then o.MinDwell for more of it; TimedOut says that none came.
// It does not wait for output that will not come. It returns at most
// [MaxReadBytes]. The end of ctx ends the waiting with an error.
func (m *Manager) Read(ctx context.Context, id string, o tool.ReadOptions) (tool.ReadResult, error) {
	began := time.Now()
	p, err := m.find(id)
	if err != nil {
		return tool.ReadResult{}, err
	}
	size := o.MaxBytes
	if size <= 0 {
		size = DefaultReadBytes
	}
	size = min(size, MaxReadBytes)
	total, base, _ := p.out.state()
	offset := max(base, total-int64(size))
	timedOut := false
	if o.OffsetBytes != nil {
		if offset = *o.OffsetBytes; offset < 0 {
			return tool.ReadResult{}, tool.Errorf(tool.InvalidParams, "the offset %d is negative", offset).WithPath("OffsetBytes")
		}
		if timedOut, err = p.awaitOutput(ctx, offset, size, o); err != nil {
			return tool.ReadResult{}, err
		}
	}
	// Before the total: a record that says that the output is at its end must not
	// stand beside a total from before that.
	rec := p.snapshot()
	total, _, closed := p.out.state()
	most := int(min(int64(size), max(0, total-offset)))
	var buf []byte
	if o.Buffer != nil {
		buf = o.Buffer(most)
	} else {
		buf = make([]byte, most)
	}
	start, n, err := p.out.readAt(buf, offset)
	if err != nil {
		return tool.ReadResult{}, tool.Errorf(tool.Internal, "read the output of process %s: %w", id, err)
	}
	return tool.ReadResult{
		Process: rec, Output: buf[:n], StartOffset: start, EndOffset: start + int64(n),
		TotalBytes: total, Truncated: start > offset, TimedOut: timedOut && n == 0 && !closed,
		Duration: time.Since(began),
	}, nil
}

// awaitOutput waits for output at offset, and then for more.
func (p *proc) awaitOutput(ctx context.Context, offset int64, size int, o tool.ReadOptions) (timedOut bool, err error) {
	if timedOut, err = p.awaitBeyond(ctx, offset, min(o.Wait, MaxReadWait)); timedOut || err != nil {
		return timedOut, err
	}
	dwell := time.Now().Add(min(o.MinDwell, MaxReadWait))
	for {
		total, _, closed := p.out.state()
		rest := time.Until(dwell)
		if closed || rest <= 0 || total-offset >= int64(size) {
			return false, nil
		}
		if over, err := p.awaitBeyond(ctx, total, rest); over || err != nil {
			return false, err
		}
	}
}

// awaitBeyond waits until there is output after offset or no more will come.
func (p *proc) awaitBeyond(ctx context.Context, offset int64, wait time.Duration) (timedOut bool, err error) {
	changed := p.out.changed(offset)
	if isClosed(changed) || wait <= 0 {
		return false, nil
	}
	expired, free := after(wait)
	defer free()
	for {
		select {
		case <-changed:
		case <-expired:
			return true, nil
		case <-ctx.Done():
			return false, ended(ctx, "waiting for output of "+p.id)
		}
		// Offsets beyond what there is may need more than one piece.
		if changed = p.out.changed(offset); isClosed(changed) {
			return false, nil
		}
	}
}
