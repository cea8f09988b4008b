package embed

import "unicode/utf8"

// limits of one request.
type limits struct {
	items  int // texts
	tokens int // estimated
	bytes  int // of text, before JSON escaping
}

// span is a half-open range of texts in a call.
type span struct{ from, to int }

// plan cuts texts into requests within the limits, greedily and in order. A text
// that is too large alone gets a request of its own; the server decides.
func (l limits) plan(texts []string) []span {
	var spans []span
	current := span{}
	tokens, size := 0, 0
	for i, text := range texts {
		t, n := estimateTokens(text), len(text)
		full := current.to-current.from >= l.items || tokens+t > l.tokens || size+n > l.bytes
		if full && current.to > current.from {
			spans = append(spans, current)
			current = span{i, i}
			tokens, size = 0, 0
		}
		current.to = i + 1
		tokens += t
		size += n
	}
	if current.to > current.from {
		spans = append(spans, current)
	}
	return spans
}

// estimateTokens guesses high: one token for three ASCII bytes (English has
// about four), one for each other character (true for CJK, high for accents).
func estimateTokens(text string) int {
	ascii, other := 0, 0
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			ascii++
			i++
			continue
		}
		_, n := utf8.DecodeRuneInString(text[i:])
		other++
		i += n
	}
	return (ascii+2)/3 + other
}
