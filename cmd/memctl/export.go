package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"mneme/client"
	"mneme/memory"
)

func exportCmd(a *app) *cobra.Command {
	var format, output string
	var filter filterFlags
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write every memory as a line that can be imported again",
		Long:  "Write every memory that the reader may see, newest first, one line each, to\nstandard output or a file. Every line can be imported again.",
		Example: `  memctl export -n team-a > team-a.jsonl
  memctl export --kind decision --output decisions.jsonl`,
		Args: wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "jsonl" {
				return usage(cmd, "--format is %q, it must be jsonl", format)
			}
			c, ns, err := a.connect()
			if err != nil {
				return err
			}
			opts := client.ListOptions{ListRequest: memory.ListRequest{Limit: memory.MaxLimit, Filter: filter.filter()}}
			if output == "" {
				_, err = export(a, cmd, c, ns, opts, a.out)
				return err
			}
			n := 0
			if err := replaceFile(output, 0o600, func(f *os.File) error {
				w := bufio.NewWriter(f)
				if n, err = export(a, cmd, c, ns, opts, w); err != nil {
					return err
				}
				return w.Flush()
			}); err != nil {
				return err
			}
			return a.emit(map[string]any{"namespace": ns, "file": output, "records": n}, nil, func() {
				a.printf("exported %s of %s to %s\n", count(n, "memory", "memories"), ns, output)
				a.next("memctl import -n NAMESPACE %s", output)
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", "jsonl", "format of the lines: jsonl")
	cmd.Flags().StringVarP(&output, "output", "o", "", "write to this file")
	filter.register(a, cmd)
	completeFlag(cmd, "format", completeWords("jsonl"))
	return cmd
}

// export writes all pages and returns how many records there were.
func export(a *app, cmd *cobra.Command, c *client.Client, ns string, opts client.ListOptions, w io.Writer) (int, error) {
	bar := a.progress("export")
	defer bar.finish()
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	whole := memory.MaxTextBytes
	opts.MaxText = &whole
	n := 0
	for {
		page, err := c.List(cmd.Context(), ns, opts)
		if err != nil {
			return n, fmt.Errorf("export %s after %s: %w", ns, count(n, "memory", "memories"), err)
		}
		for _, rec := range page.Records {
			if a.flags.quiet && w == io.Writer(a.out) {
				a.println(rec.RecordID)
			} else if err := enc.Encode(exportLine(rec)); err != nil {
				return n, fmt.Errorf("write export: %w", err)
			}
			n++
		}
		bar.report(memory.Progress{Done: uint64(n), Unit: "memories"})
		if page.Cursor == "" {
			return n, nil
		}
		if page.Cursor == opts.Cursor {
			return n, memory.Errorf(memory.CodeInternal, "export: the node gave the same cursor twice")
		}
		opts.Cursor = page.Cursor
	}
}

func exportLine(r memory.Record) memory.ExportLine {
	occurred := r.OccurredAt
	return memory.ExportLine{
		Capture: memory.Capture{ID: r.ID, Agent: r.Agent, Text: r.Text, Kind: r.Kind, Role: r.Role, URI: r.URI,
			Tags: r.Tags, Conversation: r.Conversation, Subject: r.Subject, Scope: r.Scope, Importance: r.Importance,
			OccurredAt: &occurred, DerivedFrom: r.DerivedFrom, Metadata: r.Metadata},
		RecordID: r.RecordID, Version: r.Version, Position: r.Position, CreatedAt: r.CreatedAt, Origin: r.Origin, Source: r.Source,
	}
}
