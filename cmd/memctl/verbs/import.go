package verbs

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"mneme/internal/importer"
	"mneme/internal/loader"
	"mneme/memory"
)

// importFlags are the flags of import.
type importFlags struct {
	format, prefix, source, scope string
	dryRun, prune, again          bool
	revise, moved, yes            bool
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
			return importFiles(cmd.Context(), a, &fl, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&fl.format, "format", "", "format of the files (default: found out): "+strings.Join(importer.Formats(), ", "))
	f.StringVar(&fl.prefix, "namespace-prefix", "", "begin the namespaces of locomo like this")
	f.StringVar(&fl.source, "source", "", "name what is imported, in uris and provenance (default: the folder's or file's name)")
	f.StringVar(&fl.scope, "scope", "", "scope of memories that name none: team (default), or agent: only the acting agent's own")
	f.BoolVar(&fl.prune, "prune", false, "forget memories of files and sections that are no longer there (markdown, obsidian)")
	f.BoolVar(&fl.again, "again", false, "bring back what was forgotten here since it was imported")
	f.BoolVar(&takeBack, "take-back", false, "forget what was imported, by --source, --format or both")
	f.BoolVar(&fl.revise, "revise", false, "let an export revise its memories also where they were revised since, and where only it says that it is one of them; asks first")
	f.BoolVar(&fl.moved, "moved", false, "take a folder that lies elsewhere than the one of its name that was imported before for the same: its files revise those memories")
	f.BoolVar(&fl.dryRun, "dry-run", false, "only read, and say what there is and what would be done")
	f.BoolVar(&fl.yes, "yes", false, "do not ask before doing what --prune, --revise or --take-back says")
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

// importFiles is one import.
func importFiles(ctx context.Context, a *app, fl *importFlags, files []string) error {
	c, err := a.dial()
	if err != nil && !fl.dryRun {
		return err
	}
	var node loader.Node // a dry run does without
	if err == nil {
		node = loader.NodeOf(c)
	}
	author, err := a.author()
	if err != nil {
		return err
	}
	if fl.revise && !fl.dryRun {
		revise := question{what: "Let exports revise the memories that they say they are, also where these were revised since, or nothing shows that they are exports of them?",
			instead: "without --revise such files and lines are named, and change nothing"}
		if err := revise.ask(a, fl.yes); err != nil {
			return err
		}
	}
	opt := loader.Options{Agent: author, Format: fl.format, In: a.in, DryRun: fl.dryRun, Prune: fl.prune, Again: fl.again, Revise: fl.revise, Moved: fl.moved,
		Of:   func(format string) (importer.Options, error) { return importOptions(a, fl, author, format) },
		Note: func(format string, args ...any) { a.note("%s", oneLine(fmt.Sprintf(format, args...))) },
		Bar:  func(what string) loader.Bar { return importBar(a, what) },
		Confirm: func(q loader.Question) error {
			return question{what: q.What, instead: q.Instead, flag: q.Flag}.ask(a, fl.yes && q.Flag == "")
		},
		Taking: func(ns, file string) string { return "memctl import -n " + ns + " --revise " + shellWord(file) },
		Sleep:  a.sys.sleep,
	}
	var ids []string
	if a.flags.quiet {
		opt.Made = func(id string) { ids = append(ids, id) }
	}
	sum, err := loader.Load(ctx, node, opt, files)
	if err != nil {
		return err
	}
	if err := a.emit(sum, ids, func() { printImport(a, sum) }); err != nil {
		return err
	}
	return importFailure(sum)
}

// importOptions says where the items of a file go. Only a namespace given as a flag takes
// the conversations of locomo.
func importOptions(a *app, fl *importFlags, author, format string) (opts importer.Options, err error) {
	opts = importer.Options{Agent: author, NamespacePrefix: fl.prefix, Source: fl.source, Scope: memory.Scope(fl.scope)}
	if format == "locomo" {
		opts.Namespace = a.flags.namespace
		return opts, nil
	}
	if fl.prefix != "" {
		return opts, memory.Errorf(memory.CodeInvalid, "--namespace-prefix is for locomo, %s goes into one namespace", format).
			WithHint("give -n NAMESPACE")
	}
	opts.Namespace, err = a.namespace()
	return opts, err
}
