package derive_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"mneme/internal/embed"
	"mneme/internal/events"
	index "mneme/internal/index/text"
	"mneme/internal/text"
)

// TestLongTextIsItsPassages: a term counts as often as in the passage that has it most,
// and a text is as long as its longest passage.
func TestLongTextIsItsPassages(t *testing.T) {
	b := newBench(t)
	ns := b.namespace(1, embed.Space{})
	b.mustFrame(nil, ns)
	derived := func(s string) (tf map[string]uint32, length uint32) {
		c := b.mustFrame(nil, b.capture(ns.Namespace, events.Header{}, events.Content{Text: s}))[0]
		tf = map[string]uint32{}
		for _, term := range c.Terms {
			if term.Field == index.FieldText {
				tf[term.Text] = term.TF
			}
		}
		return tf, c.Lengths[index.FieldText]
	}
	const words = text.PassageWords
	passage := strings.Repeat("tea ", words/2) + strings.Repeat("the ", words/2) // half of them stop words
	for _, n := range []int{1, 2, 50} {
		if tf, length := derived(strings.Repeat(passage, n)); tf["tea"] != words/2 || length != words/2 {
			t.Errorf("%d passages: tea %d times, length %d", n, tf["tea"], length)
		}
	}
	// A random text against counting each passage by itself.
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var all []string
		for range rng.IntN(5 * words) {
			all = append(all, fmt.Sprintf("x%c", 'a'+rune(rng.IntN(8))))
		}
		want, longest := map[string]uint32{}, uint32(0)
		for piece := range slices.Chunk(all, words) {
			n := map[string]uint32{}
			for _, w := range piece {
				n[w]++
			}
			for w := range n {
				want[w] = max(want[w], n[w])
			}
			longest = max(longest, uint32(len(piece)))
		}
		if tf, length := derived(strings.Join(all, " ")); !maps.Equal(tf, want) || length != longest {
			t.Errorf("%d words: %v and %d, want %v and %d", len(all), tf, length, want, longest)
		}
	}
}
