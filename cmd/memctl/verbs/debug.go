package verbs

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"mneme/client"
	"mneme/memory"
)

// debugFlags are those of the verbs that look into the process.
type debugFlags struct{ socket, out string }

func debugCmd(a *app) *cobra.Command {
	flags := &debugFlags{}
	cmd := group(&cobra.Command{
		Use:   "debug",
		Short: "Look into a node's process, on its own machine",
		Long: `Look into a node's process. The node answers on its admin socket only: run memctl on
the node's machine or in its container, as the user who runs the node.`,
		Example: "  memctl debug bundle\n  memctl debug profile cpu --seconds 30",
	})
	cmd.PersistentFlags().StringVar(&flags.socket, "socket", "", "the node's admin socket (default: the one that the node at --addr names)")
	cmd.PersistentFlags().StringVarP(&flags.out, "out", "o", "", "write to this `file`; - is standard output")
	cmd.AddCommand(debugBundleCmd(a, flags), debugProfileCmd(a, flags))
	return cmd
}

func debugBundleCmd(a *app, flags *debugFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "bundle",
		Short: "Write one file to attach to a report about a node",
		Long: `Write one file to attach to a report about a node (tar, gzip): version, settings in
effect, status, doctor's findings, metrics, goroutines, a heap profile, the last lines of the
log. It holds no memory, no query, no key, no token and no password; it does hold addresses,
paths and names of namespaces, so look at it before you make it public.`,
		Example: "  memctl debug bundle\n  memctl debug bundle --out report.tar.gz\n  tar -tzf report.tar.gz",
		Args:    wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			name := first(flags.out, "mneme-debug-"+a.sys.now().UTC().Format("20060102-150405")+".tar.gz")
			return writeDebug(a, cmd.Context(), flags.socket, name, func(ctx context.Context, c *client.Local, w io.Writer) error { return c.DebugBundle(ctx, w) })
		},
	}
}

func debugProfileCmd(a *app, flags *debugFlags) *cobra.Command {
	seconds := 10
	kinds := []string{"goroutine", "heap", "allocs", "block", "mutex", "threadcreate", "cpu", "trace"}
	cmd := &cobra.Command{
		Use:       "profile KIND",
		Short:     "Write a profile of the process for go tool pprof, or a trace for go tool trace",
		Example:   "  memctl debug profile cpu --seconds 30 -o cpu.pb.gz && go tool pprof -top cpu.pb.gz\n  memctl debug profile heap",
		Args:      wantArgs(1, 1),
		ValidArgs: kinds,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := flags.out
			if name == "" {
				name = fmt.Sprintf("mneme-%s-%s.pb.gz", oneLine(args[0]), a.sys.now().UTC().Format("20060102-150405"))
			}
			return writeDebug(a, cmd.Context(), flags.socket, name, func(ctx context.Context, c *client.Local, w io.Writer) error {
				return c.Profile(ctx, w, args[0], seconds)
			})
		},
	}
	cmd.Flags().IntVar(&seconds, "seconds", seconds, "how long cpu and trace look")
	return cmd
}

// writeDebug has a file written as a whole.
func writeDebug(a *app, ctx context.Context, socket, name string, get func(context.Context, *client.Local, io.Writer) error) error {
	c, err := a.dial()
	if err != nil {
		return err
	}
	local, err := client.OpenLocal(ctx, c, socket)
	if err != nil {
		return err
	}
	defer func() { _ = local.Close() }()
	if name == "-" { // out of a container that has no other way
		return get(ctx, local, a.out)
	}
	size := int64(0)
	err = replaceFile(name, 0o600, func(f *os.File) error {
		if err := get(ctx, local, f); err != nil {
			return err
		}
		info, err := f.Stat()
		if err == nil {
			size = info.Size()
		}
		return err
	})
	if err != nil {
		return err
	}
	return a.emit(memory.WrittenFile{File: name, Bytes: size}, []string{name}, func() { a.printf("%s, %d bytes\n", oneLine(name), size) })
}
