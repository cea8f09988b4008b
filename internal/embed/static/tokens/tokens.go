// Package tokens cuts text into what the static model has vectors for: stems of
// words as the analyzer makes them, and, of scripts without spaces, characters and
// the longest words of a given vocabulary. The training program and the model use
// the same cut.
//
// Invariant: a function of the text, of the vocabulary and of
// text.AnalyzerVersion alone.
//
// Not its job: vectors and weights.
package tokens

import (
	"unicode/utf8"

	"mneme/internal/text"
)

// Kind says what a token is.
type Kind uint8

// The kinds of token.
const (
	// Word is the stem of a word, or an identifier, number or emoji.
	Word Kind = iota
	// Stop is the stem of an English stop word.
	Stop
	// Whole is an identifier, path or address in one piece; its parts follow.
	Whole
	// Number is a number.
	Number
	// Run is a word of several characters of a script without spaces.
	Run
	// Character is one character of such a script. The characters of a Run are
	// tokens too and come before it.
	Character
)

// Token is one token. Folded is the word before stemming; of other kinds it equals
// Text.
type Token struct {
	Text, Folded string
	Kind         Kind
}

// MaxRun is the greatest length of a Run in characters.
const MaxRun = 4

// Each calls visit with the tokens of a text in order. known says which runs of 2 to
// MaxRun characters are words; nil knows none.
func Each(a text.Analysis, known func(string) bool, visit func(Token)) {
	c := cutter{src: a.Text, known: known, visit: visit}
	for _, w := range a.Words {
		if w.Kind == text.KindGram && w.Term[0] >= utf8.RuneSelf {
			if w.Start >= c.end || c.end == 0 {
				c.flush()
				c.start = w.Start
			}
			c.end = w.End
			continue
		}
		c.flush()
		t := Token{Text: w.Term, Folded: w.Folded}
		switch w.Kind {
		case text.KindStop:
			t.Kind = Stop
		case text.KindWhole:
			t.Kind = Whole
		case text.KindNumber:
			t.Kind = Number
		}
		visit(t)
	}
	c.flush()
}

// cutter holds a stretch src[start:end] of a script without spaces that is not cut
// yet; there is none if end is 0.
type cutter struct {
	src        string
	start, end int
	known      func(string) bool
	visit      func(Token)
}

// flush cuts the stretch: from the left, the longest known word, else a character.
func (c *cutter) flush() {
	run := c.src[c.start:c.end]
	c.end, c.start = 0, 0
	for len(run) > 0 {
		n := c.longest(run)
		count := 0
		for i := 0; i < n; {
			_, size := utf8.DecodeRuneInString(run[i:])
			c.visit(Token{Text: run[i : i+size], Folded: run[i : i+size], Kind: Character})
			i += size
			count++
		}
		if count > 1 {
			c.visit(Token{Text: run[:n], Folded: run[:n], Kind: Run})
		}
		run = run[n:]
	}
}

// longest returns the length in bytes of the longest known word that run begins
// with, or of its first character.
func (c *cutter) longest(run string) int {
	var ends [MaxRun]int
	n := 0
	for at := 0; n < MaxRun && at < len(run); n++ {
		_, size := utf8.DecodeRuneInString(run[at:])
		at += size
		ends[n] = at
	}
	for ; n > 1 && c.known != nil; n-- {
		if c.known(run[:ends[n-1]]) {
			return ends[n-1]
		}
	}
	return ends[0]
}
