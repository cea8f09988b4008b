package verbs

import (
	"bufio"
	"context"
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

// importFlags are the flags of import.
type importFlags struct {
	format, prefix, source, scope string
	dryRun, prune, revise, yes    bool
}

func importCmd(a *app) *cobra.Command {
	var fl importFlags
	var takeBack bool
	cmd := &cobra.Command{
		Use:   "import PATH... | -",
		Short: "Bring memories along from files, folders and other tools",
		Long:  importHelp(),
		Example: `  memctl import -n team-a memories.jsonl
  memctl import -n team-a ~/notes                     # a folder of Markdown; again after changes
  memctl import -n team-a CLAUDE.md AGENTS.md
  memctl import -n ann --scope agent --as ann chatgpt-export.zip
  memctl import -n team-a ~/.claude/projects --dry-run
  memctl import -n team-a ~/.memorix/data
  memctl export -n old | memctl import -n new -
  memctl import -n team-a --take-back --source notes  # forget what was imported from there`,
		Args: func(cmd *cobra.Command, args []string) error {
			if takeBack {
				return wantArgs(0, 0)(cmd, args)
			}
			return wantArgs(1, -1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if fl.scope != "" && fl.scope != string(memory.ScopeTeam) && fl.scope != string(memory.ScopeAgent) {
				return usage(cmd, "--scope is %q, it must be team or agent", fl.scope)
			}
			if takeBack {
				return importTakeBack(cmd, a, &fl)
			}
			return newImportRun(a, fl).run(cmd.Context(), args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&fl.format, "format", "", "format of the files (default: found out): "+strings.Join(importer.Formats(), ", "))
	f.StringVar(&fl.prefix, "namespace-prefix", "", "begin the namespaces of locomo like this")
	f.StringVar(&fl.source, "source", "", "name what is imported, in uris and provenance (default: the folder's or file's name)")
	f.StringVar(&fl.scope, "scope", "", "scope of memories that name none: team (default), or agent: only the acting agent's own")
	f.BoolVar(&fl.prune, "prune", false, "forget memories of files and sections that are no longer there (markdown, obsidian)")
	f.BoolVar(&takeBack, "take-back", false, "forget what was imported, by --source, --format or both")
	f.BoolVar(&fl.revise, "revise", false, "let files that say they are a memory of the namespace revise it, also where no export is known to have written them; asks first")
	f.BoolVar(&fl.dryRun, "dry-run", false, "only read, and say what there is and what would be done")
	f.BoolVar(&fl.yes, "yes", false, "do not ask before forgetting or revising")
	completeFlag(cmd, "format", completeWords(importer.Formats()...))
	completeFlag(cmd, "scope", completeWords("team", "agent"))
	return cmd
}

func importHelp() string {
	var b strings.Builder
	b.WriteString(`Bring memories along from files, folders and other tools. What a path is is
found out and said; --format names it. Every memory gets an id that is the same at
every reading, so an import can be repeated, or taken up again after it was
interrupted: what is there already is left, what has changed is revised. Metadata
say where each memory came from.

What is left out is counted with the reason and the first places. What cannot be
read is named with its line and makes the exit code 2; everything else goes in.

Formats:
`)
	for _, name := range importer.Formats() {
		fmt.Fprintf(&b, "  %-12s %s\n", name, importer.About(name))
	}
	return strings.TrimRight(b.String(), "\n")
}

// importRun is one import.
type importRun struct {
	a     *app
	c     *client.Client // nil in a dry run that found none
	flags importFlags

	file    string
	format  string // of the file
	single  bool   // it is no folder
	send    importSender
	known   importKnown
	graph   importGraph
	summary importSummary
}

func newImportRun(a *app, fl importFlags) *importRun {
	r := &importRun{a: a, flags: fl, summary: importSummary{Format: fl.format, DryRun: fl.dryRun}}
	r.send = importSender{run: r, ready: map[string]bool{}, empty: map[string]bool{}, moved: map[string]string{}}
	r.known = importKnown{run: r, sources: map[importSource]bool{}, entered: map[string]bool{}, looked: map[string]bool{}}
	r.graph = importGraph{run: r}
	return r
}

func (r *importRun) run(ctx context.Context, files []string) error {
	var err error
	if r.c, err = r.a.dial(); err != nil && !r.flags.dryRun {
		return err
	}
	if r.flags.revise && !r.flags.dryRun {
		if err := r.a.confirm(r.flags.yes, "Let files revise memories that were not imported from them, where they say that they are those? [y/N]", ""); err != nil {
			return err
		}
	}
	r.send.bar = r.a.progress("import")
	for _, file := range files {
		if err = r.read(ctx, file); err != nil {
			break
		}
	}
	if err == nil {
		err = r.send.derived(ctx)
	}
	if err != nil {
		r.send.abandon()
	}
	r.send.bar.finish()
	if err != nil {
		if r.send.done > 0 && !r.flags.dryRun {
			r.a.note("%s were sent; run the same import again to go on, nothing is imported twice", count(int(r.send.done), "memory", "memories"))
		}
		return fmt.Errorf("import %s: %w", r.file, err)
	}
	r.known.absent()
	if r.flags.prune {
		if err := r.prune(ctx); err != nil {
			return err
		}
	}
	if err := r.a.emit(r.summary, r.send.ids, func() { r.summary.print(r.a) }); err != nil {
		return err
	}
	return r.summary.failure()
}

// options says where the items of a file go. Only a namespace given as a flag takes
// the conversations of locomo.
func (r *importRun) options() (importer.Options, error) {
	author, err := r.a.author()
	if err != nil {
		return importer.Options{}, err
	}
	opts := importer.Options{Agent: author, NamespacePrefix: r.flags.prefix, Source: r.flags.source, Scope: memory.Scope(r.flags.scope)}
	if r.format == "locomo" {
		opts.Namespace = r.a.flags.namespace
		return opts, nil
	}
	if r.flags.prefix != "" {
		return opts, memory.Errorf(memory.CodeInvalid, "--namespace-prefix is for locomo, %s goes into one namespace", r.format).
			WithHint("give -n NAMESPACE")
	}
	opts.Namespace, err = r.a.namespace()
	return opts, err
}

// open finds out what a file is, says so, and begins to read it.
func (r *importRun) open(file string) (importer.Source, error) {
	in := bufio.NewReaderSize(r.a.in, 64<<10)
	r.format = r.flags.format
	if r.format == "" {
		var why string
		var err error
		if file == "-" {
			r.format, why, err = importer.FindStream(in)
		} else {
			r.format, why, err = importer.Find(file)
		}
		if err != nil {
			return nil, err
		}
		r.summary.found(file, r.format, why)
		if r.format != "jsonl" {
			r.a.note("%s: %s: %s", file, r.format, why)
		}
	}
	opts, err := r.options()
	if err != nil {
		return nil, err
	}
	if file == "-" {
		return importer.Open(r.format, in, opts)
	}
	info, err := os.Stat(file)
	r.single = err == nil && !info.IsDir()
	return importer.OpenPath(r.format, file, opts)
}

func (r *importRun) read(ctx context.Context, file string) (err error) {
	r.file = file
	src, err := r.open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	for {
		if err := ctx.Err(); err != nil {
			return memory.Errorf(memory.CodeTimeout, "interrupted").WithCause(err)
		}
		item, err := src.Next()
		var bad *importer.ItemError
		var skip *importer.Skip
		switch {
		case errors.Is(err, io.EOF):
			return r.finishFile(ctx)
		case errors.As(err, &bad):
			r.summary.malformed(importProblem{File: file, Line: bad.Line, Where: bad.Where, Code: memory.CodeInvalid, Detail: bad.Err.Error()})
			continue
		case errors.As(err, &skip):
			r.summary.skip(file, skip)
			continue
		case err != nil:
			return errors.Join(err, r.finishFile(ctx))
		}
		if err := r.take(ctx, item); err != nil {
			return err
		}
	}
}

// finishFile sends what is left of a file.
func (r *importRun) finishFile(ctx context.Context) error {
	if err := r.send.flush(ctx); err != nil {
		return err
	}
	r.known.leave()
	return r.graph.flush(ctx)
}

// take sends an item on its way.
func (r *importRun) take(ctx context.Context, item importer.Item) error {
	switch {
	case r.flags.dryRun && (item.Entity != nil || item.Relation != nil):
		r.summary.namespace(item.Namespace).Found++
		r.send.done++
		return nil
	case item.Entity != nil || item.Relation != nil:
		return r.graph.add(ctx, item)
	}
	r.known.note(item)
	there, err := r.known.settled(ctx, item)
	if there || err != nil {
		return err
	}
	if r.flags.dryRun {
		r.summary.namespace(item.Namespace).Found++
		r.send.done++
		return nil
	}
	return r.send.add(ctx, item)
}
