package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/backends/wire"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

func (a *app) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of the program and its protocols",
		Example: "  caisson version --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := build()
			if asJSON {
				return a.printJSON(v)
			}
			_, err := fmt.Fprintf(a.out, "caisson %s (%s, %s/%s; editor protocol %d, worker protocol %d)\n",
				v.Version, v.Go, v.OS, v.Arch, v.EditorProtocol, v.WorkerProtocol)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// buildInfo says what this program is.
type buildInfo struct {
	Version        string `json:"version"`
	Revision       string `json:"revision,omitempty"`
	Go             string `json:"go"`
	OS             string `json:"os"`
	Arch           string `json:"arch"`
	EditorProtocol int    `json:"editorProtocol"`
	WorkerProtocol int    `json:"workerProtocol"`
}

func build() buildInfo {
	v := buildInfo{
		Version: version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		EditorProtocol: protocol.Version, WorkerProtocol: wire.Version,
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Revision = s.Value
			}
		}
	}
	return v
}
