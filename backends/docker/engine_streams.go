package docker

import (
	"bufio"
	"context"
	"io"
	"net"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/caisson-dev/caisson/backends/wire"
)

// exec starts a command in a running container and joins its streams. The
// context bounds the start only.
func (e *engine) exec(ctx context.Context, id string, argv []string) (*execStream, error) {
	const doing = "starting the worker's attach command"
	made, err := e.api.ContainerExecCreate(ctx, id, container.ExecOptions{
		Cmd: argv, AttachStdin: true, AttachStdout: true, AttachStderr: true,
	})
	if err != nil {
		return nil, e.failed(doing, err)
	}
	stop := func() bool { return true }
	held := context.WithValue(ctx, heldConn{}, func(conn net.Conn) {
		stop = context.AfterFunc(ctx, func() { conn.Close() })
	})
	joined, err := e.api.ContainerExecAttach(held, made.ID, container.ExecAttachOptions{})
	if stopped := stop(); err == nil && !stopped {
		joined.Close()
		err = ctx.Err()
	}
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, e.failed(doing, err)
	}
	exitCode := func(ctx context.Context) (int, bool) {
		found, err := e.api.ContainerExecInspect(ctx, made.ID)
		return found.ExitCode, err == nil && !found.Running
	}
	conn, reader := io.ReadWriteCloser(joined.Conn), joined.Reader
	// What was read ahead of its Reader the library keeps in a connection of another type.
	if socket, ok := joined.Conn.(*net.UnixConn); ok && reader.Buffered() == 0 {
		if conn, err = wire.Blocking(socket); err != nil {
			joined.Close()
			return nil, e.failed(doing, err)
		}
		reader = bufio.NewReader(conn)
	}
	return newExecStream(conn, reader, exitCode), nil
}

// join joins all streams of a container's first process, before it is started.
// The context bounds the joining only.
func (e *engine) join(ctx context.Context, id string) (*execStream, error) {
	joined, err := e.api.ContainerAttach(ctx, id, container.AttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		return nil, e.failed("joining the container's streams", err)
	}
	exitCode := func(ctx context.Context) (int, bool) {
		found, err := e.api.ContainerInspect(ctx, id)
		if err != nil || found.ContainerJSONBase == nil || found.State == nil {
			return 0, false // it has removed itself
		}
		return found.State.ExitCode, !found.State.Running
	}
	return newExecStream(joined.Conn, joined.Reader, exitCode), nil
}

// watch follows what a container's first process says, from its start on.
func (e *engine) watch(ctx context.Context, id string) (*bootLog, error) {
	joined, err := e.api.ContainerAttach(ctx, id, container.AttachOptions{Stream: true, Stdout: true, Stderr: true})
	if err != nil {
		return nil, e.failed("joining the container's output", err)
	}
	return newBootLog(joined.Conn, func(to io.Writer) {
		// Its end, in whatever way, is no failure of ours.
		_, _ = stdcopy.StdCopy(to, to, joined.Reader)
	}), nil
}

// The streams that the engine multiplexes.
const (
	streamStdout = byte(stdcopy.Stdout)
	streamStderr = byte(stdcopy.Stderr)
	streamSystem = byte(stdcopy.Systemerr)
)
