package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

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
	for _, f := range files {
		err := put(dir, f)
		if err == nil {
			continue
		}
		where := "it is kept as " + f.URI
		if other, aerr := instead.make(); aerr == nil && put(other, f) == nil {
			where = "it is in " + other
		}
		if len(failed) < maxSaid {
			failed = append(failed, fmt.Errorf("%q cannot be saved: %w; %s", f.Path, err, where))
		} else if len(failed) == maxSaid {
			failed = append(failed, errors.New("nor can others"))
		}
	}
	return errors.Join(failed...)
}

// maxSaid is how many files are named that cannot be saved.
const maxSaid = 20

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
