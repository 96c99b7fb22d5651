package site

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
	"github.com/caisson-dev/caisson/backends/worker/endpoint"
	"github.com/caisson-dev/caisson/diskfile"
)

// create makes the environment's directory, whole or not at all.
func create(ctx context.Context, r wire.SiteRequest) (wire.SiteReply, error) {
	if err := os.MkdirAll(r.Directory, 0o700); err != nil {
		return wire.SiteReply{}, unusable(r.Directory, err)
	}
	dir := filepath.Join(r.Directory, r.Record.Environment)
	there, err := readRecord(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return wire.SiteReply{}, foreign(dir, err)
	case !ours(there, r.Record):
		return wire.SiteReply{}, notOurs(dir)
	case r.Replace == "" || r.Replace != there.Nonce:
		p := place(dir)
		return wire.SiteReply{Existed: true, Record: &there, Place: &p}, nil
	default:
		if err := remove(ctx, r); err != nil {
			return wire.SiteReply{}, err
		}
	}
	made, err := assemble(r.Directory, r.Record)
	if err != nil {
		return wire.SiteReply{}, unusable(r.Directory, err)
	}
	err = os.Rename(made, dir)
	if err == nil {
		err = diskfile.SyncDir(r.Directory)
	}
	if err != nil {
		err = errors.Join(err, os.RemoveAll(made))
		if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, fs.ErrExist) {
			failure := tool.Errorf(tool.BackendUnavailable, "the directory %s is being made by somebody else: %w", dir, err)
			failure.Retryable = true
			return wire.SiteReply{}, failure
		}
		return wire.SiteReply{}, unusable(r.Directory, err)
	}
	p := place(dir)
	return wire.SiteReply{Record: &r.Record, Place: &p}, nil
}

// assemble makes a complete directory under a name of its own.
func assemble(parent string, r wire.SiteRecord) (_ string, err error) {
	dir := unfinishedIn(parent)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	r.Format, r.CreatedAt = recordFormat, time.Now().UTC()
	if err := writeRecord(dir, r); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, lockName), nil, 0o600); err != nil {
		return "", err
	}
	for _, name := range []string{workspaceName, stateName, socketsName} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return "", err
		}
	}
	return dir, diskfile.SyncDir(dir)
}

// find finds what was created.
func find(r wire.SiteRequest) (wire.SiteReply, error) {
	dir := filepath.Join(r.Directory, r.Record.Environment)
	there, err := readRecord(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return wire.SiteReply{}, lost(dir, "is not there any more")
	case err != nil:
		return wire.SiteReply{}, foreign(dir, err)
	case !ours(there, r.Record):
		return wire.SiteReply{}, notOurs(dir)
	}
	p := place(dir)
	if info, err := os.Stat(p.Workspace); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return wire.SiteReply{}, lost(p.Workspace, "is not there any more")
	} else if err != nil {
		return wire.SiteReply{}, tool.Errorf(tool.BackendUnavailable, "look at the workspace: %w", err).WithPath(p.Workspace)
	}
	return wire.SiteReply{Record: &there, Place: &p}, nil
}

// Enter locks an environment's directory against its removal, until release is
// called, for whoever starts a worker in it. One that is gone is
// [tool.EnvironmentLost].
func Enter(ctx context.Context, dir string) (release func() error, err error) {
	if _, err := readRecord(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, lost(dir, "is not there any more")
	} else if err != nil {
		return nil, foreign(dir, err)
	}
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	lock, err := endpoint.AcquireExisting(ctx, filepath.Join(dir, lockName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, lost(dir, "was removed just now")
	}
	if err != nil {
		return nil, tool.Errorf(tool.BackendUnavailable, "enter the environment: %w", err).WithPath(dir)
	}
	if s := sockets(dir); filepath.Dir(s) != dir {
		// Nobody else may put a socket, or a directory of it, in that place.
		if err := errors.Join(endpoint.PrivateDir(filepath.Dir(s)), endpoint.PrivateDir(s)); err != nil {
			return nil, errors.Join(tool.Errorf(tool.BackendUnavailable, "a place for sockets: %w", err).WithPath(s).
				WithHint("choose a workspace with a shorter path, so that they fit into it"), lock.Unlock())
		}
	}
	return lock.Unlock, nil
}

func lost(path, how string) error {
	return tool.Errorf(tool.EnvironmentLost, "the directory %s %s, and what was in it", path, how).WithPath(path).
		WithHint("delete the session and open a new one")
}

// foreign is the error for a directory whose record cannot be read.
func foreign(dir string, err error) error {
	if errors.Is(err, errForeign) {
		return tool.Errorf(tool.BackendUnavailable, "the directory %s belongs to somebody else: %w", dir, err).WithPath(dir).
			WithHint("nothing was changed; move it away if nobody needs it")
	}
	return tool.Errorf(tool.BackendUnavailable, "look at the environment: %w", err).WithPath(dir)
}

// unusable is the error for a parent in which nothing can be made.
func unusable(dir string, err error) error {
	e := tool.Errorf(tool.BackendUnavailable, "a directory in %s cannot be made: %w", dir, err).WithPath(dir)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return e.WithHint(`set "workspace" in the profile to a directory of that machine that the account may write, such as one in its home`)
	case errors.Is(err, syscall.EROFS):
		return e.WithHint(`the file system is read-only: set "workspace" in the profile to a directory that can be written`)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return e.WithHint("the disk, or the account's share of it, is full: make room there")
	}
	return e.WithHint(`is "workspace" in the profile a directory of that machine?`)
}
