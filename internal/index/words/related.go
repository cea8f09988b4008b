package words

import (
	_ "embed"
	"strings"
)

// RelatedWord is a word of a group of Related.
type RelatedWord struct {
	Word string
	// AskedOnly: who asks for it is shown the others, and it is not found for them. The index has
	// stems, and its own is that of other words that people write: relates for relational.
	AskedOnly bool
}

// Related gives groups of words of the trade that people use for one another when they ask
// about what somebody else wrote. Other than those of Aliases they are no names of one
// thing: each word is near to every other of its group, and what is near to a near word
// need not be near. The same word may be in several groups.
func Related() (groups [][]RelatedWord) {
	for line := range strings.Lines(related) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		var group []RelatedWord
		for word := range strings.SplitSeq(line, " = ") {
			bare := strings.TrimSuffix(strings.TrimPrefix(word, "("), ")")
			group = append(group, RelatedWord{Word: bare, AskedOnly: bare != word})
		}
		groups = append(groups, group)
	}
	return groups
}

// related has a group a line, its words between " = ", those that are asked only in
// parentheses; a line that begins with # is the title of what follows. They are base forms, in
// lower case. Left out are antonyms, products that stand for one another, what has
// a second meaning that is more common than the one that is meant, and the words of
// everyday life: decision 0044 has what those cost.
//
//go:embed related.txt
var related string
