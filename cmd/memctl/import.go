package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mneme/client"
	"mneme/internal/importer"
	"mneme/memory"
)

// Batches of an import: a request of at most so many captures or bytes, tried
// again so often while the node is busy.
const (
	importBatch    = 100
	importBytes    = 4 << 20
	importAttempts = 6
	importPause    = 250 * time.Millisecond
	importProblems = 100 // listed; the others are only counted
)

func importCmd(a *app) *cobra.Command {
	var format, prefix string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "import FILE... | -",
		Short: "Read memories from files",
		Long: `Read memories from files. Every memory gets an id that is the same at every
reading, so an import can be repeated or taken up again: what is there already is
a duplicate. Malformed lines are named and left out, and make the exit code 2.

jsonl: one capture a line, or one line of 'memctl export'.
locomo: the LoCoMo data set, one namespace for each conversation, made if missing.`,
		Example: `  memctl import -n team-a memories.jsonl
  memctl export -n old | memctl import -n new -
  memctl import --format locomo --namespace-prefix bench- locomo10.json`,
		Args: wantArgs(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			run := &importRun{a: a, format: format, prefix: prefix, dryRun: dryRun,
				ready: map[string]bool{}, summary: importSummary{Format: format, DryRun: dryRun}}
			return run.run(cmd.Context(), args)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&format, "format", "jsonl", "format of the files: "+strings.Join(importer.Formats(), ", "))
	fl.StringVar(&prefix, "namespace-prefix", "", "begin the namespaces of locomo like this")
	fl.BoolVar(&dryRun, "dry-run", false, "only read the files and say what is in them")
	completeFlag(cmd, "format", completeWords(importer.Formats()...))
	return cmd
}

// importRun is one import.
type importRun struct {
	a              *app
	c              *client.Client // nil in a dry run
	format, prefix string
	dryRun         bool

	file    string
	batch   []importer.Item // all of one namespace
	bytes   int             // of the batch's texts
	ready   map[string]bool // namespaces that exist
	bar     *progress
	done    uint64
	ids     []string // with -q
	summary importSummary
}

func (r *importRun) run(ctx context.Context, files []string) error {
	opts, err := r.options()
	if err != nil {
		return err
	}
	if !r.dryRun {
		if r.c, err = r.a.dial(); err != nil {
			return err
		}
	}
	r.bar = r.a.progress("import")
	for _, file := range files {
		if err = r.read(ctx, file, opts); err != nil {
			break
		}
	}
	r.bar.finish()
	if err != nil {
		if r.done > 0 && !r.dryRun {
			r.a.note("%s were sent; run the same import again to go on, nothing is imported twice", count(int(r.done), "memory", "memories"))
		}
		return fmt.Errorf("import %s: %w", r.file, err)
	}
	if err := r.a.emit(r.summary, r.ids, func() { r.summary.print(r.a) }); err != nil {
		return err
	}
	return r.summary.failure()
}

// options says where items go. Only a namespace given as a flag takes the
// conversations of locomo.
func (r *importRun) options() (importer.Options, error) {
	author, err := r.a.author()
	if err != nil {
		return importer.Options{}, err
	}
	opts := importer.Options{Agent: author, NamespacePrefix: r.prefix}
	if r.format == "locomo" {
		opts.Namespace = r.a.flags.namespace
		return opts, nil
	}
	if r.prefix != "" {
		return opts, memory.Errorf(memory.CodeInvalid, "--namespace-prefix is for locomo, %s goes into one namespace", r.format).
			WithHint("give -n NAMESPACE")
	}
	opts.Namespace, err = r.a.namespace()
	return opts, err
}

func (r *importRun) read(ctx context.Context, file string, opts importer.Options) error {
	r.file = file
	var in io.Reader = r.a.in
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return memory.Errorf(memory.CodeInvalid, "%w", err)
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	src, err := importer.Open(r.format, in, opts)
	if err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return memory.Errorf(memory.CodeTimeout, "interrupted").WithCause(err)
		}
		item, err := src.Next()
		var bad *importer.ItemError
		switch {
		case errors.Is(err, io.EOF):
			return r.flush(ctx)
		case errors.As(err, &bad):
			r.summary.malformed(importProblem{File: file, Line: bad.Line, Where: bad.Where,
				Code: memory.CodeInvalid, Detail: bad.Err.Error()})
			continue
		case err != nil:
			if ferr := r.flush(ctx); ferr != nil {
				return errors.Join(err, ferr)
			}
			return err
		}
		if err := r.add(ctx, item); err != nil {
			return err
		}
	}
}

func (r *importRun) add(ctx context.Context, item importer.Item) error {
	if r.dryRun {
		r.summary.namespace(item.Namespace).Found++
		r.done++
		return nil
	}
	size := len(item.Capture.Text) + len(item.Capture.Metadata)
	if len(r.batch) > 0 && (r.batch[0].Namespace != item.Namespace || len(r.batch) == importBatch || r.bytes+size > importBytes) {
		if err := r.flush(ctx); err != nil {
			return err
		}
	}
	r.batch = append(r.batch, item)
	r.bytes += size
	return nil
}

// flush sends the batch, and what the node was too busy for again.
func (r *importRun) flush(ctx context.Context) error {
	if len(r.batch) == 0 {
		return nil
	}
	if err := r.prepare(ctx, r.batch[0].Namespace); err != nil {
		return err
	}
	for attempt := 1; len(r.batch) > 0; attempt++ {
		left, err := r.send(ctx)
		if err != nil && (!busy(memory.CodeOf(err)) || attempt == importAttempts) {
			return err
		}
		r.batch = left
		if len(left) == 0 {
			break
		}
		if attempt == importAttempts {
			return memory.Errorf(memory.CodeOverloaded, "the node stayed too busy for %s", count(len(left), "memory", "memories"))
		}
		pause := importPause << (attempt - 1)
		if err != nil {
			pause = max(pause, memory.AsError(err).RetryAfter)
		}
		if err := r.a.sys.sleep(ctx, pause); err != nil {
			return memory.Errorf(memory.CodeTimeout, "interrupted").WithCause(err)
		}
	}
	r.batch, r.bytes = r.batch[:0], 0
	return nil
}

// busy reports whether a refusal with this code may pass.
func busy(code memory.Code) bool {
	switch code {
	case memory.CodeOverloaded, memory.CodeUnavailable, memory.CodeTimeout, memory.CodeOutcomeUnknown:
		return true
	}
	return false
}

// send sends the batch once and returns the items to send again.
func (r *importRun) send(ctx context.Context) ([]importer.Item, error) {
	captures := make([]memory.Capture, len(r.batch))
	for i, item := range r.batch {
		captures[i] = item.Capture
	}
	ns := r.batch[0].Namespace
	resp, err := r.c.CaptureBatch(ctx, ns, captures, client.CaptureOptions{})
	if err != nil {
		return r.batch, err
	}
	var again []importer.Item
	counts := r.summary.namespace(ns)
	for i, res := range resp.Results {
		item := r.batch[i]
		if res.Error != nil && busy(res.Error.Code) {
			again = append(again, item)
			continue
		}
		counts.Found++
		r.done++
		r.result(counts, item, res)
	}
	r.bar.report(memory.Progress{Done: r.done, Unit: "memories"})
	return again, nil
}

func (r *importRun) result(counts *importCounts, item importer.Item, res memory.CaptureResult) {
	switch {
	case res.Status == memory.StatusCreated:
		counts.Created++
		if r.a.flags.quiet {
			r.ids = append(r.ids, res.RecordID)
		}
		return
	case res.Status == memory.StatusDuplicate,
		// The record that this line was exported from is still there.
		res.Status == memory.StatusConflict && item.RecordID != "" && res.RecordID == item.RecordID:
		counts.Duplicates++
		return
	case res.Status == memory.StatusConflict:
		counts.Conflicts++
	default:
		counts.Rejected++
	}
	p := importProblem{File: r.file, Line: item.Line, Where: item.Capture.ID, Code: memory.CodeConflict, Detail: "its id or uri is taken by something else"}
	if res.Error != nil {
		p.Code, p.Detail = res.Error.Code, res.Error.Detail
	}
	r.summary.problem(p)
}

// prepare makes sure that a namespace exists before the first batch goes there,
// and so finds out at once when no node does. Only locomo makes namespaces.
func (r *importRun) prepare(ctx context.Context, ns string) error {
	if r.ready[ns] {
		return nil
	}
	err := r.patiently(ctx, func() error {
		_, err := r.c.Namespace(ctx, ns)
		return err
	})
	if r.format == "locomo" && memory.CodeOf(err) == memory.CodeNotFound {
		err = r.patiently(ctx, func() error {
			_, err := r.c.CreateNamespace(ctx, memory.CreateNamespace{Name: ns})
			return err
		})
		if memory.CodeOf(err) == memory.CodeConflict {
			err = nil // someone else was faster
		}
		if err == nil {
			r.a.note("created namespace %s", ns)
		}
	}
	r.ready[ns] = err == nil
	return err
}

// patiently repeats f while the node is overloaded.
func (r *importRun) patiently(ctx context.Context, f func() error) error {
	for attempt := 1; ; attempt++ {
		err := f()
		if memory.CodeOf(err) != memory.CodeOverloaded || attempt == importAttempts {
			return err
		}
		if serr := r.a.sys.sleep(ctx, max(importPause<<(attempt-1), memory.AsError(err).RetryAfter)); serr != nil {
			return memory.Errorf(memory.CodeTimeout, "interrupted").WithCause(serr)
		}
	}
}
