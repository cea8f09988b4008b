package local

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// wordpiece cuts texts into tokens as BERT's tokenizer does (Devlin et al. 2018;
// the rules are those of Hugging Face's BertNormalizer, BertPreTokenizer and
// WordPiece). It is read-only and may be used concurrently.
//
// Names of special tokens in a text ("[SEP]") are words like others: a text
// cannot end its own sequence.
type wordpiece struct {
	first map[string]int32 // pieces that begin a word
	later map[string]int32 // pieces within a word, without the prefix
	// longest pieces in bytes, which bounds the search
	longestFirst, longestLater int

	cls, sep, unk int32
	maxChars      int // of a word; longer ones are unknown

	lower, stripAccents, spaceCJK, clean bool
}

// encode appends the tokens of text to out, at most limit in all, with [CLS]
// before and [SEP] behind them; limit is 3 or more.
func (w *wordpiece) encode(out []int32, text string, limit int) []int32 {
	begin := len(out)
	out = append(out, w.cls)
	room := func() int { return begin + limit - 1 - len(out) }
	var word []rune
	for text != "" && room() > 0 {
		var raw string
		if raw, text = w.nextWord(text); raw == "" {
			continue
		}
		word = word[:0]
		for _, r := range w.normal(raw) {
			if w.isolated(r) {
				out = w.pieces(out, word, room())
				out = w.pieces(out, []rune{r}, room())
				word = word[:0]
				continue
			}
			if unicode.IsSpace(r) { // only where clean is off, or from a decomposition
				out = w.pieces(out, word, room())
				word = word[:0]
				continue
			}
			word = append(word, r)
		}
		out = w.pieces(out, word, room())
	}
	return append(out, w.sep)
}

// nextWord cuts text at its first run of white space. With clean, controls are
// no white space: they vanish, and what they part stays together.
func (w *wordpiece) nextWord(text string) (word, rest string) {
	for i, r := range text {
		if unicode.IsSpace(r) && !(w.clean && isControl(r)) {
			return text[:i], text[i+utf8.RuneLen(r):]
		}
	}
	return text, ""
}

// isolated reports whether r is a word by itself.
func (w *wordpiece) isolated(r rune) bool {
	return isPunctuation(r) || w.spaceCJK && isCJK(r)
}

// normal applies cleaning, stripping of accents and lower case.
func (w *wordpiece) normal(s string) string {
	ascii := true
	for i := range len(s) {
		ascii = ascii && s[i] < utf8.RuneSelf
	}
	if w.stripAccents && !ascii {
		s = norm.NFD.String(s)
	}
	b := make([]byte, 0, len(s))
	for _, r := range s {
		switch {
		case w.clean && (r == 0 || r == utf8.RuneError || isControl(r)):
		case w.stripAccents && r >= utf8.RuneSelf && unicode.Is(unicode.Mn, r):
		case w.lower && r == 'İ':
			b = append(b, "i̇"...) // the one letter whose lower case is two runes
		case w.lower:
			b = utf8.AppendRune(b, unicode.ToLower(r))
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return string(b)
}

// pieces appends the longest pieces of word, left to right, at most room; the
// unknown token instead if the word cannot be made of pieces.
func (w *wordpiece) pieces(out []int32, word []rune, room int) []int32 {
	if len(word) == 0 || room <= 0 {
		return out
	}
	if len(word) > w.maxChars {
		return append(out, w.unk)
	}
	begin := len(out)
	s := string(word)
	known, longest := w.first, w.longestFirst
	for s != "" {
		end := min(len(s), longest)
		for end > 0 {
			if end < len(s) && !utf8.RuneStart(s[end]) {
				end--
				continue
			}
			id, ok := known[s[:end]]
			if ok {
				out = append(out, id)
				break
			}
			end--
		}
		if end == 0 {
			return append(out[:begin], w.unk)
		}
		s = s[end:]
		known, longest = w.later, w.longestLater
	}
	return out[:min(len(out), begin+room)]
}

// isControl: other, control; other, format; other, private use. Tab and line
// ends are white space.
func isControl(r rune) bool {
	if r == '\t' || r == '\n' || r == '\r' {
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co)
}

// isPunctuation is wider than Unicode's in ASCII: "$" and "+" part words too.
func isPunctuation(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= '!' && r <= '/' || r >= ':' && r <= '@' || r >= '[' && r <= '`' || r >= '{' && r <= '~'
	}
	return unicode.IsPunct(r)
}

// isCJK: the blocks of Chinese characters that BERT parts. Kana and Hangul are
// not among them.
func isCJK(r rune) bool {
	return r >= 0x4E00 && r <= 0x9FFF || r >= 0x3400 && r <= 0x4DBF || r >= 0xF900 && r <= 0xFAFF ||
		r >= 0x20000 && r <= 0x2A6DF || r >= 0x2A700 && r <= 0x2B73F || r >= 0x2B740 && r <= 0x2B81F ||
		r >= 0x2B920 && r <= 0x2CEAF || r >= 0x2F800 && r <= 0x2FA1F
}
