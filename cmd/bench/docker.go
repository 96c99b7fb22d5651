package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	engine "github.com/docker/docker/client"

	"github.com/caisson-dev/caisson/backends/docker/dockertest"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// The rows of dockerRows.
const (
	dockerOpenWork     = "session open, docker, image present"
	dockerReadWork     = "read_file of 2 KB, docker"
	dockerSocketWork   = "the same, shared socket, beside local"
	dockerStreamWork   = "the same, no shared socket, beside local"
	dockerEngineWork   = "the same, beside the engine alone"
	dockerBashWork     = "bash true, docker"
	dockerArtifactWork = "artifact of 256 MiB, docker"
)

const dockerConfig = `{"execution_environments": {"profiles": {
	"box": {"backend": "docker", "image": "` + benchImage + `", "memory_mb": 1024}}}}`

const (
	benchImage   = "caisson-bench:1"
	artifactSize = 256 << 20
)

// dockerRows compares a session in a container with what the docker command
// does in the same image.
func dockerRows(ctx context.Context, b *bench) (err error) {
	image, err := dockertest.Shell(ctx)
	if err != nil {
		return err
	}
	// On one processor its programs have the threads that they have on all of them.
	image.Env = append(image.Env, allThreads())
	if err := dockertest.Load(ctx, image, benchImage); err != nil {
		return err
	}
	s, err := b.start(ctx, dockerConfig)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, s.stop(), docker(context.WithoutCancel(ctx), "rmi", "-f", benchImage))
	}()
	if err := errors.Join(dockerOpen(ctx, b, s), dockerBesideLocal(ctx, b)); err != nil {
		return err
	}
	started, err := exec.CommandContext(ctx, "docker", "run", "-d", "--network", "none", benchImage, "sleep", "3600").Output()
	if err != nil {
		return err
	}
	peer := string(started[:len(started)-1])
	defer func() { err = errors.Join(err, docker(context.WithoutCancel(ctx), "rm", "-f", peer)) }()
	id, err := s.open("box")
	if err != nil {
		return err
	}
	for _, measure := range []func(context.Context, *bench, *service, string, string) error{dockerRead, dockerBash, dockerArtifact} {
		if err := measure(ctx, b, s, id, peer); err != nil {
			return err
		}
	}
	return s.delete(id)
}

func docker(ctx context.Context, args ...string) error {
	if out, err := exec.CommandContext(ctx, "docker", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("docker %s: %w: %s", args[0], err, out)
	}
	return nil
}

func dockerOpen(ctx context.Context, b *bench, s *service) error {
	if !b.wants(dockerOpenWork) {
		return nil
	}
	var ids []string
	c, err := versus(ctx, rareRounds, func() error {
		id, err := s.open("box")
		ids = append(ids, id)
		return err
	}, command(ctx, "docker", "run", "--rm", "--network", "none", benchImage, "true"))
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := s.delete(id); err != nil {
			return err
		}
	}
	b.add(dockerOpenWork, c.atMost("docker run --rm", 1.2))
	return nil
}

// dockerRead compares reading in a container with docker exec, each warm: right after
// the other, which takes four hundred times as long, a read would be the first one.
func dockerRead(ctx context.Context, b *bench, s *service, id, peer string) error {
	if !b.wants(dockerReadWork) {
		return nil
	}
	if err := s.writeSmall(id); err != nil {
		return err
	}
	ours, err := median(ctx, rounds*5, s.readSmall(id))
	if err != nil {
		return err
	}
	other, err := median(ctx, slowRounds, command(ctx, "docker", "exec", peer, "cat", "/etc/passwd"))
	if err != nil {
		return err
	}
	b.add(dockerReadWork, faster(ours, "docker exec cat", other, 200))
	return nil
}

const smallName = "small.txt"

func (s *service) writeSmall(session string) error {
	return s.tool(session, "write_file", map[string]any{"path": smallName, "content": text(smallFile)})()
}

func (s *service) readSmall(session string) func() error {
	return s.tool(session, "read_file", map[string]any{"path": smallName})
}

// dockerBesideLocal compares reading in a container with reading on this machine, in
// turns and on one processor like localRead: over the socket that worker and service
// share, and over the stream through the engine, which is all that there is where the
// engine is elsewhere. The engine runs where it runs.
func dockerBesideLocal(ctx context.Context, b *bench) error {
	return onOneProcessor(func(processor int) error {
		if b.wants(dockerSocketWork) {
			s, err := b.start(ctx, dockerConfig, allThreads())
			if err != nil {
				return err
			}
			err = besideLocal(ctx, s, processor, func(inside string, read, readLocal func() error) error {
				c, err := versus(ctx, quickRounds, read, readLocal)
				if err != nil {
					return err
				}
				b.add(dockerSocketWork, c.atMost("local", 3))
				return nil
			})
			if err := errors.Join(err, s.stop()); err != nil {
				return err
			}
		}
		if !b.wants(dockerStreamWork) && !b.wants(dockerEngineWork) {
			return nil
		}
		s, err := b.startWithoutSocket(ctx)
		if err != nil {
			return err
		}
		err = besideLocal(ctx, s, processor, func(inside string, read, readLocal func() error) error {
			if b.wants(dockerStreamWork) {
				c, err := versus(ctx, quickRounds, read, readLocal)
				if err != nil {
					return err
				}
				b.add(dockerStreamWork, c.atMost("local", 8))
			}
			if b.wants(dockerEngineWork) {
				return besideEngine(ctx, b, inside, read)
			}
			return nil
		})
		return errors.Join(err, s.stop())
	})
}

// startWithoutSocket is start with a runtime directory whose path leaves room for the
// sockets of local workers, and none for one that a container would share.
func (b *bench) startWithoutSocket(ctx context.Context) (*service, error) {
	const length = 70
	dir, err := os.MkdirTemp("", "caisson-bench-")
	if err != nil {
		return nil, err
	}
	runtimeDir := filepath.Join(dir, strings.Repeat("r", max(1, length-len(dir)-1)))
	if err := os.Mkdir(runtimeDir, 0o700); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s, err := b.startIn(ctx, dir, dockerConfig, allThreads(), "XDG_RUNTIME_DIR="+runtimeDir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// besideLocal has f measure a session in a container, which is on the processor, beside
// one on this machine. Each reads a small file of its own.
func besideLocal(ctx context.Context, s *service, processor int, f func(inside string, read, readLocal func() error) error) error {
	near, err := s.open("")
	if err != nil {
		return err
	}
	inside, err := s.open("box")
	if err != nil {
		return err
	}
	if err := errors.Join(s.writeSmall(near), pinSession(ctx, inside, processor), s.writeSmall(inside)); err != nil {
		return err
	}
	return errors.Join(f(inside, s.readSmall(inside), s.readSmall(near)), s.delete(inside), s.delete(near))
}

// besideEngine compares reading over the engine's stream with what passes over it to a
// program that does nothing, and back: none of that is ours.
func besideEngine(ctx context.Context, b *bench, session string, read func() error) (err error) {
	id, err := containerOf(ctx, session)
	if err != nil {
		return err
	}
	api, err := engine.NewClientWithOpts(engine.FromEnv, engine.WithAPIVersionNegotiation())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, api.Close()) }()
	made, err := api.ContainerExecCreate(ctx, id, container.ExecOptions{Cmd: []string{"cat"}, AttachStdin: true, AttachStdout: true})
	if err != nil {
		return err
	}
	stream, err := api.ContainerExecAttach(ctx, made.ID, container.ExecAttachOptions{})
	if err != nil {
		return err
	}
	defer stream.Close()
	const header = 8 // of what the engine multiplexes
	text, answer := bytes.Repeat([]byte{'x'}, smallFile), make([]byte, header+smallFile)
	c, err := versus(ctx, quickRounds, read, func() error {
		if _, err := stream.Conn.Write(text); err != nil {
			return err
		}
		_, err := io.ReadFull(stream.Reader, answer)
		return err
	})
	if err != nil {
		return err
	}
	r := c.atMost("cat and the engine", 0)
	r.target = "–"
	b.add(dockerEngineWork, r)
	return nil
}

// pinSession keeps the container of a session on the processor.
func pinSession(ctx context.Context, session string, processor int) error {
	if processor < 0 {
		return nil
	}
	id, err := containerOf(ctx, session)
	if err != nil {
		return err
	}
	return docker(ctx, "update", "--cpuset-cpus", strconv.Itoa(processor), id)
}

// containerOf is the container of a session.
func containerOf(ctx context.Context, session string) (string, error) {
	out, err := exec.CommandContext(ctx, "docker", "ps", "-q", "--filter", "label=dev.caisson.session="+session).Output()
	return string(bytes.TrimSpace(out)), err
}

func dockerBash(ctx context.Context, b *bench, s *service, id, peer string) error {
	if !b.wants(dockerBashWork) {
		return nil
	}
	d, err := median(ctx, rounds, s.tool(id, "bash", map[string]any{"command": "true"}))
	if err != nil {
		return err
	}
	other, err := median(ctx, slowRounds, command(ctx, "docker", "exec", peer, "true"))
	if err != nil {
		return err
	}
	b.add(dockerBashWork, faster(d, "docker exec true", other, 15))
	return nil
}

func dockerArtifact(ctx context.Context, b *bench, s *service, id, peer string) error {
	if !b.wants(dockerArtifactWork) {
		return nil
	}
	const make256 = "dd if=/dev/urandom of=big bs=1M count=256 status=none"
	if err := docker(ctx, "exec", peer, "bash", "-c", "cd /tmp && "+make256); err != nil {
		return err
	}
	fill := s.tool(id, "bash", map[string]any{"command": make256})
	publish := params(protocol.ArtifactPublishParams{SessionID: id, Path: "big"})
	var others []time.Duration
	ours, err := medianOf(ctx, fewRounds, func() (time.Duration, error) {
		// New content: what is in the store already is not kept twice.
		if err := fill(); err != nil {
			return 0, err
		}
		start := time.Now()
		_, err := s.call(protocol.MethodArtifactPublish, publish)
		d := time.Since(start)
		if err != nil {
			return 0, err
		}
		other, err := dockerCat(ctx, peer)
		others = append(others, other)
		return d, err
	})
	if err != nil {
		return err
	}
	slices.Sort(others)
	other := others[len(others)/2]
	r := faster(ours, "docker exec cat", other, 2)
	r.ours, r.other = rate(artifactSize, ours), "docker exec cat "+rate(artifactSize, other)
	b.add(dockerArtifactWork, r)
	return nil
}

// dockerCat is how long docker exec cat takes for the large file.
func dockerCat(ctx context.Context, peer string) (time.Duration, error) {
	cat := exec.CommandContext(ctx, "docker", "exec", peer, "cat", "/tmp/big")
	out, err := cat.StdoutPipe()
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if err := cat.Start(); err != nil {
		return 0, err
	}
	n, err := io.Copy(io.Discard, out)
	if err = errors.Join(err, cat.Wait()); err != nil {
		return 0, err
	}
	if n != artifactSize {
		return 0, fmt.Errorf("docker exec cat gave %d bytes", n)
	}
	return time.Since(start), nil
}
