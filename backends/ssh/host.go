package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/remote"
	"github.com/caisson-dev/caisson/backends/ssh/connection"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/upload"
)

// host makes and reaches the directory of one environment, for package remote.
type host struct {
	backend *Backend

	mu sync.Mutex
	// nonce is that of the directory that the session was in first.
	nonce string
}

var _ remote.Host = (*host)(nil)

// reach connects to the machine that a profile names. The connection must be
// closed.
func (b *Backend) reach(ctx context.Context, p profile.Profile, progress backends.Progress) (*connection.Conn, machine, string, error) {
	route, err := b.pool.Resolve(ctx, destination(p))
	if err != nil {
		return nil, machine{}, "", err
	}
	conn, err := b.pool.Dial(ctx, route, progress)
	if err != nil {
		return nil, machine{}, "", err
	}
	return conn, machine{conn, route.String()}, route.Key(), nil
}

// withWorker runs do with the worker's program on the machine. When it turns out
// that the program is not there any more, or another one, it is put there and do
// runs again.
func (b *Backend) withWorker(ctx context.Context, m machine, key string, p profile.Profile, progress backends.Progress, do func(placement) error) error {
	for first := true; ; first = false {
		placed, err := b.worker(ctx, m, key, p, progress)
		if err != nil {
			return m.tell(err, p)
		}
		err = do(placed)
		var not *notStarted
		if first && placed.sum != "" && (errors.As(err, &not) || tool.KindOf(err) == tool.ProtocolMismatch) {
			b.forget(key, p)
			continue
		}
		return m.tell(err, p)
	}
}

// tell makes an error for people of a program that could not be started.
func (m machine) tell(err error, p profile.Profile) error {
	var not *notStarted
	var unfit *unfit
	switch {
	case errors.As(err, &not) && p.Worker != "":
		return tool.Errorf(tool.BackendUnavailable, "the profile's worker does not start: %w", err).WithPath(p.Worker).
			WithHint("leave the member worker out, and Caisson brings its own")
	case errors.As(err, &not):
		return tool.Errorf(tool.BackendUnavailable, "the worker does not start: %w", err).
			WithHint("try again; look at what starts when the account logs in there")
	case errors.As(err, &unfit):
		return tool.Errorf(tool.BackendUnavailable, "the worker does not start on %s: %w", m.name, err).
			WithHint("try again")
	}
	return err
}

// ask asks the site on the binding's machine something. sent reports whether the
// machine may have done it, when there is an error.
func (h *host) ask(ctx context.Context, b backends.Binding, p backends.Progress, timeout time.Duration, r remote.SiteRequest) (reply remote.SiteReply, sent bool, err error) {
	conn, m, key, err := h.backend.reach(ctx, b.Profile, p)
	if err != nil {
		return reply, false, err
	}
	defer conn.Close()
	r.Directory = b.Profile.Workspace
	err = h.backend.withWorker(ctx, m, key, b.Profile, p, func(placed placement) error {
		r.Sum, sent = placed.sum, true
		var err error
		reply, err = m.site(ctx, timeout, placed.program, r)
		return err
	})
	return reply, sent, err
}

// record is what is written into the directory of a binding's environment.
func (h *host) record(b backends.Binding) remote.SiteRecord {
	r := remote.SiteRecord{
		Environment: b.Environment, Store: b.Store, Session: b.Session, Nonce: random(),
		Shared: b.Profile.Shared, Persistent: b.Profile.Persistent,
	}
	r.Owner.Host, r.Owner.PID, r.Owner.Start = h.backend.owner.Host, h.backend.owner.PID, h.backend.owner.Start
	return r
}

// ownerOf is who made a directory.
func ownerOf(r remote.SiteRecord) remote.Owner {
	return remote.Owner{Host: r.Owner.Host, PID: r.Owner.PID, Start: r.Owner.Start}
}

// Create makes the environment's directory. When it fails, or ctx ends, none is
// left. What a creation that was cut off has left under the environment's name is
// removed before: nothing was done in it, or it would be marked provisioned.
func (h *host) Create(ctx context.Context, b backends.Binding, p backends.Progress) error {
	r := remote.SiteRequest{
		Action: remote.SiteCreate, Record: h.record(b),
		ShutdownMS: b.Profile.ShutdownTimeout.Milliseconds(), OlderThanMS: workerAge.Milliseconds(),
	}
	for {
		reply, sent, err := h.ask(ctx, b, p, answerTimeout+b.Profile.ShutdownTimeout, r)
		if err != nil {
			switch {
			case sent:
				h.undo(ctx, b, r.Record.Nonce)
			case r.Replace == "":
				err = backends.NothingMade(err)
			}
			return err
		}
		if !reply.Existed {
			h.strange(r.Record.Nonce)
			return h.fill(ctx, b, r.Record, p)
		}
		owner := ownerOf(*reply.Record)
		if owner != h.backend.owner && !owner.Dead() || r.Replace != "" {
			failure := tool.Errorf(tool.BackendUnavailable, "the directory %s is being made by process %d on %s", remote.SiteDirectory(b), owner.PID, owner.Host).
				WithHint("wait for it, or remove the directory on that machine")
			failure.Retryable = true
			return failure
		}
		r.Replace = reply.Record.Nonce
	}
}

// fill sends the opened folder into the environment that was just made, where the
// profile says so. When that fails the environment is removed again.
func (h *host) fill(ctx context.Context, b backends.Binding, record remote.SiteRecord, p backends.Progress) error {
	if b.Profile.WorkspaceSource != sourceCopy {
		return nil
	}
	err := h.send(ctx, b, record, p)
	if err != nil {
		h.undo(ctx, b, record.Nonce)
	}
	return err
}

func (h *host) send(ctx context.Context, b backends.Binding, record remote.SiteRecord, p backends.Progress) error {
	conn, m, key, err := h.backend.reach(ctx, b.Profile, p)
	if err != nil {
		return err
	}
	defer conn.Close()
	return h.backend.withWorker(ctx, m, key, b.Profile, p, func(placed placement) error {
		archive, size, err := upload.Open(ctx, b.WorkspaceFolder, upload.Options{Report: p.Report})
		if err != nil {
			return err
		}
		defer archive.Close()
		body := &watchedReader{Reader: archive}
		r := remote.SiteRequest{Action: remote.SiteFill, Sum: placed.sum, Directory: b.Profile.Workspace, Record: record, Replace: record.Nonce}
		if _, err := m.siteWith(ctx, fillTimeout, placed.program, r, body); err != nil {
			if why := body.err.Load(); why != nil {
				// What the machine says of an archive that broke off says nothing.
				return *why
			}
			return err
		}
		p.Report(fmt.Sprintf("the folder is on %s: %d entries, %d MiB", m.name, size.Entries, size.Bytes>>20))
		return nil
	})
}

// watchedReader remembers why reading failed.
type watchedReader struct {
	io.Reader
	err atomic.Pointer[error] // the connection may read on while its call returns
}

func (r *watchedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) {
		r.err.Store(&err)
	}
	return n, err
}

// undo removes a directory that was perhaps made though nobody was told so.
func (h *host) undo(ctx context.Context, b backends.Binding, nonce string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	r := remote.SiteRequest{Action: remote.SiteRemove, Record: h.record(b), Replace: nonce}
	if _, _, err := h.ask(ctx, b, nil, cleanupTimeout, r); err != nil {
		h.backend.log.Warn("an environment's directory may be left for prune", "directory", remote.SiteDirectory(b), "error", err)
	}
}

// strange reports whether the directory with the nonce is another one than that
// which the session was in first: one that a session which shares the environment
// has made since.
func (h *host) strange(nonce string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.nonce == "" {
		h.nonce = nonce
	}
	return h.nonce != nonce
}

// Attach finds the environment's directory.
func (h *host) Attach(ctx context.Context, b backends.Binding) error {
	reply, _, err := h.ask(ctx, b, nil, answerTimeout, remote.SiteRequest{Action: remote.SiteFind, Record: h.record(b)})
	if err != nil {
		return err
	}
	if reply.Record == nil || h.strange(reply.Record.Nonce) {
		return tool.Errorf(tool.EnvironmentLost, "the directory %s was removed and made anew by others, and what was in it is gone", remote.SiteDirectory(b)).
			WithHint("delete the session and open a new one")
	}
	return nil
}

// Dial starts "caisson attach" on the machine.
func (h *host) Dial(ctx context.Context, b backends.Binding) (remote.Stream, error) {
	conn, m, key, err := h.backend.reach(ctx, b.Profile, nil)
	if err != nil {
		return remote.Stream{}, err
	}
	mark := random()
	var line string
	placed, err := h.backend.worker(ctx, m, key, b.Profile, nil)
	if err == nil {
		line, err = commandLine(runProgram, attachArgs(b, placed, mark)...)
	}
	if err != nil {
		return remote.Stream{}, errors.Join(m.tell(err, b.Profile), conn.Close())
	}
	stream, err := conn.Exec(ctx, line)
	if err != nil {
		return remote.Stream{}, errors.Join(err, conn.Close())
	}
	return remote.Stream{ReadWriteCloser: &channel{Stream: stream, conn: conn, machine: m, gate: newGate(mark)}, Mark: mark}, nil
}

// attachArgs are the command that reaches, and starts when none runs, the
// session's worker. The mode and the ceiling are fixed there, by the host, before
// a frame can ask for more. Nothing secret is in it.
func attachArgs(b backends.Binding, placed placement, mark string) []string {
	args := []string{
		placed.program, "attach",
		"--mark=" + mark,
		"--site=" + remote.SiteDirectory(b),
		"--session=" + b.Session,
	}
	if !b.Profile.Persistent {
		args = append(args, "--remove-when-idle")
	}
	return append(args, remote.WorkerFlags(b.Profile)...)
}

// channel is the standard streams of the attach command, with the connection
// that they need.
type channel struct {
	*connection.Stream
	conn    *connection.Conn
	machine machine
	gate    *gate
}

// Read reads the command's output. When the command failed, the error at its end
// is not io.EOF but says how.
func (c *channel) Read(p []byte) (int, error) {
	n, err := c.Stream.Read(p)
	c.gate.saw(p[:n], err)
	if n == 0 && errors.Is(err, io.EOF) {
		return 0, c.end()
	}
	return n, err
}

// Write writes to the command, once it has said that it is there.
func (c *channel) Write(p []byte) (int, error) {
	<-c.gate.open
	return c.Stream.Write(p)
}

// end is the error at the end of the output.
func (c *channel) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), exitTimeout)
	defer cancel()
	exit, err := c.Wait(ctx)
	if err != nil || exit.Code == 0 {
		return io.EOF
	}
	said := said(connection.Result{Exit: exit, Stderr: c.Stderr()})
	if exit.Code == exitGone {
		return tool.Errorf(tool.EnvironmentLost, "the environment on %s is gone: %s", c.machine.name, said).
			WithHint("delete the session and open a new one")
	}
	failure := tool.Errorf(tool.BackendUnavailable, "the attach command on %s ended with %s: %s", c.machine.name, exit, said).
		WithHint("look at the worker's log in the environment's directory on that machine")
	failure = explain(failure, said)
	failure.Retryable = exit.Signal != "" // somebody ended it: another one is as good
	return failure
}

// Close ends the channel. The command learns of it by the end of its input.
func (c *channel) Close() error {
	err := errors.Join(c.Stream.Close(), c.conn.Close())
	c.gate.lift()
	return err
}

// Remove ends the environment's workers and removes its directory.
func (h *host) Remove(ctx context.Context, b backends.Binding) error {
	r := remote.SiteRequest{Action: remote.SiteRemove, Record: h.record(b), ShutdownMS: b.Profile.ShutdownTimeout.Milliseconds()}
	_, _, err := h.ask(ctx, b, nil, answerTimeout+b.Profile.ShutdownTimeout, r)
	return err
}
