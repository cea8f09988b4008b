package verbs

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"mneme/internal/api/mcp"
	"mneme/memory"
)

func mcpCmd(a *app) *cobra.Command {
	var profile, start string
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve an agent over standard input and output (Model Context Protocol)",
		Long: `Serves one agent, which starts this program: it speaks the Model Context Protocol on
standard input and output. All agents of a machine share the node that runs there. If
none does at the default address, the memnode that is installed is started, and ends
by itself when nobody has used it for ten minutes.

Without -n it works in the namespace that is remembered, or in the only one there is.`,
		Example: `  memctl mcp -n team-a
  memctl mcp -n team-a --as reviewer --profile full
  claude mcp add mneme -- memctl mcp -n team-a`,
		Args: wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := mcp.ParseProfile(profile)
			if err != nil {
				return err
			}
			if err := startable(a, start); err != nil {
				return err
			}
			return serveMCP(cmd.Context(), a, p)
		},
	}
	cmd.Flags().StringVar(&profile, "profile", string(mcp.ProfileLite), "which tools to offer: micro, lite, full, or graph, those of the official memory server alone")
	cmd.Flags().StringVar(&start, "start", startAuto, "start a node where none runs: auto (at the default address), always or never")
	completeFlag(cmd, "profile", completeWords("micro", "lite", "full", "graph"))
	completeFlag(cmd, "start", completeWords(startAuto, startAlways, startNever))
	return cmd
}

// serveMCP serves until standard input ends.
func serveMCP(ctx context.Context, a *app, profile mcp.Profile) error {
	c, err := a.dial()
	if err != nil {
		return err
	}
	agent, err := a.agent()
	if err != nil {
		return err
	}
	server, err := mcp.New(mcp.Options{
		Connect: func(http.Header) (mcp.Caller, error) {
			ns, err := onlyNamespace(ctx, a)
			return mcp.Caller{Client: c, Namespace: ns, Agent: agent}, err
		},
		Profile: profile, Sessions: true, Version: a.sys.version.Version,
		Logger: slog.New(slog.NewTextHandler(a.sys.err, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	err = server.Run(ctx, &sdk.IOTransport{Reader: io.NopCloser(a.in), Writer: keepOpen{a.sys.out}})
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil
	}
	return err
}

// onlyNamespace is the namespace that was named, or else the only one that there is.
func onlyNamespace(ctx context.Context, a *app) (string, error) {
	ns, unnamed := a.named()
	if unnamed == nil {
		return ns, nil
	}
	c, err := a.dial()
	if err != nil {
		return "", err
	}
	all, err := c.Namespaces(ctx)
	if err != nil {
		return "", err
	}
	if len(all.Namespaces) == 1 {
		return all.Namespaces[0].Name, nil
	}
	return "", memory.AsError(unnamed).WithHint("there are %d namespaces: start it as `memctl mcp -n NAMESPACE`", len(all.Namespaces))
}

// keepOpen is a stream that whoever has it does not close.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }
