package verbs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mneme/internal/importer"
	"mneme/internal/loader"
	"mneme/memory"
)

// maxSources is how many sources are named.
const maxSources = 20

// importTakeBack forgets what was imported from a source.
func importTakeBack(cmd *cobra.Command, a *app, fl *importFlags) error {
	if fl.source == "" && fl.format == "" {
		return usage(cmd, "--take-back needs --source, --format or both, to say what to forget")
	}
	if fl.format != "" && !slices.Contains(importer.TakenBack(), fl.format) {
		return usage(cmd, "--take-back knows no --format %q; what can be taken back is of %s", fl.format, strings.Join(importer.TakenBack(), ", "))
	}
	c, ns, err := a.connect()
	if err != nil {
		return err
	}
	as, err := a.author()
	if err != nil {
		return err
	}
	node := loader.Patient(loader.NodeOf(c), a.sys.sleep)
	there := map[string]int{}
	var found []memory.Record
	if err := loader.Imported(cmd.Context(), node, ns, as, memory.Filter{}, func(rec memory.Record, p importer.Provenance) {
		there[strings.TrimSpace(p.Source+" ("+p.From+")")]++
		if p.Home != "" {
			there[p.Home+" (mneme)"]++
		}
		if p.IsFrom(fl.source, fl.format) {
			found = append(found, rec)
		}
	}); err != nil {
		return err
	}
	if len(found) == 0 {
		return nothingImported(ns, fl, there)
	}
	n := count(len(found), "memory", "memories")
	if fl.dryRun {
		return a.emit(map[string]any{"namespace": ns, "would_forget": len(found)}, recordIDs(found), func() { a.printf("%s: would forget %s\n", ns, n) })
	}
	if err := a.confirm(fl.yes, fmt.Sprintf("Forget %s imported into %s %s? [y/N]", n, ns, fromWhere(fl)), ""); err != nil {
		return err
	}
	if err := loader.Forget(cmd.Context(), node, ns, as, found, importBar(a, "forget")); err != nil {
		return err
	}
	return a.emit(map[string]any{"namespace": ns, "forgotten": len(found)}, recordIDs(found), func() { a.printf("%s: forgot %s\n", ns, n) })
}

// fromWhere says what is taken back.
func fromWhere(fl *importFlags) string {
	if fl.source == "" {
		return "of format " + fl.format
	}
	return "from " + strings.TrimSpace(fl.source+" "+fl.format)
}

// nothingImported says that nothing of a source is there, and which sources are.
func nothingImported(ns string, fl *importFlags, there map[string]int) error {
	err := memory.Errorf(memory.CodeNotFound, "nothing in %s was imported %s", ns, fromWhere(fl))
	var names []string
	for _, name := range slices.Sorted(maps.Keys(there)) {
		if len(names) == maxSources {
			names = append(names, "…")
			break
		}
		names = append(names, fmt.Sprintf("%s, %s", name, count(there[name], "memory", "memories")))
	}
	if len(names) == 0 {
		return err.WithHint("nothing was imported there that you see")
	}
	return err.WithHint("what was imported there is: %s", strings.Join(names, "; "))
}

// importBar is progress as an import shows it.
func importBar(a *app, what string) loader.Bar {
	p := a.progress(what)
	return loader.Bar{Report: p.report, Finish: p.finish}
}
