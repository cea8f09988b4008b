package rank

import "math"

// Where a message stands says something of it, whatever its words are. The first one of a
// conversation says what it is about, and whoever speaks in a conversation ("I'm ready to go
// on with my budget, what is next?") means what was said lately rather than long ago.

// recentAfter is the number of newer memories by which recency is measured: behind so many a
// memory has 1 / (1 + ln 2), three fifths, where the newest has 1. Among few memories it tells
// hardly anything apart.
const recentAfter = 500

// recency is how recent a document is, of a partition that has given out docs DocIDs: 0 for
// the first one, and below 1 for the last. It falls by the logarithm of how many are newer.
func recency(doc, docs uint32) float64 {
	if doc >= docs {
		return 0
	}
	return fresh(docs-1-doc) - fresh(docs-1)
}

func fresh(newer uint32) float64 { return 1 / (1 + math.Log1p(float64(newer)/recentAfter)) }
