package stats

// Recall is the share of the relevant units among the first k of ranked.
// Relevant units are distinct; a unit that is ranked twice counts once. It is
// 0 without relevant units: such questions are to be left out before.
func Recall(ranked, relevant []string, k int) float64 {
	if len(relevant) == 0 {
		return 0
	}
	return float64(found(ranked, relevant, k)) / float64(len(relevant))
}

// RecallAll is 1 if all relevant units are among the first k of ranked, else 0.
func RecallAll(ranked, relevant []string, k int) float64 {
	if len(relevant) > 0 && found(ranked, relevant, k) == len(relevant) {
		return 1
	}
	return 0
}

// ReciprocalRank is 1 over the 1-based rank of the first relevant unit, 0 if
// ranked holds none.
func ReciprocalRank(ranked, relevant []string) float64 {
	want := set(relevant)
	for i, unit := range ranked {
		if want[unit] {
			return 1 / float64(i+1)
		}
	}
	return 0
}

func found(ranked, relevant []string, k int) int {
	want := set(relevant)
	n := 0
	for _, unit := range ranked[:min(k, len(ranked))] {
		if want[unit] {
			n++
			delete(want, unit)
		}
	}
	return n
}

func set(units []string) map[string]bool {
	m := make(map[string]bool, len(units))
	for _, u := range units {
		m[u] = true
	}
	return m
}
