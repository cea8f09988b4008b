package text

import "unicode/utf8"

// Token is one term of a text.
type Token struct {
	// Term is the analysed form. It is at most 128 bytes long.
	Term string
	// Start and End are byte offsets in the analysed text.
	Start, End int
	// Pos is the word position, from 0. Stop words take a position. A whole
	// identifier has the position of its first part.
	Pos int
	// Function: it is a function word of the language that the text is in, and no question
	// is about it. Index tells that.
	Function bool
}

// Kind says what a word is.
type Kind uint8

// The kinds of word.
const (
	// KindWord is an ordinary word, also as a part of an identifier.
	KindWord Kind = iota
	// KindNumber is a number or a term with digits only.
	KindNumber
	// KindWhole is an identifier, path, address or date in one piece.
	KindWhole
	// KindGram is a bigram, or a lone character, of a script without spaces.
	KindGram
	// KindEmoji is an emoji without variation selector and skin tone.
	KindEmoji
	// KindStop is an English stop word. Analyze leaves it out.
	KindStop
)

// Word is a token with what embedders need beside the term.
type Word struct {
	Token
	// Folded is the normalised and folded word before stemming.
	Folded string
	Kind   Kind
}

const (
	// maxTerm bounds a term in bytes; longer ones are cut.
	maxTerm = 128
	// maxWhole bounds an identifier that is indexed in one piece.
	maxWhole = 128
)

// Analyze calls visit with the terms of s in the order of their positions until
// it returns false. Stop words are left out. It may be called from many
// goroutines at once; terms may share memory with s.
func Analyze(s string, visit func(Token) bool) {
	AnalyzeWords(s, func(w Word) bool {
		return w.Kind == KindStop || visit(w.Token)
	})
}

// AnalyzeWords is Analyze with stop words and with each word's unstemmed form.
func AnalyzeWords(s string, visit func(Word) bool) {
	a := analyzer{src: s, visit: visit, numEnd: -1}
	for i := 0; i < len(s) && !a.done; {
		if isSpace(s[i]) {
			i++
			continue
		}
		end, ascii := i, true
		for end < len(s) && !isSpace(s[end]) {
			ascii = ascii && s[end] < utf8.RuneSelf
			end++
		}
		if ascii {
			a.ascii(i, end)
		} else {
			a.unicode(i, end)
		}
		i = end
	}
}

// Analysis is a text with its words, stop words too, for what would analyse it more
// than once. It is not changed.
type Analysis struct {
	Text  string
	Words []Word
}

// NewAnalysis analyses a text.
func NewAnalysis(s string) Analysis { return AnalyzeInto(make([]Word, 0, len(s)/4+1), s) }

// AnalyzeInto is NewAnalysis that writes its words over those of room while they fit.
func AnalyzeInto(room []Word, s string) Analysis {
	a := Analysis{Text: s, Words: room[:0]}
	AnalyzeWords(s, func(w Word) bool {
		a.Words = append(a.Words, w)
		return true
	})
	return a
}

// Terms returns the terms of s in order, with repeats.
func Terms(s string) []string {
	var terms []string
	Analyze(s, func(t Token) bool {
		terms = append(terms, t.Term)
		return true
	})
	return terms
}

// analyzer walks one text. A field is a stretch without ASCII white space; the
// methods below take its bounds as offsets in src.
type analyzer struct {
	src   string
	visit func(Word) bool
	pos   int
	done  bool
	// numEnd and num are the end and term of the last plain number: a counter
	// that follows at once in Chinese, Japanese or Korean belongs to it.
	numEnd int
	num    string
	// plain is how far words are joined into a chain that is no identifier, nor is
	// what is left of it from any of its words: a rest has no joints, hyphens and
	// digits that the chain does not have.
	plain int
}

// emit hands out one word at the present position.
func (a *analyzer) emit(term, folded string, kind Kind, start, end int) {
	if a.done || term == "" {
		return
	}
	if len(term) > maxTerm {
		term = cutTerm(term)
	}
	w := Word{Token{Term: term, Start: start, End: end, Pos: a.pos}, folded, kind}
	a.done = !a.visit(w)
}

// cutTerm shortens a term to maxTerm bytes without cutting a character.
func cutTerm(term string) string {
	n := maxTerm
	for n > 0 && !utf8.RuneStart(term[n]) {
		n--
	}
	return term[:n]
}

func isSpace(c byte) bool { return c <= ' ' || c == 0x7f }

func isAlpha(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

func isAlnum(c byte) bool { return isAlpha(c) || isDigit(c) }
