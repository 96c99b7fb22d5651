package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/rpc/protocol"
	"github.com/caisson-dev/caisson/session/config"
)

func (a *app) schemaCommand() *cobra.Command {
	return group("schema", "Print a JSON Schema", &cobra.Command{
		Use:     "config",
		Short:   "Print the JSON Schema of the configuration file",
		Example: "  caisson schema config > caisson.schema.json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			s, err := config.Schema()
			if err != nil {
				return err
			}
			return a.printJSON(s)
		},
	}, &cobra.Command{
		Use:     "protocol",
		Short:   "Print the JSON Schema of the editor protocol",
		Long:    "Prints the JSON Schema of the editor protocol: its types are the definitions, its\nmethods are listed with their parameters and results.",
		Example: "  caisson schema protocol | jq '.\"$defs\".ToolCallParams'",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(a.out, protocol.Schema())
			return err
		},
	})
}
