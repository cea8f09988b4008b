package corpus

import (
	"math/rand/v2"
	"strings"
)

// generate writes up to n texts of made-up words, whose frequencies follow
// Zipf's law, until take returns false.
func generate(seed uint64, n int, take func(string) bool) {
	rng := rand.New(rand.NewPCG(seed, 4))
	words := vocabulary(rng, 30_000)
	zipf := rand.NewZipf(rng, 1.1, 5, uint64(len(words)-1))
	for range n {
		var b strings.Builder
		for range 1 + rng.IntN(6) {
			length := 6 + rng.IntN(14)
			for i := range length {
				w := words[zipf.Uint64()]
				if i == 0 {
					w = strings.ToUpper(w[:1]) + w[1:]
				}
				b.WriteString(w)
				if i < length-1 {
					b.WriteByte(' ')
				}
			}
			b.WriteString(". ")
		}
		if !take(b.String()) {
			return
		}
	}
}

// vocabulary makes n different words of two to four syllables.
func vocabulary(rng *rand.Rand, n int) []string {
	const onsets, vowels, codas = "bcdfghklmnprstvz", "aeiou", "lmnrst "
	seen := make(map[string]bool, n)
	out := make([]string, 0, n)
	for len(out) < n {
		var b strings.Builder
		for range 2 + rng.IntN(3) {
			b.WriteByte(onsets[rng.IntN(len(onsets))])
			b.WriteByte(vowels[rng.IntN(len(vowels))])
			if c := codas[rng.IntN(len(codas))]; c != ' ' {
				b.WriteByte(c)
			}
		}
		if w := b.String(); !seen[w] {
			seen[w] = true
			out = append(out, w)
		}
	}
	return out
}
