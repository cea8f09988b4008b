package verbs

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"mneme/memory"
)

// question is asked before something is done that cannot be undone.
type question struct {
	what    string // would be done
	word    string // must be typed; empty means y or yes
	instead string // what else can be done; "" is nothing
	flag    string // answers it where nobody can be asked; "" is --yes
}

// confirm asks a question that ends with how to answer it.
func (a *app) confirm(yes bool, what, word string) error {
	return question{what: what, word: word}.ask(a, yes)
}

// ask returns an error where the answer is no. Where nobody can be asked, it says what would be
// done, and which flag is needed.
func (q question) ask(a *app, yes bool) error {
	if yes {
		return nil
	}
	what, instead := oneLine(q.what), ""
	if q.instead != "" {
		what += " (" + q.instead + ") [y/N]"
		instead = "; " + q.instead
	}
	if !a.sys.isTerminal(a.sys.in) {
		asked, _, _ := strings.Cut(what, "? ") // behind it stands how to answer
		return memory.Errorf(memory.CodeInvalid, "this has to be confirmed and nobody can be asked here: %s?", asked).
			WithHint("add %s to do it, or --dry-run to see what it would do%s", cmp.Or(q.flag, "--yes"), instead)
	}
	_, _ = fmt.Fprint(a.sys.err, what+" ")
	line, err := a.in.ReadString('\n')
	if err != nil && err != io.EOF {
		return fmt.Errorf("read the answer: %w", err)
	}
	answer := strings.TrimSpace(line)
	if q.word != "" && answer == q.word {
		return nil
	}
	if low := strings.ToLower(answer); q.word == "" && (low == "y" || low == "yes") {
		return nil
	}
	return memory.Errorf(memory.CodeInvalid, "not confirmed, nothing was changed")
}
