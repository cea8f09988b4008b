package verbs

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"mneme/client"
	"mneme/internal/importer"
	"mneme/memory"
)

var exportFormats = []string{"jsonl", "markdown", "mcp-memory"}

func exportCmd(a *app) *cobra.Command {
	var format, output string
	var filter filterFlags
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write every memory so that it can be imported again",
		Long: `Write every memory that the reader may see, so that it can be imported again.

jsonl       one memory a line, newest first, to standard output or a file
markdown    one file a memory, with front matter, in the folder --output. Again into the
            same folder rewrites only what has changed and removes the files of memories
            that are forgotten; a file that was edited since is left, and named
mcp-memory  the knowledge graph as the file of the official MCP memory server, to
            standard output or a file`,
		Example: `  memctl export -n team-a > team-a.jsonl
  memctl export --kind decision --output decisions.jsonl
  memctl export -n team-a --format markdown --output team-a
  memctl export -n team-a --format mcp-memory --output memory.jsonl`,
		Args: wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, ns, err := a.connect()
			if err != nil {
				return err
			}
			opts := client.ListOptions{ListRequest: memory.ListRequest{Limit: memory.MaxLimit, Filter: filter.filter()}}
			switch format {
			case "jsonl":
				return exportJSONL(a, cmd, c, ns, opts, output)
			case "markdown":
				if output == "" {
					return usage(cmd, "--format markdown writes a folder: name it with --output")
				}
				return exportFolder(a, cmd, c, ns, opts, output)
			case "mcp-memory":
				return exportGraph(a, cmd, c, ns, output)
			}
			return usage(cmd, "--format is %q, it must be one of %s", format, strings.Join(exportFormats, ", "))
		},
	}
	cmd.Flags().StringVar(&format, "format", "jsonl", "what to write: "+strings.Join(exportFormats, ", "))
	cmd.Flags().StringVarP(&output, "output", "o", "", "write to this file, or with markdown into this folder")
	filter.register(a, cmd)
	completeFlag(cmd, "format", completeWords(exportFormats...))
	return cmd
}

func exportJSONL(a *app, cmd *cobra.Command, c *client.Client, ns string, opts client.ListOptions, output string) error {
	lines := func(w io.Writer) (int, error) {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		return export(a, cmd, c, ns, opts, func(rec memory.Record) error {
			if a.flags.quiet && output == "" {
				a.println(rec.RecordID)
				return nil
			}
			if err := enc.Encode(importer.ExportOf(rec)); err != nil {
				return fmt.Errorf("write export: %w", err)
			}
			return nil
		})
	}
	return exportTo(a, ns, output, "memory", "memories", lines)
}

// exportTo writes to standard output, or replaces a file and says so.
func exportTo(a *app, ns, output, one, many string, write func(io.Writer) (int, error)) error {
	if output == "" {
		_, err := write(a.out)
		return err
	}
	n := 0
	if err := replaceFile(output, 0o600, func(f *os.File) (err error) {
		w := bufio.NewWriter(f)
		if n, err = write(w); err != nil {
			return err
		}
		return w.Flush()
	}); err != nil {
		return err
	}
	return a.emit(map[string]any{"namespace": ns, "file": output, "records": n}, nil, func() {
		a.printf("exported %s of %s to %s\n", count(n, one, many), ns, output)
		a.next("memctl import -n NAMESPACE %s", shellWord(output))
	})
}

// export yields the records of all pages and returns how many there were.
func export(a *app, cmd *cobra.Command, c *client.Client, ns string, opts client.ListOptions, yield func(memory.Record) error) (int, error) {
	bar := a.progress("export")
	defer bar.finish()
	whole := memory.MaxTextBytes
	opts.MaxText = &whole
	n := 0
	for {
		page, err := c.List(cmd.Context(), ns, opts)
		if err != nil {
			return n, fmt.Errorf("export %s after %s: %w", ns, count(n, "memory", "memories"), err)
		}
		for _, rec := range page.Records {
			if err := yield(rec); err != nil {
				return n, err
			}
			n++
		}
		bar.report(memory.Progress{Done: uint64(n), Unit: plural(n, "memory", "memories")})
		if page.Cursor == "" {
			return n, nil
		}
		if page.Cursor == opts.Cursor {
			return n, memory.Errorf(memory.CodeInternal, "export: the node gave the same cursor twice")
		}
		opts.Cursor = page.Cursor
	}
}

// exportGraph writes the knowledge graph as the official MCP memory server does: a
// line for each entity, then for each relation, and no line feed behind the last.
func exportGraph(a *app, cmd *cobra.Command, c *client.Client, ns, output string) error {
	return exportTo(a, ns, output, "line", "lines", func(w io.Writer) (int, error) {
		bar := a.progress("export")
		defer bar.finish()
		n := 0
		err := client.GraphOf(c, ns).Stream(cmd.Context(), client.ReadOptions{}, func(line memory.GraphLine) error {
			if n > 0 {
				if _, err := io.WriteString(w, "\n"); err != nil {
					return fmt.Errorf("write export: %w", err)
				}
			}
			n++
			bar.report(memory.Progress{Done: uint64(n), Unit: plural(n, "line", "lines")})
			if _, err := w.Write(graphLine(line)); err != nil {
				return fmt.Errorf("write export: %w", err)
			}
			return nil
		})
		if err != nil {
			return n, errors.Join(fmt.Errorf("export the graph of %s after %s: %w", ns, count(n, "line", "lines"), err))
		}
		return n, nil
	})
}

// graphLine is a line of the official server's file, byte for byte as JavaScript's
// JSON.stringify writes it.
func graphLine(l memory.GraphLine) []byte {
	var b []byte
	if r := l.Relation; r != nil {
		b = append(b, `{"type":"relation","from":`...)
		b = append(jsString(b, r.From), `,"to":`...)
		b = append(jsString(b, r.To), `,"relationType":`...)
		return append(jsString(b, r.Type), '}')
	}
	if l.Entity == nil {
		return nil
	}
	b = append(b, `{"type":"entity","name":`...)
	b = append(jsString(b, l.Entity.Name), `,"entityType":`...)
	b = append(jsString(b, l.Entity.Type), `,"observations":[`...)
	for i, o := range l.Entity.Observations {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsString(b, o)
	}
	return append(b, "]}"...)
}

// jsString writes a string as JSON.stringify does, which escapes less than
// encoding/json: only quotes, backslashes and control characters.
func jsString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	short := map[byte]byte{'\b': 'b', '\t': 't', '\n': 'n', '\f': 'f', '\r': 'r', '"': '"', '\\': '\\'}
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		c := s[i]
		if e, ok := short[c]; ok {
			b = append(b, '\\', e)
		} else if c < 0x20 {
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		} else {
			b = append(b, c)
		}
	}
	return append(b, '"')
}
