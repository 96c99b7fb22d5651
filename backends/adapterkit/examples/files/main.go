//go:build unix

// Files is an adapter with files on this machine's disk and real processes.
//
//	files -state DIR
//
// The workspace is the directory that the profile names; it is made, mode 0700, when
// it is missing and may be. The state directory holds a record of each process and its
// output, so that an adapter that was killed finds, when it is started anew, what it
// had started: such a process is ended then, since nobody can wait for it any more,
// and its record says that it was lost.
//
// Commands run with the user's rights and nothing confines them. So they are refused
// in the modes standard and read_only; a profile for this adapter says
// "max_permission_mode": "unconfined".
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/caisson-dev/caisson/backends/adapterkit"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "files:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("files", flag.ContinueOnError)
	state := flags.String("state", "", "keep the records of processes in this `directory`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *state == "" {
		return errors.New("usage: files -state DIR")
	}
	f := &files{state: *state}
	backend, err := adapterkit.New(adapterkit.Handlers{
		Initialize: f.initialize,
		Execute:    f.execute,
		Processes: adapterkit.ProcessHandlers{
			Start: f.start,
			List:  func(context.Context) ([]tool.Process, error) { return f.registry.list(), nil },
			Get:   func(_ context.Context, id string) (tool.Process, error) { return f.registry.get(id) },
			Read: func(ctx context.Context, id string, o tool.ReadOptions) (tool.ReadResult, error) {
				return f.registry.read(ctx, id, o)
			},
			Write: func(ctx context.Context, id string, input []byte) (tool.Process, error) {
				return f.registry.write(ctx, id, input)
			},
			Stop: func(ctx context.Context, id string) (tool.Process, error) { return f.registry.stop(ctx, id) },
			InputAvailable: func(_ context.Context, id string) (bool, error) {
				p, err := f.registry.get(id)
				return p.Status == tool.ProcessRunning, err
			},
			Cleanup: func(context.Context) ([]tool.Process, error) { return f.registry.cleanup() },
		},
		Exports: adapterkit.ExportHandlers{Read: f.readExport, Close: f.closeExport},
		Close:   f.close,
	})
	if err != nil {
		return err
	}
	return adapterkit.Run(ctx, backend, adapterkit.Options{})
}

// files is the one session.
type files struct {
	state    string
	root     *os.Root
	dir      string // of root, with symlinks resolved
	env      []string
	registry *registry
	exports  exports
}

// initialize makes or finds the workspace, and recovers the records.
func (f *files) initialize(_ context.Context, s *adapterkit.Session, in wire.Initialize) (string, error) {
	info, err := os.Stat(in.Root)
	switch {
	case err == nil && !info.IsDir():
		return "", tool.Errorf(tool.InvalidParams, "the workspace %s is not a directory", in.Root).WithPath("root")
	case errors.Is(err, os.ErrNotExist) && in.RequireExistingWorkspace:
		return "", tool.Errorf(tool.EnvironmentLost, "the workspace %s is not there any more", in.Root).WithPath(in.Root)
	case errors.Is(err, os.ErrNotExist):
		err = os.MkdirAll(in.Root, 0o700)
	}
	if err == nil {
		f.dir, err = filepath.EvalSymlinks(in.Root)
	}
	if err == nil {
		f.root, err = os.OpenRoot(f.dir)
	}
	if err != nil {
		return "", tool.Errorf(tool.BackendUnavailable, "open the workspace: %w", err)
	}
	// A command sees what the profile gives it, and nothing of the adapter's own.
	f.env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + f.dir}
	for name, value := range in.Environment {
		f.env = append(f.env, name+"="+value)
	}
	f.registry, err = openRegistry(filepath.Join(f.state, in.Session), s, in)
	return f.dir, err
}

// close ends every process that still runs, and lets go of the files. The records
// stay when that fails.
func (f *files) close(ctx context.Context) error {
	var err error
	if f.registry != nil {
		err = f.registry.close(ctx)
	}
	if f.root != nil {
		err = errors.Join(err, f.root.Close())
	}
	if err == nil && f.registry != nil && f.registry.session.Binding().RemoveWorkspaceOnExit {
		err = os.RemoveAll(f.dir)
	}
	return err
}
