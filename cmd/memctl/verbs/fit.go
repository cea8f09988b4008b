package verbs

import (
	"fmt"

	"github.com/spf13/cobra"

	"mneme/memory"
)

// fitFlags say how much of each hit or record an answer has.
type fitFlags struct {
	maxText, budget int
	fields          []string
}

func (f *fitFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.IntVar(&f.maxText, "max-text", memory.DefaultMaxText, "at most so many characters of each text")
	fl.IntVar(&f.budget, "budget", 0, "at most so many tokens (cl100k_base) in the answer as JSON")
	fl.StringSliceVar(&f.fields, "fields", nil, "with --json, only these fields, separated by commas")
}

// fit returns what was given.
func (f *fitFlags) fit(a *app, cmd *cobra.Command) (memory.Fit, error) {
	var out memory.Fit
	if cmd.Flags().Changed("max-text") {
		out.MaxText = &f.maxText
	}
	if cmd.Flags().Changed("budget") {
		out.Budget = &f.budget
	}
	if out.Fields = f.fields; len(out.Fields) > 0 && !a.flags.json {
		return out, usage(cmd, "--fields goes with --json")
	}
	return out, nil
}

// printLeftOff says what the budget had no room for.
func printLeftOff(a *app, l *memory.LeftOff) {
	if l != nil {
		a.println(a.paint("2", fmt.Sprintf("left off: %d for which the budget had no room; %s", l.Count, oneLine(l.Hint))))
	}
}

// shown is an answer with the fields that were asked for.
type shown interface {
	Shown(fields []string) (any, error)
}

// emitShown is emit for an answer of which only some fields may be wanted.
func emitShown(a *app, answer shown, fields, ids []string, human func()) error {
	doc, err := answer.Shown(fields)
	if err != nil {
		return err
	}
	return a.emit(doc, ids, human)
}
