// Overlay is an adapter whose files are in memory only: it shows a directory of
// this machine, and what is written lies over it and is gone with the session.
//
//	overlay [-lower DIR]
//
// Its files are not those that a command would see. So it has no commands and no
// processes, and does not announce process.start.v1: an environment is one world.
package main

import (
	"context"
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
		fmt.Fprintln(os.Stderr, "overlay:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("overlay", flag.ContinueOnError)
	lower := flags.String("lower", "", "show the files of this `directory` below those that are written")
	if err := flags.Parse(args); err != nil {
		return err
	}
	o := &overlay{upper: map[string]*file{}}
	if *lower != "" {
		// Whatever a name or a link says, nothing outside of it is read.
		root, err := os.OpenRoot(*lower)
		if err != nil {
			return err
		}
		defer root.Close()
		o.lower = root.FS()
	}
	backend, err := adapterkit.New(adapterkit.Handlers{
		Initialize: o.initialize,
		Execute:    o.execute,
		Exports:    adapterkit.ExportHandlers{Read: o.exports.read, Close: o.exports.close},
	})
	if err != nil {
		return err
	}
	return adapterkit.Run(ctx, backend, adapterkit.Options{})
}

// initialize takes the name of the root. Memory of an earlier process is gone, and
// an empty overlay must not pass for it.
func (o *overlay) initialize(_ context.Context, _ *adapterkit.Session, in wire.Initialize) (string, error) {
	if in.RequireExistingWorkspace {
		return "", tool.Errorf(tool.EnvironmentLost, "what was written in this session was in the memory of an adapter that has ended")
	}
	o.root = filepath.Clean(in.Root)
	return o.root, nil
}
