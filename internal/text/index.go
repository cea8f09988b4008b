package text

import "strings"

// Index calls visit with the terms under which s is found, until it returns false:
// those of Analyze, the stems of the language that s is in, and those of the cuts (cut.go) that make a part of a name, a
// beginning of a version or another spelling of a word find the whole. Texts and
// queries go the same way, so that a query which is one of the cuts of a text finds
// it. Positions ascend. There are at most maxCuts terms for each byte of s.
//
// Embedders do not see these terms: their words are those of AnalyzeWords.
func Index(s string, visit func(Token) bool) { NewAnalysis(s).Index(visit) }

// maxCuts bounds the terms of Index for each byte of a text.
const maxCuts = 4

// IndexTerms returns the terms of Index in order, with repeats.
func IndexTerms(s string) []string {
	var terms []string
	Index(s, func(t Token) bool {
		terms = append(terms, t.Term)
		return true
	})
	return terms
}

// Index is Index of a text that was analysed already.
func (a Analysis) Index(visit func(Token) bool) {
	c := cutter{src: a.Text, visit: visit}
	c.language, c.sure = a.language()
	words := a.Words
	for i, s := 0, a.Text; i < len(s) && !c.done; {
		if isSpace(s[i]) {
			i++
			continue
		}
		end, found := i, byte(0)
		for end < len(s) && !isSpace(s[end]) {
			found |= classes[s[end]]
			end++
		}
		n := 0
		for n < len(words) && words[n].Start < end {
			c.word(&words[n], found)
			n++
		}
		words = words[n:]
		if found&classJoint != 0 {
			c.stretch(i, end)
		}
		i = end
	}
}

// Classes of bytes. A stretch without joints has no name of several parts in it.
const (
	classLetter byte = 1 << iota
	classDigit
	classJoint // may stand within a name
	classWide  // of a character outside ASCII
)

var classes = func() (t [256]byte) {
	for c := range t {
		switch b := byte(c); {
		case isAlpha(b):
			t[c] = classLetter
		case isDigit(b):
			t[c] = classDigit
		case strings.IndexByte(joints, b) >= 0:
			t[c] = classJoint
		case b >= 0x80:
			t[c] = classWide
		}
	}
	return t
}()

// joints are the signs within a name that the cuts look at. Any other sign ends it.
const joints = `._/\:@-`

// cutter finds the cuts of one text.
type cutter struct {
	src      string
	visit    func(Token) bool
	pos      int
	done     bool
	language int  // of the text
	sure     bool // it has several words that tell it
}

// add hands out one more term at the present position.
func (c *cutter) add(term string, start, end int) {
	if c.done || term == "" || len(term) > maxTerm {
		return
	}
	c.done = !c.visit(Token{Term: term, Start: start, End: end, Pos: c.pos})
}

// word hands out a word of the analyzer, unless it is an English stop word, its stem in
// the language of the text, and its other spellings. found has the classes of the stretch that it stands in.
func (c *cutter) word(w *Word, found byte) {
	c.pos = w.Pos
	if w.Kind == KindStop || c.done {
		return
	}
	foreign := c.language != none && w.Kind == KindWord
	token := w.Token
	token.Function = foreign && c.sure && isFunction(c.language, w.Folded)
	if c.done = !c.visit(token); c.done || foreign && isFunction(c.language, w.Folded) {
		return
	}
	raw := c.src[w.Start:w.End]
	if foreign {
		c.foreign(raw, w)
	}
	if found&classWide != 0 && (w.Kind == KindWord || w.Kind == KindWhole) && !isASCII(raw) {
		c.spellings(raw, w)
		return
	}
	if found&classDigit != 0 && w.Kind == KindWord {
		c.numbered(raw, w)
	}
}

// numbered gives a name in camel case without the number behind it, OAuth2 as oauth,
// and a number in hexadecimal without 0x.
func (c *cutter) numbered(raw string, w *Word) {
	n := len(raw)
	for n > 0 && isDigit(raw[n-1]) {
		n--
	}
	if name := raw[:n]; n > 1 && n < len(raw) && isLetters(name) && partEnd(name, 0) < n {
		c.add(lookup(name).term, w.Start, w.Start+n)
	}
	if hex, ok := strings.CutPrefix(w.Folded, "0x"); ok && len(hex) >= minHex && isHex(hex) {
		c.add(lookup(hex).term, w.Start, w.End)
	}
}

// minHex is the fewest digits of a number in hexadecimal that is worth a term.
const minHex = 4

func isLetters(s string) bool {
	for i := range len(s) {
		if !isAlpha(s[i]) {
			return false
		}
	}
	return true
}

func isHex(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) && (s[i] < 'a' || s[i] > 'f') {
			return false
		}
	}
	return true
}
