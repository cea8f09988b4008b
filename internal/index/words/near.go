package words

import (
	"unicode/utf8"

	"github.com/blevesearch/vellum"
)

// MaxNear is the greatest length in bytes of a word that is looked for by edits.
// Longer words are rarely typed.
const MaxNear = 64

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

// Near appends the terms that edits make of the word of a pattern, ascending, without
// that word. It finds nothing where the work is used up.
func (v *Vocabulary) Near(dst []Match, p *Pattern, work *Work) []Match {
	if len(p.word) == 0 {
		return dst
	}
	p.work = work
	from := len(dst)
	v.forward.walk(p, func(term string, edits int) {
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

// Pattern accepts what is near to a word: what at most so many edits make of it, each of
// which inserts, deletes or replaces a character or swaps two neighbours, none of them
// twice. With more than one edit the first character stays. It counts the nodes that a
// walk comes to, and ends the walk when they are used up. It is used by one look-up at a
// time, in as many vocabularies as there are.
//
// A state is what stands behind so many bytes of a term: the row of the table of Wagner
// and Fischer ("The String-to-String Correction Problem", 1974) as far as it can be within
// the edits, with the row before it, for swaps (Lowrance and Wagner, 1975). As terms are
// walked depth first, there is one state for each length, and none is built that no term
// leads to.
type Pattern struct {
	word   []rune
	edits  int
	work   *Work
	states [maxDepth + 1]state
}

// maxDepth is how many bytes may be near to a word.
const maxDepth = MaxNear + MaxEdits*utf8.UTFMax + 1

// state is the rows behind a whole number of characters, and the bytes of the next one.
type state struct {
	row, before row
	characters  int
	last        rune // the character before
	next        [utf8.UTFMax]byte
	bytes       int // of next that are there
}

// row[b] is the number of edits between the first n characters of a term and the first
// n+b-edits ones of the word; beyond the edits it is only more than those.
type row [2*MaxEdits + 1]uint8

const far = MaxEdits + 1

// Set makes p the pattern of a word. Nothing is near to what is longer than MaxNear, or no
// text.
func (p *Pattern) Set(word string, edits int) {
	p.word, p.edits = p.word[:0], edits
	if len(word) > MaxNear || edits < 1 || edits > MaxEdits || !utf8.ValidString(word) {
		return
	}
	for _, r := range word {
		p.word = append(p.word, r)
	}
	p.states[0] = state{}
	first := &p.states[0]
	for b := range first.row {
		first.row[b], first.before[b] = far, far
		if j := b - edits; j >= 0 && j <= edits {
			first.row[b] = uint8(j)
		}
	}
}

var _ vellum.Automaton = (*Pattern)(nil)

// nowhere is the state behind what nothing near begins with; others are numbers of bytes.
const nowhere = -1

// Start is the state of vellum.Automaton before anything.
func (p *Pattern) Start() int { return 0 }

// Accept is the state behind another byte. It takes the place of others of its length.
func (p *Pattern) Accept(at int, b byte) int {
	if at < 0 || at == maxDepth {
		return nowhere
	}
	from, to := &p.states[at], &p.states[at+1]
	if b < utf8.RuneSelf && from.bytes == 0 {
		return p.step(from, to, rune(b), at+1)
	}
	*to = *from
	if to.bytes == len(to.next) {
		return nowhere
	}
	to.next[to.bytes] = b
	to.bytes++
	if !utf8.FullRune(to.next[:to.bytes]) {
		return at + 1
	}
	r, n := utf8.DecodeRune(to.next[:to.bytes])
	if r == utf8.RuneError && n <= 1 {
		return nowhere
	}
	return p.step(from, to, r, at+1)
}

// step fills the state behind another character.
func (p *Pattern) step(from, to *state, r rune, at int) int {
	k := p.edits
	if k > 1 && from.characters == 0 && r != p.word[0] {
		return nowhere
	}
	least := uint8(far)
	var next row
	for b := range 2*k + 1 {
		next[b] = far
		j := from.characters + 1 + b - k // of the word's characters
		if j < 0 || j > len(p.word) {
			continue
		}
		d := uint8(far)
		if b < 2*k {
			d = min(d, from.row[b+1]+1) // r is inserted
		}
		if j > 0 && b > 0 {
			d = min(d, next[b-1]+1) // one of the word is left out
		}
		if j > 0 {
			same := p.word[j-1] == r
			if same {
				d = min(d, from.row[b])
			} else {
				d = min(d, from.row[b]+1)
			}
			if j > 1 && p.word[j-2] == r && p.word[j-1] == from.last {
				d = min(d, from.before[b]+1)
			}
		}
		next[b] = d
		least = min(least, d)
	}
	if int(least) > k {
		return nowhere
	}
	to.before, to.row = from.row, next
	to.characters, to.last, to.bytes = from.characters+1, r, 0
	return at
}

// distance is how many edits lead to what a state stands behind; more than those of the
// pattern if it is not near.
func (p *Pattern) distance(at int) int {
	if at < 0 || p.states[at].bytes > 0 {
		return far
	}
	s := &p.states[at]
	b := len(p.word) - s.characters + p.edits
	if b < 0 || b > 2*p.edits {
		return far
	}
	return int(s.row[b])
}

// IsMatch reports whether what a state stands behind is near.
func (p *Pattern) IsMatch(at int) bool { return p.distance(at) <= p.edits }

// CanMatch is asked once for each node that a walk may go to.
func (p *Pattern) CanMatch(at int) bool {
	if p.work.Nodes <= 0 || at < 0 {
		return false
	}
	p.work.Nodes--
	return true
}

// WillAlwaysMatch is never known.
func (p *Pattern) WillAlwaysMatch(int) bool { return false }

// walk visits what the pattern accepts: first the transducer's, then the others. A
// node that both have is counted once.
func (t terms) walk(p *Pattern, visit func(term string, edits int)) {
	if t.built != nil {
		it, err := t.built.Search(p, nil, nil)
		for ; err == nil; err = it.Next() {
			k, _ := it.Current()
			visit(string(k), p.distance(len(k)))
		}
	}
	t.walkFresh(p, visit)
}

// walkFresh goes over the list as over a trie: nodes holds the transducer's node behind
// each byte of the term before, as far as the pattern accepts it.
func (t terms) walkFresh(p *Pattern, visit func(term string, edits int)) {
	root := nowhere
	if t.built != nil {
		root = t.built.Start()
	}
	nodes := append(make([]int, 0, maxDepth+1), root)
	before := ""
	for i := 0; i < len(t.fresh); {
		term := t.fresh[i]
		at := 0
		for at < len(before) && at < len(term) && before[at] == term[at] {
			at++
		}
		nodes = nodes[:at+1]
		dead := false
		for ; at < len(term) && !dead; at++ {
			state, node := p.Accept(at, term[at]), nodes[at]
			if dead = state == nowhere; dead {
				continue
			}
			if node != nowhere {
				if node = t.built.Accept(node, term[at]); !t.built.CanMatch(node) {
					node = nowhere
				}
			}
			if node == nowhere {
				dead = !p.CanMatch(state)
			} else {
				dead = p.work.Nodes <= 0
			}
			if !dead {
				nodes = append(nodes, node)
			}
		}
		if !dead {
			if p.IsMatch(len(term)) {
				visit(term, p.distance(len(term)))
			}
			before = term
			i++
			continue
		}
		if p.work.Nodes <= 0 {
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
