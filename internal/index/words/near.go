package words

import (
	"sync"
	"unicode/utf8"

	"github.com/blevesearch/vellum"
	"github.com/blevesearch/vellum/levenshtein"
)

// MaxNear is the greatest length in bytes of a word that is looked for by edits.
// Longer words are rarely typed, and the library's automata of them are wrong where a
// character lies across a multiple of 32 bytes.
const MaxNear = 32

// MaxEdits is the greatest number of edits.
const MaxEdits = 2

// Match is a term that edits make of a word.
type Match struct {
	Term  string
	Edits int
}

// Work bounds a look-up: the nodes of the terms' trie that may still be visited.
// Each look-up takes from it what it visited.
type Work struct{ Nodes int }

// builders make automata; they are made once, in a few milliseconds.
var builders = [MaxEdits + 1]func() (*levenshtein.LevenshteinAutomatonBuilder, error){
	1: sync.OnceValues(func() (*levenshtein.LevenshteinAutomatonBuilder, error) {
		return levenshtein.NewLevenshteinAutomatonBuilder(1, true)
	}),
	2: sync.OnceValues(func() (*levenshtein.LevenshteinAutomatonBuilder, error) {
		return levenshtein.NewLevenshteinAutomatonBuilder(2, true)
	}),
}

// Near appends the terms that edits make of word, ascending, without word itself: at
// most so many edits, each of which inserts, deletes or replaces a character or swaps
// two neighbours, none of them twice. With more than one edit the first character
// stays. It finds nothing for words longer than MaxNear, and where the work is used up.
func (v *Vocabulary) Near(dst []Match, word string, edits int, work *Work) []Match {
	if word == "" || len(word) > MaxNear || edits < 1 || edits > MaxEdits || !utf8.ValidString(word) {
		return dst
	}
	builder, err := builders[edits]()
	if err != nil {
		return dst
	}
	dfa, err := builder.BuildDfa(word, uint8(edits))
	if err != nil {
		return dst // of too many states
	}
	a := &automaton{DFA: dfa, work: work}
	if edits > 1 {
		_, n := utf8.DecodeRuneInString(word)
		a.fixed = word[:n]
		a.behind = dfa.Start()
		for i := range n {
			a.behind = dfa.Accept(a.behind, word[i])
		}
	}
	from := len(dst)
	v.forward.walk(a, func(term string, edits int) {
		if edits > 0 {
			dst = append(dst, Match{term, edits})
		}
	})
	if work.Nodes <= 0 {
		return dst[:from]
	}
	sortMatches(dst[from:])
	return dst
}

// automaton accepts what is near to a word. It counts the nodes that a walk comes to,
// and ends the walk when they are used up.
type automaton struct {
	*levenshtein.DFA
	fixed  string // what a term must begin with
	behind int    // the state behind it
	work   *Work
}

var _ vellum.Automaton = (*automaton)(nil)

// States below 0 are those before as many bytes of fixed.

func (a *automaton) Start() int {
	if a.fixed != "" {
		return -len(a.fixed)
	}
	return a.DFA.Start()
}

func (a *automaton) Accept(state int, b byte) int {
	switch {
	case state >= 0:
		return a.DFA.Accept(state, b)
	case a.fixed[len(a.fixed)+state] != b:
		return int(levenshtein.SinkState)
	case state == -1:
		return a.behind
	}
	return state + 1
}

func (a *automaton) IsMatch(state int) bool { return state >= 0 && a.DFA.IsMatch(state) }

// CanMatch is asked once for each node that a walk may go to.
func (a *automaton) CanMatch(state int) bool {
	if a.work.Nodes <= 0 || state == int(levenshtein.SinkState) {
		return false
	}
	a.work.Nodes--
	return true
}

// walk visits what the automaton accepts: first the transducer's, then the others. A
// node that both have is counted once.
func (t terms) walk(a *automaton, visit func(term string, edits int)) {
	if t.built != nil {
		it, err := t.built.Search(a, nil, nil)
		for ; err == nil; err = it.Next() {
			k, _ := it.Current()
			visit(string(k), editsOf(a, string(k)))
		}
	}
	t.walkFresh(a, visit)
}

func editsOf(a *automaton, term string) int {
	_, n := a.DFA.MatchAndDistance(term)
	return int(n)
}

// walkFresh goes over the list as over a trie: states holds the automaton's state
// behind each byte of the term before, and nodes the transducer's.
func (t terms) walkFresh(a *automaton, visit func(term string, edits int)) {
	var states, nodes []int
	const nowhere = -1
	root := nowhere
	if t.built != nil {
		root = t.built.Start()
	}
	states, nodes = append(states, a.Start()), append(nodes, root)
	before := ""
	for i := 0; i < len(t.fresh); {
		term := t.fresh[i]
		at := 0
		for at < len(before) && at < len(term) && before[at] == term[at] {
			at++
		}
		states, nodes = states[:at+1], nodes[:at+1]
		dead := false
		for ; at < len(term) && !dead; at++ {
			state, node := a.Accept(states[at], term[at]), nodes[at]
			if node != nowhere {
				if node = t.built.Accept(node, term[at]); !t.built.CanMatch(node) {
					node = nowhere
				}
			}
			if node == nowhere {
				dead = !a.CanMatch(state)
			} else {
				dead = a.work.Nodes <= 0 || state == int(levenshtein.SinkState)
			}
			if !dead {
				states, nodes = append(states, state), append(nodes, node)
			}
		}
		if !dead {
			if a.IsMatch(states[len(term)]) {
				visit(term, editsOf(a, term))
			}
			before = term
			i++
			continue
		}
		if a.work.Nodes <= 0 {
			return
		}
		// No term that begins with term[:at] is accepted.
		before = term[:at-1]
		i += behind(t.fresh[i:], term[:at])
	}
}

// behind is how many strings of an ascending list come before those that are greater
// than all that begin with prefix. The first one begins with it.
func behind(list []string, prefix string) int {
	lo, hi := 0, 1
	begins := func(i int) bool { return len(list[i]) >= len(prefix) && list[i][:len(prefix)] == prefix }
	for hi < len(list) && begins(hi) {
		lo, hi = hi, 2*hi
	}
	hi = min(hi, len(list))
	for lo+1 < hi {
		if mid := (lo + hi) / 2; begins(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}
