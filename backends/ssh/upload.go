package ssh

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"time"

	"github.com/caisson-dev/caisson/backends/remote"
	"github.com/caisson-dev/caisson/backends/tool"
)

// upload sends the program under a name of its own, and has it check its hash
// and take its place itself: two services may do that at the same time. It is
// sent by sftp, and where that does not work, or leads somewhere else, through a
// shell.
func (b *Backend) upload(ctx context.Context, m machine, dir string, file remote.Program) error {
	temporary := path.Join(dir, ".upload-"+random())
	defer m.discard(ctx, temporary)
	err := m.install(ctx, temporary, file, m.sendSFTP)
	if err == nil || ctx.Err() != nil {
		return err
	}
	b.log.Debug("an upload by sftp failed", "machine", m.name, "reason", err)
	m.discard(ctx, temporary)
	err = m.install(ctx, temporary, file, m.sendShell)
	if not := (*notStarted)(nil); errors.As(err, &not) {
		if !not.refused() {
			return &unfit{"the worker is there and ends at once, as under a limit of memory: " + said(not.result)}
		}
		return &unfit{noexec(not.result)}
	}
	return err
}

// install sends the program and has it take its place.
func (m machine) install(ctx context.Context, path string, file remote.Program, send func(context.Context, string, io.Reader, int64) error) error {
	content, err := os.Open(file.Path)
	if err != nil {
		return tool.Errorf(tool.Internal, "the worker cannot be read: %w", err)
	}
	defer content.Close()
	if err := send(ctx, path, content, file.Size); err != nil {
		return err
	}
	_, err = m.site(ctx, answerTimeout, path, remote.SiteRequest{Action: remote.SiteInstall, Sum: file.Sum, Name: workerName})
	return err
}

// sendSFTP writes a file by the sftp subsystem. One that takes nothing for a while is
// given up: a shell may do better.
func (m machine) sendSFTP(ctx context.Context, path string, content io.Reader, size int64) (err error) {
	ctx, cancel := context.WithTimeout(ctx, uploadTimeout)
	defer cancel()
	stalled := time.AfterFunc(sftpTimeout, cancel)
	defer stalled.Stop()
	client, err := m.SFTP(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	stop := context.AfterFunc(ctx, func() { client.Close() })
	defer stop()
	f, err := client.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	_, err = f.ReadFrom(&movingReader{content, size, func() { stalled.Reset(sftpTimeout) }})
	if err == nil {
		err = f.Chmod(0o700)
	}
	return errors.Join(err, f.Close())
}

// movingReader tells of each read, and how much there is, for which the client has
// several requests open at once.
type movingReader struct {
	io.Reader
	size  int64
	moved func()
}

// Size is how much there is, in bytes.
func (r *movingReader) Size() int64 { return r.size }

// Read reads.
func (r *movingReader) Read(p []byte) (int, error) {
	r.moved()
	return r.Reader.Read(p)
}

// sendShell writes a file through the account's shell.
func (m machine) sendShell(ctx context.Context, path string, content io.Reader, _ int64) error {
	result, err := m.script(ctx, uploadTimeout, content, `printf "%s\n" "$1"; umask 077; cat > "$2" && chmod 700 "$2"`, path)
	if err != nil {
		return err
	}
	if result.Code != 0 {
		return &unfit{said(result)}
	}
	return nil
}

// discard removes what an upload left, even when ctx has ended. What cannot be
// removed is small and private, and goes with the directory of its build.
func (m machine) discard(ctx context.Context, path string) {
	_, _ = m.script(context.WithoutCancel(ctx), cleanupTimeout, nil, `printf "%s\n" "$1"; rm -f "$2"`, path)
}
