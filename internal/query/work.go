package query

import "mneme/internal/text"

// The texts that a search reads are bounded by the work of analysing them: 200
// results of 256 KiB, or all memories that hold the words of a phrase, would keep a
// core for seconds. Units are those of text.Work.
const (
	maxWork = 8 << 20
	// shownWork of it is left for snippets, whatever phrases take.
	shownWork = maxWork / 4
	// givenUpWork may still be read where phrases are given up, whatever was read in vain.
	givenUpWork = maxWork / 4
	// openWork is about what reading and decrypting a short text costs.
	openWork = 256
)

// budget is the work that is left to a search. The text that begins within it is read
// to its end.
type budget int

func newBudget() budget { return maxWork }

func (b *budget) spend(work int) { *b -= budget(work) }

// forReading reports whether another text may be read for what the query says of it.
func (b budget) forReading() bool { return b > shownWork }

// forMore reports whether another text may be searched for the best piece to show.
func (b budget) forMore() bool { return b > 0 }

// open spends what a text costs that is read and analysed.
func (b *budget) open(s string) { b.spend(openWork + text.Work(s)) }
