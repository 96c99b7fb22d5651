//go:build unix

// Command soak uses Caisson hard for a while: many sessions, on this machine and
// in containers, do random things while workers, connections, clients and
// services are killed under them. A model says at each moment what there may
// be; the first thing that differs ends the run. At the end every write that was
// acknowledged is in its file, every process is accounted for, and nothing is
// left behind.
//
// The plan comes from one seed, which is printed; -seed repeats it. What
// happens at the same time is up to the machine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends/docker/dockertest"
)

// How long the parts beside the soak itself may take.
const (
	settling = 3 * time.Minute // steps that were begun, after the time is over
	checking = 6 * time.Minute // all checks at the end
)

func main() {
	caisson := flag.String("caisson", "bin/caisson", "the `program` to start")
	seed := flag.Uint64("seed", 0, "what the plan is made of; 0 draws one")
	duration := flag.Duration("for", 10*time.Minute, "how long")
	sessions := flag.Int("sessions", 50, "how many sessions there are at a time")
	docker := flag.String("docker", "auto", "containers too: yes, no, or auto when an engine answers")
	keep := flag.Bool("keep", false, "after a failure leave everything running, to be looked at")
	flag.Parse()
	if *seed == 0 {
		*seed = rand.Uint64() >> 16 // short enough to be typed
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *caisson, *docker, *seed, *duration, *sessions, *keep)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "soak: %v\nsoak: SEED=%d repeats the plan\n", err, *seed)
		os.Exit(1)
	}
}

func run(ctx context.Context, caisson, docker string, seed uint64, duration time.Duration, sessions int, keep bool) error {
	image, err := containerImage(ctx, docker)
	if err != nil {
		return err
	}
	p := newPlan(seed, duration, sessions, image != "")
	fmt.Printf("soak: SEED=%d, %v, %s\n", seed, duration, p)
	w, err := newWorld(caisson, image, p)
	if err != nil {
		return err
	}
	err = w.soak(ctx, duration)
	if err == nil {
		err = w.check(ctx)
	}
	if err != nil {
		fmt.Printf("\n%s\nThe directory is kept: %s\n", w.journal, w.dir)
		if keep {
			return err
		}
		return errors.Join(err, w.abandon())
	}
	fmt.Print(w.tally)
	return os.RemoveAll(w.dir)
}

// containerImage names an image with a shell, or "" when there are to be no
// containers.
func containerImage(ctx context.Context, docker string) (string, error) {
	const name = "caisson-soak:1"
	switch docker {
	case "no":
		return "", nil
	case "auto":
		if exec.CommandContext(ctx, "docker", "version", "--format", "{{.Server.Version}}").Run() != nil {
			fmt.Println("soak: no Docker engine answers: there will be no containers")
			return "", nil
		}
	case "yes":
	default:
		return "", fmt.Errorf("-docker is yes, no or auto, not %q", docker)
	}
	image, err := dockertest.Shell(ctx)
	if err != nil {
		return "", err
	}
	return name, dockertest.Load(ctx, image, name)
}

// soak runs agents and accidents until the time is over or something is wrong.
func (w *world) soak(ctx context.Context, duration time.Duration) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	if _, err := w.start(ctx, 0); err != nil {
		return err
	}
	over, stop := context.WithTimeout(ctx, duration) // no new step afterwards
	defer stop()
	deadline := time.AfterFunc(duration+settling, func() {
		fail(fmt.Errorf("the last steps do not end within %v", settling))
	})
	defer deadline.Stop()

	var group sync.WaitGroup
	begin := func(what string, f func() error) {
		group.Go(func() {
			if err := f(); err != nil {
				fail(fmt.Errorf("%s: %w", what, err))
			}
		})
	}
	for _, a := range w.agents {
		begin(a.name(), func() error { return a.run(ctx, over) })
	}
	begin("accidents", func() error { return w.accidents(ctx, over) })
	begin("monitor", func() error { return w.monitor(over) })
	group.Wait()
	return context.Cause(ctx)
}
