package text

import (
	"cmp"
	"slices"
	"unicode"
	"unicode/utf8"
)

// MaxSnippet is the most characters that Snippet returns.
const MaxSnippet = 700

// hit is an occurrence of a query term.
type hit struct{ start, end, term int }

// Snippet returns the stretch of s, at most maxRunes characters long, that has the
// most distinct query terms, then the most occurrences, then comes first: s[start:end].
// queryTerms are analysed terms, as Terms gives them. A maxRunes outside
// 1..MaxSnippet means MaxSnippet. It is cut between words, if a word is not
// longer than all of it, begins with a sentence where one begins near, and has no
// space around it. Without a hit it is the beginning of s.
func Snippet(s string, queryTerms []string, maxRunes int) (snippet string, start, end int) {
	return snippetOf(s, queryTerms, maxRunes, func() Analysis { return NewAnalysis(s) })
}

// Snippet is Snippet of a text that was analysed already.
func (a Analysis) Snippet(queryTerms []string, maxRunes int) (snippet string, start, end int) {
	return snippetOf(a.Text, queryTerms, maxRunes, func() Analysis { return a })
}

func snippetOf(s string, queryTerms []string, maxRunes int, analysis func() Analysis) (snippet string, start, end int) {
	if maxRunes < 1 || maxRunes > MaxSnippet {
		maxRunes = MaxSnippet
	}
	start, end = trimSpace(s, 0, len(s))
	if runesWithin(s, start, end, maxRunes) == end {
		return s[start:end], start, end
	}
	if hits := findHits(analysis, queryTerms); len(hits) > 0 {
		from, to := bestWindow(s, hits, len(queryTerms), maxRunes)
		start, _ = trimSpace(s, widenLeft(s, start, from, to, maxRunes), end)
	}
	stop := runesWithin(s, start, end, maxRunes)
	if stop < end {
		stop = wordCut(s, start, stop)
	}
	start, end = trimSpace(s, start, stop)
	return s[start:end], start, end
}

// findHits returns the occurrences of the query terms by start. Occurrences at one
// place count for each of the terms.
func findHits(analysis func() Analysis, queryTerms []string) []hit {
	var index TermTable[int]
	for i, t := range queryTerms {
		if _, ok := index.Get(t); !ok {
			index.Set(t, i)
		}
	}
	if index.Len() == 0 {
		return nil
	}
	var hits []hit
	analysis().Index(func(t Token) bool {
		if i, ok := index.Get(t.Term); ok {
			hits = append(hits, hit{t.Start, t.End, i})
		}
		return true
	})
	// A whole identifier comes before its parts, which may start before it.
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(a.start, b.start) })
	return hits
}

// exactHits is from how many hits on windows are sampled: with so many, the text is
// full of them and windows that begin close together differ little.
const exactHits = 2048

// bestWindow tries a window from each hit and returns the bytes from the first to
// the last hit of the best one. It takes time for hits times the hits in a window,
// which is why windows are sampled after exactHits.
func bestWindow(s string, hits []hit, terms, maxRunes int) (from, to int) {
	seen := make([]int, terms) // by term: 1 + the last window that has it
	bestDistinct, bestHits := 0, 0
	from, to = hits[0].start, hits[0].start
	at, limit := hits[0].start, runesWithin(s, hits[0].start, len(s), maxRunes)
	for i, h := range hits {
		if i >= exactHits && h.start-at < maxRunes/8 {
			continue
		}
		limit = runesWithin(s, limit, len(s), utf8.RuneCountInString(s[at:h.start]))
		at = h.start
		distinct, n, end := 0, 0, h.start
		for _, g := range hits[i:] {
			if g.start >= limit {
				break
			}
			if g.end > limit {
				continue
			}
			if seen[g.term] != i+1 {
				seen[g.term] = i + 1
				distinct++
			}
			n++
			end = max(end, g.end)
		}
		if distinct > bestDistinct || distinct == bestDistinct && n > bestHits {
			bestDistinct, bestHits = distinct, n
			from, to = h.start, end
		}
	}
	return from, to
}

// widenLeft returns where a snippet around from..to begins: up to a third of what
// room there is before it, at a line's or sentence's begin if one is there, else
// at a word.
func widenLeft(s string, floor, from, to, maxRunes int) int {
	room := (maxRunes - utf8.RuneCountInString(s[from:to])) / 3
	at, word, best := from, from, -1
	for n := 0; n < room && at > floor; n++ {
		r, size := utf8.DecodeLastRuneInString(s[floor:at])
		if best < 0 && (r == '\n' || unicode.IsSpace(r) && endsSentence(s[floor:at-size]) || isFullStop(r)) {
			best = at
		}
		if at < from && breaks(s, at) {
			word = at
		}
		at -= size
	}
	switch {
	case at <= floor:
		return floor
	case best >= 0 && best <= from:
		return best
	case breaks(s, at):
		return at
	}
	return word
}

func isFullStop(r rune) bool { return r == '。' || r == '！' || r == '？' }

// breaks reports whether a cut at byte i of s parts no word: there is something
// else than a letter or digit on one side, or a script without spaces.
func breaks(s string, i int) bool {
	if i <= 0 || i >= len(s) {
		return true
	}
	l, _ := utf8.DecodeLastRuneInString(s[:i])
	r, _ := utf8.DecodeRuneInString(s[i:])
	if extends(r) || r == 0x200d || l == 0x200d || r >= 0x1f3fb && r <= 0x1f3ff {
		return false
	}
	return !inWord(l) || !inWord(r) || isGram(l) || isGram(r)
}

func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || r == '_' || r == '\'' || r == '’'
}

// wordCut moves stop left to a place between words, if there is one after start.
func wordCut(s string, start, stop int) int {
	for i := stop; i > start; {
		if breaks(s, i) {
			return i
		}
		_, n := utf8.DecodeLastRuneInString(s[start:i])
		i -= n
	}
	return stop
}

// runesWithin returns the offset after at most n characters of s[start:end].
func runesWithin(s string, start, end, n int) int {
	for i := start; i < end; n-- {
		if n == 0 {
			return i
		}
		_, size := utf8.DecodeRuneInString(s[i:end])
		i += size
	}
	return end
}

// trimSpace moves start and end inwards over white space.
func trimSpace(s string, start, end int) (int, int) {
	for start < end {
		r, n := utf8.DecodeRuneInString(s[start:end])
		if !unicode.IsSpace(r) {
			break
		}
		start += n
	}
	for end > start {
		r, n := utf8.DecodeLastRuneInString(s[start:end])
		if !unicode.IsSpace(r) {
			break
		}
		end -= n
	}
	return start, end
}
