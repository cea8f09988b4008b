package verbs

import (
	"fmt"

	"github.com/spf13/cobra"

	"mneme/internal/loader"
)

// importTakeBack forgets what was imported from a source.
func importTakeBack(cmd *cobra.Command, a *app, fl *importFlags) error {
	if fl.source == "" && fl.format == "" {
		return usage(cmd, "--take-back needs --source, --format or both, to say what to forget")
	}
	c, ns, err := a.connect()
	if err != nil {
		return err
	}
	as, err := a.author()
	if err != nil {
		return err
	}
	node := loader.NodeOf(c)
	found, err := loader.Imported(cmd.Context(), node, ns, as, loader.From(fl.source, fl.format))
	if err != nil {
		return err
	}
	n := count(len(found), "memory", "memories")
	if fl.dryRun {
		return a.emit(map[string]any{"namespace": ns, "would_forget": len(found)}, recordIDs(found), func() { a.printf("%s: would forget %s\n", ns, n) })
	}
	if len(found) > 0 {
		if err := a.confirm(fl.yes, fmt.Sprintf("Forget %s that were imported into %s? [y/N]", n, ns), ""); err != nil {
			return err
		}
	}
	if err := loader.Forget(cmd.Context(), node, ns, as, found, importBar(a, "forget")); err != nil {
		return err
	}
	return a.emit(map[string]any{"namespace": ns, "forgotten": len(found)}, recordIDs(found), func() { a.printf("%s: forgot %s\n", ns, n) })
}

// importBar is progress as an import shows it.
func importBar(a *app, what string) loader.Bar {
	p := a.progress(what)
	return loader.Bar{Report: p.report, Finish: p.finish}
}
