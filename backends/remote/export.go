package remote

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// Export streams a snapshot: as one body where both ends can, else chunk by
// chunk. Reading fails when the far end sends less than it announced, more than
// [maxExport], or an empty chunk that is not the last. Close closes the export
// at the far end, whatever has happened before.
func (e *Environment) Export(ctx context.Context, token string) (io.ReadCloser, error) {
	c, err := e.connected(ctx)
	if err != nil {
		return nil, about("reading an export", err)
	}
	x := &export{e: e, c: c, ctx: ctx, token: token}
	if !c.Has(wire.CapBulk) {
		x.src = &chunks{x: x}
		return x, nil
	}
	size, body, err := c.Stream(ctx, wire.MethodExportStream, wire.Export{Token: token})
	if err != nil {
		return nil, errors.Join(about("reading an export", err), x.release())
	}
	x.src = body
	if size > maxExport {
		return nil, errors.Join(tooLarge(), x.Close())
	}
	return x, nil
}

func tooLarge() error {
	return tool.Errorf(tool.ArtifactTooLarge, "an export is larger than the %d MiB that are taken", maxExport>>20)
}

// export is one export that is being read. It stays with its connection: a
// token means nothing on another one.
type export struct {
	e      *Environment
	c      *connection
	ctx    context.Context
	token  string
	src    io.ReadCloser
	closed bool
}

func (x *export) Read(p []byte) (int, error) {
	n, err := x.src.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = about("reading an export", x.c.told(err))
	}
	return n, err
}

// Close ends the reading and closes the export.
func (x *export) Close() error {
	if x.closed {
		return nil
	}
	x.closed = true
	return errors.Join(x.src.Close(), x.release())
}

// release tells the far end that the snapshot is not needed any more. It does so
// after ctx has ended, too. A far end that does not confirm it soon is not waited for.
func (x *export) release() error {
	if x.c.Err() != nil {
		return nil // the far end lets go of everything with the connection, or when its session ends
	}
	closed := x.e.closeExport(x.c, wire.Export{Token: x.token})
	patience := time.NewTimer(closePatience)
	defer patience.Stop()
	select {
	case <-closed:
	case <-patience.C:
		x.e.log.Debug("an export is being closed for long; nobody waits for it")
	}
	return nil
}

// closeExport closes an export, and tells when that is over.
func (e *Environment) closeExport(c *connection, export wire.Export) <-chan struct{} {
	over := make(chan struct{})
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.detached || e.closing.Load() >= maxClosing {
		close(over) // it ends with the connection
		return over
	}
	e.closing.Add(1)
	e.goroutines.Go(func() {
		defer close(over)
		defer e.closing.Add(-1)
		ctx, cancel := context.WithTimeout(e.life, closeTimeout)
		defer cancel()
		if _, err := c.Call(ctx, wire.MethodExportClose, export, nil); err != nil && e.life.Err() == nil {
			e.log.Warn("closing an export", "error", err)
		}
	})
	return over
}

// chunks reads an export by export/read.
type chunks struct {
	x      *export
	offset int64
	rest   []byte
	err    error
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		if c.err != nil {
			return 0, c.err
		}
		if c.err = c.next(); len(c.rest) == 0 {
			return 0, c.err
		}
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// next asks for a chunk. Its error counts once what came before is read.
func (c *chunks) next() error {
	ctx, cancel := context.WithTimeout(c.x.ctx, requestTimeout)
	defer cancel()
	reply, err := c.x.c.Call(ctx, wire.MethodExportRead, wire.ExportRead{Token: c.x.token, Offset: c.offset}, nil)
	if err != nil {
		return err
	}
	var chunk wire.ExportData
	if err := reply.Decode(&chunk); err != nil {
		return err
	}
	c.offset += int64(len(chunk.Data))
	switch n := len(chunk.Data); {
	case n > wire.ExportChunk:
		return foreign("export/read", "a chunk of %d bytes; at most %d are allowed", n, wire.ExportChunk)
	case c.offset > maxExport:
		return tooLarge()
	case n == 0 && !chunk.EOF:
		return foreign("export/read", "an empty chunk that is not the last")
	}
	c.rest = chunk.Data
	if chunk.EOF {
		return io.EOF
	}
	return nil
}

func (c *chunks) Close() error {
	c.rest, c.err = nil, errors.New("read after Close")
	return nil
}
