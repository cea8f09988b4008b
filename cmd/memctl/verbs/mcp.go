package verbs

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"

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
none does at the default address, the memnode that is installed is started at once, and
ends by itself when nobody has used it for ten minutes.

Without -n it works in the namespace of the project in the folder that the agent's program
says is open, or else in which it was started; where that has none, in the namespace that
is remembered, or in the only one there is.`,
		Example: `  memctl mcp -n team-a
  memctl mcp -n team-a --as reviewer --profile full
  claude mcp add mneme -- memctl mcp -n team-a`,
		Args: wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := mcp.ParseProfile(profile)
			if err != nil {
				return err
			}
			s, err := startable(a, start)
			if err != nil {
				return err
			}
			in, done := polled(a.sys.in, a.sys.out, a.sys.err)
			defer done()
			if !a.sys.isTerminal(a.sys.err) {
				a.sys.err = &unheard{to: a.sys.err}
			}
			if s != nil {
				a.reach = s.dial
				defer s.hold(cmd.Context(), mcpLog(a))()
			}
			return serveMCP(cmd.Context(), a, in, p)
		},
	}
	cmd.Flags().StringVar(&profile, "profile", string(mcp.ProfileLite), "which tools to offer: micro, lite, full, or graph, those of the official memory server alone")
	cmd.Flags().StringVar(&start, "start", startAuto, "start a node where none runs: auto (at the default address), always or never")
	completeFlag(cmd, "profile", completeWords("micro", "lite", "full", "graph"))
	completeFlag(cmd, "start", completeWords(startAuto, startAlways, startNever))
	return cmd
}

// serveMCP serves until its input ends.
func serveMCP(ctx context.Context, a *app, in io.Reader, profile mcp.Profile) error {
	c, err := a.dial()
	if err != nil {
		return err
	}
	agent, err := a.agent()
	if err != nil {
		return err
	}
	server, err := mcp.New(mcp.Options{
		Connect: func(ctx context.Context, _ http.Header, folders []string) (mcp.Caller, error) {
			ns, err := onlyNamespace(ctx, a, folders)
			return mcp.Caller{Client: c, Namespace: ns, Agent: agent}, err
		},
		Profile: profile, Sessions: true, Folders: first(a.flags.namespace, a.sys.getenv("MNEME_NAMESPACE")) == "",
		Version: a.sys.version.Version, Logger: mcpLog(a),
	})
	if err != nil {
		return err
	}
	a.sys.process.serveOne()
	session, err := server.Connect(ctx, &mcp.Stdio{In: in, Out: a.sys.out}, nil) // it reads on a goroutine of its own
	if err == nil {
		err = session.Wait() // it ends with ctx, too; Run of the SDK calls that an error
	}
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil
	}
	return err
}

func mcpLog(a *app) *slog.Logger {
	return slog.New(slog.NewTextHandler(a.sys.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// onlyNamespace is the namespace that was named, or that of the project of the folders in which
// the agent works, or else the only one that there is. Without folders it is where memctl was
// called.
func onlyNamespace(ctx context.Context, a *app, folders []string) (string, error) {
	ns, err := namespaceOf(a, folders)
	if ns != "" || err != nil {
		return ns, err
	}
	return soleNamespace(ctx, a)
}

func soleNamespace(ctx context.Context, a *app) (string, error) {
	all, err := namespaces(ctx, a)
	if err != nil {
		return "", err
	}
	if len(all) == 1 {
		return all[0].Name, nil
	}
	return "", memory.AsError(errOr(nil, "")).WithHint("there are %d namespaces: `memctl project use NAMESPACE` in the project, `memctl use NAMESPACE` for all others, or -n NAMESPACE say which", len(all))
}

// namespaces are those that the node has. The error is an unaskedError.
func namespaces(ctx context.Context, a *app) ([]memory.Namespace, error) {
	c, err := a.dial()
	if err != nil {
		return nil, unaskedError{err}
	}
	all, err := c.Namespaces(ctx)
	if err != nil {
		return nil, unaskedError{err}
	}
	return all.Namespaces, nil
}

// unaskedError says that the node could not be asked which namespaces there are.
type unaskedError struct{ error }

func (u unaskedError) Unwrap() error { return u.error }

// namespaceOf is namespaceIn for several folders, of which those count that are projects with a
// namespace. Where they have two, neither is taken.
func namespaceOf(a *app, folders []string) (ns string, err error) {
	if len(folders) == 0 {
		folders = []string{""}
	}
	of, from := "", ""
	for _, dir := range folders {
		its, said, err := namespaceIn(a, dir)
		switch {
		case err != nil:
			return "", err
		case from == fromProject && said == fromProject && its != ns:
			return "", memory.Errorf(memory.CodeConflict, "two projects are open: %s, whose namespace is %s, and %s, whose namespace is %s", of, ns, dir, its).
				WithHint("open one of them, or give -n NAMESPACE")
		case from != fromProject:
			ns, from, of = its, said, dir
		}
	}
	return ns, nil
}
