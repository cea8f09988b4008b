package corpus

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Rates of the model.
const (
	// restartOdds: one word in so many does not follow from the one before.
	restartOdds = 5
	// freshOdds: one word in so many was never seen. A vocabulary goes on growing
	// with the number of texts (Heaps' law); here by numbered names.
	freshOdds = 300
)

// Grow returns a corpus of n texts: those of c, and from there on texts that a
// chain of word pairs writes. A word is followed by a word that follows it
// somewhere in c, as often as it does there, so that frequencies stay those of c;
// lengths are those of texts of c. The same corpus and n give the same texts.
func (c *Corpus) Grow(n int) *Corpus {
	if n <= len(c.Texts) {
		return c
	}
	m := newModel(c.Texts)
	if len(m.words) == 0 {
		return c
	}
	out := &Corpus{Texts: append(make([]string, 0, n), c.Texts...), seed: c.seed}
	rng := rand.New(rand.NewPCG(c.seed, 7))
	for len(out.Texts) < n {
		out.Texts = append(out.Texts, m.write(rng))
	}
	out.From = fmt.Sprintf("%s; and %d that a chain of their word pairs wrote", c.From, n-len(c.Texts))
	return out
}

// model is the words of texts in their order: the successors of a word are the
// words after its places.
type model struct {
	words  []int32 // all texts, one after the other
	places map[int32][]int32
	spell  []string
	sizes  []int // words of each text
}

func newModel(texts []string) *model {
	m := &model{places: map[int32][]int32{}}
	number := map[string]int32{}
	for _, text := range texts {
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		m.sizes = append(m.sizes, len(fields))
		for _, w := range fields {
			id, ok := number[w]
			if !ok {
				id = int32(len(m.spell))
				number[w] = id
				m.spell = append(m.spell, w)
			}
			m.places[id] = append(m.places[id], int32(len(m.words)))
			m.words = append(m.words, id)
		}
	}
	return m
}

// write makes one text.
func (m *model) write(rng *rand.Rand) string {
	var b strings.Builder
	at := rng.IntN(len(m.words))
	for i := range m.sizes[rng.IntN(len(m.sizes))] {
		if i > 0 {
			b.WriteByte(' ')
			at = m.follow(rng, at)
		}
		if rng.IntN(freshOdds) == 0 {
			fmt.Fprintf(&b, "%s-%d", strings.Trim(m.spell[m.words[at]], ".,:;()"), rng.IntN(1_000_000))
			continue
		}
		b.WriteString(m.spell[m.words[at]])
	}
	return b.String()
}

// follow returns the place of a word that follows the word at a place.
func (m *model) follow(rng *rand.Rand, at int) int {
	if rng.IntN(restartOdds) == 0 {
		return rng.IntN(len(m.words))
	}
	places := m.places[m.words[at]]
	return (int(places[rng.IntN(len(places))]) + 1) % len(m.words)
}
