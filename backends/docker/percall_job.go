package docker

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/remote"
	"github.com/caisson-dev/caisson/backends/tool"
)

var _ backends.JobRunner = (*perCall)(nil)

// RunJob runs a job in a container of its own. What it left is taken out of the
// container before that ends, and waits on this side to be fetched.
func (e *perCall) RunJob(ctx context.Context, r backends.JobRequest) (result backends.JobResult, err error) {
	done, err := e.begin()
	if err != nil {
		return result, err
	}
	defer done()
	ctx, let := context.WithCancelCause(ctx)
	defer let(nil)
	defer context.AfterFunc(e.life, func() { let(context.Cause(e.life)) })()
	err = e.inContainer(ctx, func(env *remote.Environment) (err error) {
		if result, err = env.RunJob(ctx, r); err != nil {
			return err
		}
		for i := range result.Files {
			token, err := e.spool.take(ctx, env, e.b.StateDir, result.Files[i])
			if err != nil {
				e.spool.drop(result.Files[:i])
				return err
			}
			result.Files[i].Token = token
		}
		return nil
	})
	if err != nil {
		return backends.JobResult{}, err
	}
	return result, nil
}

// spooled begins the tokens of files that wait on this side.
const spooled = "spool-"

// spool holds files that were taken out of containers that are gone.
type spool struct {
	random func() string

	mu    sync.Mutex
	files map[string]*os.File
}

// take fetches a file and keeps it under a token of its own. Where the system
// allows it, it has no name by then and cannot be left behind.
func (s *spool) take(ctx context.Context, env *remote.Environment, dir string, f backends.JobFile) (string, error) {
	content, err := env.Export(ctx, f.Token)
	if err != nil {
		return "", err
	}
	kept, err := os.CreateTemp(dir, spooled)
	if err != nil {
		return "", errors.Join(unspooled(dir, f, err), content.Close())
	}
	_ = os.Remove(kept.Name()) // else it goes when it is given up
	_, err = io.Copy(kept, content)
	if err = errors.Join(err, content.Close()); err != nil {
		return "", errors.Join(unspooled(dir, f, err), giveUp(kept))
	}
	token := spooled + s.random()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil {
		s.files = map[string]*os.File{}
	}
	s.files[token] = kept
	return token, nil
}

func unspooled(dir string, f backends.JobFile, err error) error {
	return tool.Errorf(tool.KindOf(err), "take the job's file %s out of its container: %w", f.Path, err).WithDisk(dir)
}

// open gives the file of the token away; ok is false for a token of somebody
// else's.
func (s *spool) open(token string) (content io.ReadCloser, ok bool, err error) {
	s.mu.Lock()
	f := s.files[token]
	delete(s.files, token)
	s.mu.Unlock()
	if f == nil {
		return nil, false, nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, true, errors.Join(err, giveUp(f))
	}
	return spooledFile{f}, true, nil
}

// drop gives files up that nobody will fetch.
func (s *spool) drop(files []backends.JobFile) {
	for _, f := range files {
		if content, ok, err := s.open(f.Token); ok && err == nil {
			_ = content.Close() // nobody reads it
		}
	}
}

// close gives all files up.
func (s *spool) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	for token, f := range s.files {
		delete(s.files, token)
		err = errors.Join(err, giveUp(f))
	}
	return err
}

// spooledFile is gone when it is closed.
type spooledFile struct{ *os.File }

func (f spooledFile) Close() error { return giveUp(f.File) }

func giveUp(f *os.File) error {
	err := f.Close()
	_ = os.Remove(f.Name()) // mostly it has no name
	return err
}
