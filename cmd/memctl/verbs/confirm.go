package verbs

import (
	"fmt"
	"io"
	"strings"

	"mneme/memory"
)

// confirm asks before something is done that cannot be undone. word is what must be typed; empty
// means y or yes. Where nobody can be asked, --yes is needed.
func (a *app) confirm(yes bool, question, word string) error {
	if yes {
		return nil
	}
	if !a.sys.isTerminal(a.sys.in) {
		return memory.Errorf(memory.CodeInvalid, "this has to be confirmed and nobody can be asked here").
			WithHint("add --yes to do it, or --dry-run to see what it would do")
	}
	_, _ = fmt.Fprint(a.sys.err, question+" ")
	line, err := a.in.ReadString('\n')
	if err != nil && err != io.EOF {
		return fmt.Errorf("read the answer: %w", err)
	}
	answer := strings.TrimSpace(line)
	if word != "" && answer == word {
		return nil
	}
	if low := strings.ToLower(answer); word == "" && (low == "y" || low == "yes") {
		return nil
	}
	return memory.Errorf(memory.CodeInvalid, "not confirmed, nothing was changed")
}
