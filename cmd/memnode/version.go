package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"mneme/cmd/memctl/program"
	"mneme/memory"
)

func versionCmd(sys system) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Show the version",
		Example: "  memnode version --json",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return json.NewEncoder(sys.out).Encode(sys.version)
			}
			_, err := fmt.Fprintf(sys.out, "memnode %s\n", versionLine(sys.version))
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

func versionLine(v memory.VersionInfo) string {
	return program.Name(v) + " " + v.Go + " " + v.OS + "/" + v.Arch
}
