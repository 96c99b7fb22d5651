package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/rpc"
	"github.com/caisson-dev/caisson/session"
)

// prepareOut makes the directory of --out, and tries whether it can be written: before the
// job, which may have taken hours when it is found that it cannot.
func (f *jobFlags) prepareOut() error {
	if f.output == "" {
		return nil
	}
	unusable := func(err error) error {
		return usagef("what the program leaves cannot be saved below --out %q: %w", f.output, err)
	}
	dir, err := filepath.Abs(f.output)
	if err != nil {
		return unusable(err)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return unusable(err)
	}
	probe, err := os.CreateTemp(dir, ".caisson-*")
	if err != nil {
		return unusable(err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return unusable(err)
	}
	f.output = dir
	return nil
}

// save writes what a job left below a directory of this machine. What cannot be written
// there is put aside, and all else is written nevertheless.
func save(ctx context.Context, s rpc.Services, dir string, files []session.JobArtifact) error {
	put := func(dir string, f session.JobArtifact) error {
		name := filepath.FromSlash(f.Path)
		if !filepath.IsLocal(name) {
			return errors.New("its name leads out of the directory")
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			return err
		}
		defer root.Close()
		if parent := filepath.Dir(name); parent != "." {
			if err := root.MkdirAll(parent, 0o777); err != nil {
				return err
			}
		}
		return s.Artifacts.Save(ctx, f.ID, filepath.Join(dir, name), true)
	}
	var failed []error
	var instead aside
	kept, others := false, 0
	var alone []string // those of the others that are nowhere else
	for _, f := range files {
		err := put(dir, f)
		if err == nil {
			continue
		}
		where := "it is kept as " + f.URI
		other, aerr := instead.make()
		beside := aerr == nil && put(other, f) == nil
		if beside {
			where = "it is in " + other
		}
		kept = kept || !beside
		switch {
		case len(failed) < maxSaid:
			failed = append(failed, fmt.Errorf("%q cannot be saved: %w; %s", f.Path, err, where))
			continue
		case !beside:
			alone = append(alone, fmt.Sprintf("%q: %s", f.Path, f.URI))
		}
		others++
	}
	if in := others - len(alone); in > 0 {
		failed = append(failed, fmt.Errorf("%s cannot be saved; look in %s", counted(in, "other"), instead.dir))
	}
	if len(alone) > 0 {
		failed = append(failed, fmt.Errorf("%s cannot be saved; what is kept:\n%s", counted(len(alone), "other"), strings.Join(alone, "\n")))
	}
	if kept {
		failed = append(failed, errors.New(`an editor, or whoever else speaks to "caisson serve", can save what is kept so (artifact/list, artifact/save)`))
	}
	return errors.Join(failed...)
}

const (
	// maxSaid is how many files that cannot be saved are told of with the reason. Where
	// the others are is told all the same, of each that is not beside them: nobody would
	// find it again.
	maxSaid = 20
	// saveGrace is how long saving goes on after an interrupt: long enough for what a
	// job may leave, on a disk that answers.
	saveGrace = 30 * time.Second
)

// outlast is a context that ends with its cancel, or grace after ctx.
func outlast(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(grace, cancel)
		context.AfterFunc(lasting, func() { timer.Stop() })
	})
	return lasting, cancel
}

// aside is a directory for what could not be written where it belongs, once there is
// something.
type aside struct{ dir string }

// make makes the directory.
func (a *aside) make() (string, error) {
	if a.dir != "" {
		return a.dir, nil
	}
	dir, err := os.MkdirTemp("", "caisson-job-")
	if err == nil {
		a.dir = dir
	}
	return dir, err
}

// keepOutput keeps what a job printed in a directory of its own, and says where, behind a
// semicolon.
func keepOutput(r session.JobResult) string {
	dir, err := os.MkdirTemp("", "caisson-job-")
	if err == nil {
		err = errors.Join(
			os.WriteFile(filepath.Join(dir, "stdout"), r.Stdout, 0o600),
			os.WriteFile(filepath.Join(dir, "stderr"), r.Stderr, 0o600))
	}
	if err != nil {
		return fmt.Sprintf("; nor can it be kept: %v", err)
	}
	return "; it is in " + dir
}
