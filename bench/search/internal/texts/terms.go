package texts

import (
	"encoding/base32"
	"math/rand/v2"
	"strings"

	index "mneme/internal/index/text"
	"mneme/internal/text"
)

// documents are texts after analysis. Document i is the terms i of all, between
// spaces; each term is lower-case ASCII letters and digits, which no tokenizer
// changes.
type documents struct {
	lines []string
}

// analyse turns texts into documents.
func analyse(texts []string) documents {
	d := documents{lines: make([]string, len(texts))}
	var b strings.Builder
	for i, t := range texts {
		b.Reset()
		text.Analyze(t, func(tok text.Token) bool {
			if b.Len() > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(spell(tok.Term))
			return true
		})
		d.lines[i] = b.String()
	}
	return d
}

// letters spell what others than letters and digits occur in. The longest term of the
// analyzer comes to less than the 245 bytes that Xapian takes.
var letters = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// spell writes a term that others than letters and digits occur in as letters and digits
// after an "x0", so that all engines take it as one word.
func spell(term string) string {
	for i := range len(term) {
		if c := term[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return "x0" + letters.EncodeToString([]byte(term))
		}
	}
	return term
}

// plain is the term that was spelled so.
func plain(word string) string {
	if code, ok := strings.CutPrefix(word, "x0"); ok {
		if raw, err := letters.DecodeString(code); err == nil && index.ValidTerm(string(raw)) && spell(string(raw)) == word {
			return string(raw)
		}
	}
	return word
}

// queries draws n queries of size different terms, each out of one document, so
// that frequent and rare terms meet as they do in texts.
func (d documents) queries(seed uint64, n, size int) [][]string {
	rng := rand.New(rand.NewPCG(seed, uint64(size)))
	var out [][]string
	for tries := 0; len(out) < n && tries < 100*n; tries++ {
		terms := distinct(strings.Fields(d.lines[rng.IntN(len(d.lines))]))
		if len(terms) < size {
			continue
		}
		rng.Shuffle(len(terms), func(i, j int) { terms[i], terms[j] = terms[j], terms[i] })
		out = append(out, terms[:size])
	}
	return out
}

// distinct drops repetitions, in place.
func distinct(terms []string) []string {
	seen := make(map[string]bool, len(terms))
	kept := terms[:0]
	for _, t := range terms {
		if !seen[t] {
			seen[t] = true
			kept = append(kept, t)
		}
	}
	return kept
}
