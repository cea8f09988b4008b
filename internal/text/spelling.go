package text

import (
	"strings"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/russian"
	"golang.org/x/text/unicode/norm"
)

// digraphs spell the German umlauts as people do who cannot type them. The replacer
// is immutable.
var digraphs = strings.NewReplacer("ä", "ae", "ö", "oe", "ü", "ue", "Ä", "Ae", "Ö", "Oe", "Ü", "Ue")

// yo is the Cyrillic letter that most people write without its dots.
var yo = strings.NewReplacer("ё", "е", "Ё", "Е")

// spellings gives the other forms under which a word outside ASCII is found: mueller
// for Müller (its plain form muller is the term already), еще for ещё, and the stem
// of a word in Cyrillic letters.
func (c *cutter) spellings(raw string, w *Word) {
	composed := raw
	if !norm.NFC.IsNormalString(raw) {
		composed = norm.NFC.String(raw)
	}
	if spelt := digraphs.Replace(composed); spelt != composed {
		term := lookup(spelt).term
		if w.Kind == KindWhole {
			term = Fold(spelt)
		}
		c.add(term, w.Start, w.End)
	}
	plain := w.Term
	if strings.Contains(plain, "ё") {
		plain = yo.Replace(plain)
		c.add(plain, w.Start, w.End)
	}
	if w.Kind == KindWord && isCyrillic(plain) {
		env := snowballstem.NewEnv(plain)
		russian.Stem(env)
		if stem := env.Current(); stem != plain {
			c.add(stem, w.Start, w.End)
		}
	}
}

// isCyrillic reports whether all letters of a folded word are of the Russian alphabet.
// Longer words than any of the language are none.
func isCyrillic(word string) bool {
	if len(word) > 2*maxRussian {
		return false
	}
	for _, r := range word {
		if r < 'а' || r > 'я' {
			return false
		}
	}
	return word != ""
}

const maxRussian = 40 // letters
