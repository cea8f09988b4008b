package verbs

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"mneme/cmd/memctl/program"
	"mneme/memory"
)

// versionTimeout bounds how long version waits for the node, which it can do
// without.
const versionTimeout = 2 * time.Second

// versions are those of this program and of the node, if it answers.
type versions struct {
	Client memory.VersionInfo  `json:"client"`
	Server *memory.VersionInfo `json:"server"`
}

func versionCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Show the versions of memctl and of the node",
		Example: "  memctl version --json",
		Args:    wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := versions{Client: a.sys.version}
			server, why := serverVersion(cmd.Context(), a)
			out.Server = server
			return a.emit(out, []string{out.Client.Version}, func() {
				a.printf("memctl   %s\n", versionLine(out.Client))
				if server != nil {
					a.printf("memnode  %s\n", versionLine(*server))
				} else {
					a.printf("memnode  unknown: %s\n", oneLine(why.Error()))
				}
			})
		},
	}
}

func serverVersion(ctx context.Context, a *app) (*memory.VersionInfo, error) {
	c, err := a.dial()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	v, err := c.Version(ctx)
	if err != nil {
		return nil, err
	}
	return &v, nil
}

func versionLine(v memory.VersionInfo) string {
	return oneLine(program.Name(v) + " " + v.Go + " " + v.OS + "/" + v.Arch)
}
