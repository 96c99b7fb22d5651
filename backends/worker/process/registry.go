package process

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/endpoint"
)

// What the registry's directory holds beside the journal: the lock of the
// living Manager, its name, and the output of processes.
const (
	lockFile     = "lock"
	instanceFile = "instance"
	journalFile  = "journal"
	outputSuffix = ".output"
	endSuffix    = ".end"
	idPrefix     = "p-"
)

// notOurs is the hint of a file that cannot be read for what it is.
const notOurs = "the file is damaged or not this program's: move it away"

// registry is a session's directory of processes, locked.
type registry struct {
	dir, temp string
	lock      *endpoint.Lock
	journal   *journal
	here      identity
	ended     bool // what a dead worker left running was killed
}

// openRegistry makes the directories where they are missing, and locks, which it
// tries at least once and until ctx ends.
func openRegistry(ctx context.Context, stateDir, session string) (*registry, error) {
	base := filepath.Join(stateDir, "sessions", session)
	r := &registry{dir: filepath.Join(base, "processes"), temp: filepath.Join(base, "tmp"), here: here()}
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return nil, tool.Errorf(tool.Internal, "make the process registry: %w", err).WithPath(r.dir).WithDisk(base)
	}
	var err error
	if r.lock, err = endpoint.Acquire(ctx, filepath.Join(r.dir, lockFile)); err != nil {
		if errors.Is(err, endpoint.ErrLocked) {
			return nil, tool.Errorf(tool.SessionBusy, "another worker serves session %s: %w", session, err)
		}
		return nil, tool.Errorf(tool.Internal, "lock the process registry: %w", err).WithDisk(base)
	}
	return r, nil
}

// Settle makes an end of what a worker that died has left of a session: its
// processes that still run are killed, with what descends from them, and their
// records say that they are lost. It returns those. While a worker serves the
// session, which may be about to end, it waits; when ctx ends first it fails with
// [tool.SessionBusy] and touches nothing.
func Settle(ctx context.Context, stateDir, session string) ([]tool.Process, error) {
	if _, err := os.Stat(filepath.Join(stateDir, "sessions", session, "processes")); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	r, err := openRegistry(ctx, stateDir, session)
	if err != nil {
		return nil, err
	}
	_, lost, err := r.settle()
	return lost, errors.Join(err, r.close())
}

// End is [Settle] for whoever has no use for the records, as it removes them next, which
// may be what makes room: where the disk is too full for what they would say, it is enough
// that the processes have ended. The next Settle writes it.
func End(ctx context.Context, stateDir, session string) error {
	if _, err := os.Stat(filepath.Join(stateDir, "sessions", session, "processes")); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	r, err := openRegistry(ctx, stateDir, session)
	if err != nil {
		return err
	}
	_, _, err = r.settle()
	if r.ended && tool.IsDiskFull(err) {
		err = nil
	}
	return errors.Join(err, r.close())
}

// close lets go of the registry.
func (r *registry) close() error {
	var err error
	if r.journal != nil {
		err = r.journal.close()
	}
	return errors.Join(err, r.lock.Unlock())
}

// settle opens the journal and settles the records of a dead worker. It
// returns all records, and the processes that are lost now.
func (r *registry) settle() (records []record, lost []tool.Process, err error) {
	path := filepath.Join(r.dir, journalFile)
	if r.journal, records, err = openJournal(path); err != nil {
		return nil, nil, tool.Errorf(tool.Internal, "read the process registry %s: %w", path, err).WithPath(path).
			WithHint(notOurs)
	}
	if err := r.killLeftovers(records); err != nil {
		return nil, nil, err
	}
	r.ended = true
	known := make(map[string]bool, len(records))
	for i := range records {
		rec := &records[i]
		known[rec.ID] = true
		running := !rec.Status.Terminal()
		if !running && rec.OutputClosed {
			continue
		}
		if err := r.lose(rec); err != nil {
			return nil, nil, err
		}
		if running {
			lost = append(lost, rec.Process)
		}
	}
	return records, lost, errors.Join(r.sweep(known), removeIfThere(filepath.Join(r.dir, instanceFile)))
}

// lose settles one record of a dead worker: what had ended keeps its end.
func (r *registry) lose(rec *record) error {
	out, err := openOutput(filepath.Join(r.dir, rec.ID))
	if err != nil {
		return tool.Errorf(tool.Internal, "look at the output of %s: %w", rec.ID, err)
	}
	rec.TotalBytes, rec.LogBaseOffset, _ = out.state()
	rec.UpdatedAt, rec.OutputClosed = time.Now().UTC(), true
	if !rec.Status.Terminal() {
		rec.Status, rec.TerminalCause = tool.ProcessFailed, tool.CauseLost
		rec.StoppedAt = rec.UpdatedAt
		rec.LastError = "the worker that ran it has died"
	}
	if err := r.journal.put(*rec); err != nil {
		return r.unwritten(err)
	}
	return nil
}

// unwritten is the error of a change that could not be written down.
func (r *registry) unwritten(err error) *tool.Error {
	return tool.Errorf(tool.Internal, "write to the process registry: %w", err).WithPath(r.dir).
		WithHint("look whether the disk of %s is read-only", r.dir).WithDisk(r.dir)
}

// sweep removes output that belongs to no record: of foreground commands.
func (r *registry) sweep(known map[string]bool) error {
	files, err := os.ReadDir(r.dir)
	if err != nil {
		return tool.Errorf(tool.Internal, "read the process registry: %w", err)
	}
	for _, f := range files {
		id, _, ok := strings.Cut(f.Name(), ".")
		if ok && strings.HasPrefix(id, idPrefix) && !known[id] {
			if err := removeIfThere(filepath.Join(r.dir, f.Name())); err != nil {
				return tool.Errorf(tool.Internal, "clean the process registry: %w", err)
			}
		}
	}
	return nil
}

// readPlain reads a small file of the registry.
func readPlain(path string) ([]byte, error) {
	f, err := endpoint.OpenPlain(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSmall))
	return b, errors.Join(err, f.Close())
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
