package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/caisson-dev/caisson/backends/docker/dockertest"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

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
	if err := dockertest.Load(ctx, image, benchImage); err != nil {
		return err
	}
	s, err := b.start(ctx, fmt.Sprintf(`{"execution_environments": {"profiles": {
		"box": {"backend": "docker", "image": %q, "memory_mb": 1024}}}}`, benchImage))
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, s.stop(), docker(context.WithoutCancel(ctx), "rmi", "-f", benchImage))
	}()
	if err := dockerOpen(ctx, b, s); err != nil {
		return err
	}
	container, err := exec.CommandContext(ctx, "docker", "run", "-d", "--network", "none", benchImage, "sleep", "3600").Output()
	if err != nil {
		return err
	}
	peer := string(container[:len(container)-1])
	defer func() { err = errors.Join(err, docker(context.WithoutCancel(ctx), "rm", "-f", peer)) }()
	id, err := s.open(ctx, "box")
	if err != nil {
		return err
	}
	for _, measure := range []func(context.Context, *bench, *service, string, string) error{dockerRead, dockerBash, dockerArtifact} {
		if err := measure(ctx, b, s, id, peer); err != nil {
			return err
		}
	}
	return s.delete(ctx, id)
}

func docker(ctx context.Context, args ...string) error {
	if out, err := exec.CommandContext(ctx, "docker", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("docker %s: %w: %s", args[0], err, out)
	}
	return nil
}

func dockerOpen(ctx context.Context, b *bench, s *service) error {
	const work = "session open, docker, image present"
	if !b.wants(work) {
		return nil
	}
	var ids []string
	d, err := median(ctx, rareRounds, func() error {
		id, err := s.open(ctx, "box")
		ids = append(ids, id)
		return err
	})
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := s.delete(ctx, id); err != nil {
			return err
		}
	}
	peer, err := timeCommand(ctx, rareRounds, "docker", "run", "--rm", "--network", "none", benchImage, "true")
	if err != nil {
		return err
	}
	b.add(atMost(work, d, "docker run --rm", peer, 1.2))
	return nil
}

func dockerRead(ctx context.Context, b *bench, s *service, id, peer string) error {
	const work = "read_file of 2 KB, docker"
	if !b.wants(work) {
		return nil
	}
	if err := s.tool(ctx, id, "write_file", map[string]any{"path": "small.txt", "content": text(smallFile)}); err != nil {
		return err
	}
	d, err := median(ctx, rounds*2, func() error {
		return s.tool(ctx, id, "read_file", map[string]any{"path": "small.txt"})
	})
	if err != nil {
		return err
	}
	other, err := timeCommand(ctx, slowRounds, "docker", "exec", peer, "cat", "/etc/passwd")
	if err != nil {
		return err
	}
	b.add(faster(work, d, "docker exec cat", other, 200))
	return nil
}

func dockerBash(ctx context.Context, b *bench, s *service, id, peer string) error {
	const work = "bash true, docker"
	if !b.wants(work) {
		return nil
	}
	d, err := median(ctx, rounds, func() error {
		return s.tool(ctx, id, "bash", map[string]any{"command": "true"})
	})
	if err != nil {
		return err
	}
	other, err := timeCommand(ctx, slowRounds, "docker", "exec", peer, "true")
	if err != nil {
		return err
	}
	b.add(faster(work, d, "docker exec true", other, 15))
	return nil
}

func dockerArtifact(ctx context.Context, b *bench, s *service, id, peer string) error {
	const work = "artifact of 256 MiB, docker"
	if !b.wants(work) {
		return nil
	}
	const make256 = "dd if=/dev/urandom of=big bs=1M count=256 status=none"
	if err := s.tool(ctx, id, "bash", map[string]any{"command": make256}); err != nil {
		return err
	}
	start := time.Now()
	if _, err := s.ArtifactPublish(ctx, protocol.ArtifactPublishParams{SessionID: id, Path: "big"}); err != nil {
		return err
	}
	ours := time.Since(start)
	if err := docker(ctx, "exec", peer, "bash", "-c", "cd /tmp && "+make256); err != nil {
		return err
	}
	cat := exec.CommandContext(ctx, "docker", "exec", peer, "cat", "/tmp/big")
	out, err := cat.StdoutPipe()
	if err != nil {
		return err
	}
	start = time.Now()
	if err := cat.Start(); err != nil {
		return err
	}
	n, err := io.Copy(io.Discard, out)
	if err = errors.Join(err, cat.Wait()); err != nil {
		return err
	}
	if n != artifactSize {
		return fmt.Errorf("docker exec cat gave %d bytes", n)
	}
	other := time.Since(start)
	r := faster(work, ours, "docker exec cat", other, 2)
	r.ours, r.other = rate(artifactSize, ours), "docker exec cat "+rate(artifactSize, other)
	b.add(r)
	return nil
}
