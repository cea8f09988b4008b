package main

import (
	"math"
	"slices"

	"mneme/internal/embed/static/tokens"
)

// Words of Chinese are learnt from the corpus: runs of 2 to 4 characters that come
// often, whose parts hang together (pointwise mutual information at the weakest
// joint) and whose neighbours vary (entropy on both sides).
const (
	minRun      = 30
	minListed   = 4 // of words that the lexicon has
	minCohesion = 3.5
	minVariety  = 1.2
)

// gram is a run of up to four characters of the basic plane, 16 bits each, the first
// in the highest place that is used.
type gram uint64

func (g gram) len() int {
	n := 0
	for ; g > 0; g >>= 16 {
		n++
	}
	return n
}

func (g gram) String() string {
	var r []rune
	for ; g > 0; g >>= 16 {
		r = append(r, rune(g&0xffff))
	}
	slices.Reverse(r)
	return string(r)
}

// learnRuns returns the words to be cut out of Chinese text.
func learnRuns(path string) (map[string]bool, error) {
	listed := map[gram]bool{}
	var stretches [][]uint16
	err := eachLine(path, func(kind byte, fields []string) {
		switch kind {
		case 'w':
			for _, s := range appendHan(nil, fields[0]) {
				if len(s) >= 2 && len(s) <= tokens.MaxRun {
					listed[pack(s)] = true
				}
			}
		case 't':
			stretches = appendHan(stretches, fields[0])
		}
	})
	if err != nil {
		return nil, err
	}
	counts := countRuns(stretches)
	total := 0
	for g, n := range counts {
		if g.len() == 1 {
			total += n
		}
	}
	candidates := map[gram]bool{}
	out := map[string]bool{}
	for g, n := range counts {
		switch {
		case g.len() < 2:
		case listed[g] && n >= minListed:
			out[g.String()] = true
		case n >= minRun && cohesion(g, counts, total) >= minCohesion:
			candidates[g] = true
		}
	}
	for g, v := range variety(stretches, candidates) {
		if v >= minVariety {
			out[g.String()] = true
		}
	}
	return out, nil
}

// appendHan adds the stretches of Chinese characters of s.
func appendHan(to [][]uint16, s string) [][]uint16 {
	var run []uint16
	for _, r := range s {
		if r >= 0x4e00 && r <= 0x9fff {
			run = append(run, uint16(r))
			continue
		}
		if len(run) > 0 {
			to = append(to, slices.Clone(run))
			run = run[:0]
		}
	}
	if len(run) > 0 {
		to = append(to, run)
	}
	return to
}

func pack(s []uint16) gram {
	g := gram(0)
	for _, c := range s {
		g = g<<16 | gram(c)
	}
	return g
}

// countRuns counts all runs up to MaxRun whose parts come at least minListed times.
func countRuns(stretches [][]uint16) map[gram]int {
	counts := map[gram]int{}
	for n := 1; n <= tokens.MaxRun; n++ {
		for _, s := range stretches {
			for i := 0; i+n <= len(s); i++ {
				if n > 2 && (counts[pack(s[i:i+n-1])] < minListed || counts[pack(s[i+1:i+n])] < minListed) {
					continue
				}
				counts[pack(s[i:i+n])]++
			}
		}
	}
	return counts
}

func cohesion(g gram, counts map[gram]int, total int) float64 {
	weakest := math.Inf(1)
	for cut := 16; cut < 16*g.len(); cut += 16 {
		left, right := counts[g>>cut], counts[g&(1<<cut-1)]
		weakest = min(weakest, math.Log(float64(counts[g])*float64(total)/(float64(left)*float64(right))))
	}
	return weakest
}

// variety returns the lesser of the entropies of what stands before and after; an
// end of the text is a neighbour of its own kind each time.
func variety(stretches [][]uint16, candidates map[gram]bool) map[gram]float64 {
	before, after := map[gram]map[int]int{}, map[gram]map[int]int{}
	for g := range candidates {
		before[g], after[g] = map[int]int{}, map[int]int{}
	}
	edge := 0
	for _, s := range stretches {
		for n := 2; n <= tokens.MaxRun; n++ {
			for i := 0; i+n <= len(s); i++ {
				g := pack(s[i : i+n])
				if !candidates[g] {
					continue
				}
				edge--
				if i > 0 {
					before[g][int(s[i-1])]++
				} else {
					before[g][edge]++
				}
				if i+n < len(s) {
					after[g][int(s[i+n])]++
				} else {
					after[g][edge]++
				}
			}
		}
	}
	out := map[gram]float64{}
	for g := range candidates {
		out[g] = min(entropy(before[g]), entropy(after[g]))
	}
	return out
}

// entropy sums in the order of counts, so that it does not depend on the map's.
func entropy(counts map[int]int) float64 {
	var list []int
	sum := 0
	for _, n := range counts {
		list = append(list, n)
		sum += n
	}
	slices.Sort(list)
	h := 0.0
	for _, n := range list {
		p := float64(n) / float64(sum)
		h -= p * math.Log(p)
	}
	return h
}
