package words

import (
	_ "embed"
	"strings"
)

// Related gives groups of words of the trade that people use for one another when they ask
// about what somebody else wrote. Other than those of Aliases they are no names of one
// thing: each word is near to every other of its group, and what is near to a near word
// need not be near. The same word may be in several groups.
func Related() (groups [][]string) {
	for line := range strings.Lines(related) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			groups = append(groups, strings.Split(line, " = "))
		}
	}
	return groups
}

// related has a group a line, its words between " = "; a line that begins with # is the
// title of what follows. They are base forms, in lower case. Left out are antonyms, what has
// a second meaning that is more common than the one that is meant, and the words of
// everyday life: decision 0044 has what those cost.
//
//go:embed related.txt
var related string
