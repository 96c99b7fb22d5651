// Command demo runs Caisson's main job over real stdio frames and prints what
// went over the line, shortened: a session on this machine, or in a container,
// in which files are written, read, edited and searched, a command and git run,
// a background process is awaited, and an image becomes an artifact that a
// later overwrite does not change.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/caisson-dev/caisson/backends/docker/dockertest"
	"github.com/caisson-dev/caisson/rpc/client"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// budget bounds the whole demonstration, an image that must be made included.
const budget = 2 * time.Minute

func main() {
	caisson := flag.String("caisson", "bin/caisson", "the `program` to start")
	profile := flag.String("profile", "local", "local or docker")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	if err := run(ctx, *caisson, *profile); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		cancel()
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, caisson, profile string) (err error) {
	dir, err := os.MkdirTemp("", "caisson-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	workspace := filepath.Join(dir, "workspace")
	config := filepath.Join(dir, "config.json")
	if err := os.Mkdir(workspace, 0o700); err != nil {
		return err
	}
	text, err := configuration(ctx, profile)
	if err != nil {
		return err
	}
	if err := os.WriteFile(config, text, 0o600); err != nil {
		return err
	}

	service := exec.CommandContext(ctx, caisson, "serve", "--log-level", "warn")
	service.Stderr = os.Stderr
	service.Env = append(os.Environ(), "CAISSON_CONFIG="+config)
	t := newTranscript(os.Stdout)
	c, err := client.Start(service, t.options())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	d := &demo{client: c, transcript: t}
	return d.play(ctx, profile, workspace, protocol.InitializationOptions{
		StateDir: filepath.Join(dir, "state"), DataDir: filepath.Join(dir, "data"),
	})
}

// configuration is the user's file for the demonstration: none for this
// machine, one profile for a container.
func configuration(ctx context.Context, profile string) ([]byte, error) {
	switch profile {
	case "local":
		return []byte("{}\n"), nil
	case "docker":
		image, err := demoImage(ctx)
		if err != nil {
			return nil, err
		}
		return fmt.Appendf(nil, `{
  "execution_environments": {
    "profiles": { "docker": { "backend": "docker", "image": %q, "network": "none" } },
  },
}
`, image), nil
	default:
		return nil, fmt.Errorf("-profile is local or docker, not %q", profile)
	}
}

// demoImage names an image with a shell and git, making a small one out of this
// machine's own programs when it is not there yet.
func demoImage(ctx context.Context) (string, error) {
	const name = "caisson-demo:1"
	if exec.CommandContext(ctx, "docker", "image", "inspect", name).Run() == nil {
		return name, nil
	}
	image, err := dockertest.Shell(ctx)
	if err != nil {
		return "", err
	}
	return name, dockertest.Load(ctx, image, name)
}
