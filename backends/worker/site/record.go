package site

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
	"github.com/caisson-dev/caisson/backends/worker"
	"github.com/caisson-dev/caisson/backends/worker/endpoint"
	"github.com/caisson-dev/caisson/diskfile"
)

// The parts of an environment's directory.
const (
	recordName    = "environment.json"
	lockName      = "lock"
	workspaceName = wire.SiteWorkspace
	stateName     = "state"
	socketsName   = "run"
)

// recordFormat is the version of the record and of the directory's layout.
const recordFormat = 1

// unfinished begins the names of directories that are not yet complete, or not any more.
const unfinished = ".caisson-new-"

// unfinishedIn is a new name of such a directory.
func unfinishedIn(parent string) string {
	return filepath.Join(parent, unfinished+rand.Text())
}

// errForeign is a directory without a record that could be ours.
var errForeign = errors.New("it has no record of Caisson's")

// place is where the parts of the environment in dir are.
func place(dir string) wire.SitePlace {
	return wire.SitePlace{
		Directory: dir,
		Workspace: filepath.Join(dir, workspaceName),
		State:     filepath.Join(dir, stateName),
		Sockets:   sockets(dir),
	}
}

// Locate fills in where the worker that o describes listens and keeps its state:
// in its environment's directory, unless that is said already.
func Locate(o *worker.Options) {
	p := place(o.Site)
	if o.Listen == "" {
		o.Listen = endpoint.SocketPath(p.Sockets, o.Session)
	}
	if o.State == "" {
		o.State = p.State
	}
}

// sockets is the directory of the workers' sockets: in dir, or, where that makes
// a path too long for a socket, one of the user's own in the system's temporary
// directory. It is the same whoever computes it.
func sockets(dir string) string {
	in := filepath.Join(dir, socketsName)
	if len(endpoint.SocketPath(in, "")) <= endpoint.MaxSocketPath {
		return in
	}
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join("/tmp", "caisson-"+strconv.Itoa(os.Geteuid()), hex.EncodeToString(sum[:8]))
}

// readRecord reads the record of the directory. Its errors are [fs.ErrNotExist]
// where there is no directory and errForeign where it is none of ours.
func readRecord(dir string) (wire.SiteRecord, error) {
	var r wire.SiteRecord
	info, err := os.Lstat(dir)
	if err != nil {
		return r, err
	}
	if !info.IsDir() || !diskfile.OwnedByUs(info) {
		return r, fmt.Errorf("%w: it is no directory of this user", errForeign)
	}
	f, info, err := diskfile.Open(filepath.Join(dir, recordName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(dir); err != nil {
			return r, err // it is gone meanwhile
		}
		return r, errForeign
	case errors.Is(err, diskfile.ErrNotRegular):
		return r, noFile()
	case err != nil:
		return r, err
	}
	defer f.Close()
	if !diskfile.OwnedByUs(info) {
		return r, noFile()
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(raw, &r); err != nil || r.Format != recordFormat {
		return r, fmt.Errorf("%w: %s is of another format", errForeign, recordName)
	}
	return r, nil
}

func noFile() error { return fmt.Errorf("%w: %s is no file of this user", errForeign, recordName) }

// ours reports whether r is the record of the same store's environment.
func ours(r, wanted wire.SiteRecord) bool {
	return r.Environment == wanted.Environment && r.Store == wanted.Store
}

func notOurs(dir string) error {
	return tool.Errorf(tool.BackendUnavailable, "the directory %s belongs to somebody else", dir).WithPath(dir).
		WithHint("look at its %s; nothing was changed", recordName)
}

// writeRecord writes the record so that it survives a crash.
func writeRecord(dir string, r wire.SiteRecord) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return writeSynced(filepath.Join(dir, recordName), bytes.NewReader(append(raw, '\n')), 0o600)
}

func writeSynced(path string, from io.Reader, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
