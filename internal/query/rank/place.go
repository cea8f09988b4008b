package rank

import "math"

// Where a message stands says something of it, whatever its words are. The first one of a
// conversation says what it is about, and whoever speaks in a conversation ("I'm ready to go
// on with my budget, what is next?") means what was said lately rather than long ago.

// recentAfter is the number of newer memories by which recency is measured: behind so many a
// memory has 1 / (1 + ln 2), three fifths, where the newest has 1. Among few memories it tells
// hardly anything apart.
const recentAfter = 500

// recency is how recent the one of n memories is behind which so many were written later: 0
// for the first, and below 1 for the last. It falls by the logarithm of how many are newer.
// What was forgotten counts no more.
func recency(newer, n uint32) float64 {
	if newer >= n {
		return 0
	}
	return fresh(newer) - fresh(n-1)
}

func fresh(newer uint32) float64 { return 1 / (1 + math.Log1p(float64(newer)/recentAfter)) }
