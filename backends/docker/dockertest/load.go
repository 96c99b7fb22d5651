package dockertest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// limit bounds one docker command.
const limit = 60 * time.Second

// Load makes the image known to the daemon as name.
func Load(ctx context.Context, i Image, name string) error {
	archive, err := i.Archive(name)
	if err != nil {
		return err
	}
	_, err = docker(ctx, archive, "load", "--quiet")
	return err
}

// docker runs the docker command with an input.
func docker(ctx context.Context, input []byte, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.Stdin = bytes.NewReader(input)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("docker %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}

// Need makes sure that a docker daemon answers. Without one the test is
// skipped, except in CI, where it fails.
func Need(t testing.TB) {
	t.Helper()
	if _, err := docker(t.Context(), nil, "version", "--format", "{{.Server.Version}}"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("this test needs a docker daemon: %v", err)
		}
		t.Skipf("this test needs a docker daemon: %v", err)
	}
}

// Docker runs the docker command and returns its output, trimmed. The test fails
// when it does.
func Docker(t testing.TB, args ...string) string {
	t.Helper()
	out, err := docker(t.Context(), nil, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var loaded atomic.Int64

// Use loads the image for the test, which owns it, and returns its name.
func Use(t testing.TB, i Image) string {
	t.Helper()
	Need(t)
	name := fmt.Sprintf("caisson-test/%d:%d", os.Getpid(), loaded.Add(1))
	if err := Load(t.Context(), i, name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's own context has ended.
		if _, err := docker(context.Background(), nil, "rmi", "--force", name); err != nil {
			t.Errorf("the image is left: %v", err)
		}
	})
	return name
}

// UseShell is [Use] for [Shell].
func UseShell(t testing.TB) string {
	t.Helper()
	i, err := Shell(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return Use(t, i)
}
