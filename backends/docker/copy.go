package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/upload"
)

// sourceCopy is the workspace_source of a container that gets the opened folder.
const sourceCopy = "copy"

// send fills the workspace of a container that has not been started with the
// opened folder. A container is sent to once, as a part of its creation: one
// that has been started is never written over.
func (h *host) send(ctx context.Context, b backends.Binding, id string, uid, gid int, p backends.Progress) error {
	archive, size, err := upload.Open(ctx, b.WorkspaceFolder, upload.Options{UID: uid, GID: gid, Report: p.Report})
	if err != nil {
		return err
	}
	defer archive.Close()
	body := &watchedReader{Reader: archive}
	if err := h.engine.put(ctx, id, b.Profile.Workspace, body); err != nil {
		if why := body.err.Load(); why != nil {
			// What the engine says of an archive that broke off says nothing.
			return *why
		}
		return err
	}
	p.Report(fmt.Sprintf("the folder is in the container: %d entries, %d MiB", size.Entries, size.Bytes>>20))
	return nil
}

// watchedReader remembers why reading failed.
type watchedReader struct {
	io.Reader
	err atomic.Pointer[error] // the library may read on while its call returns
}

func (r *watchedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) {
		r.err.Store(&err)
	}
	return n, err
}
