package text

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
)

// splitAtoms cuts s into words and what is between them. Only atoms that hold
// a letter, a digit or an emoji are tokens. Space after a word stays apart from
// the next, so that a cut may fall after a newline.
func splitAtoms(s string) []atom {
	atoms := make([]atom, 0, len(s)/3+2)
	tokens := int32(0)
	add := func(start int, isToken bool) {
		atoms = append(atoms, atom{start: int32(start), tokens: tokens})
		if isToken {
			tokens++
		}
	}
	segments := words.FromString(s)
	for segments.Next() {
		start, end := segments.Start(), segments.End()
		isToken := hasWord(s[start:end])
		for i := start; i < end; {
			n := atomEnd(s, i, end)
			add(i, isToken)
			i = n
		}
	}
	return append(atoms, atom{start: int32(len(s)), tokens: tokens})
}

// atomEnd returns the end of the atom at i in the segment that ends at end: one
// character of a script without spaces, or up to maxTokenBytes.
func atomEnd(s string, i, end int) int {
	if r, _ := utf8.DecodeRuneInString(s[i:end]); isGram(r) {
		// Looking no further keeps this linear under a mountain of marks.
		if n := gramEnd(s, i, min(end, i+maxTokenBytes+1)); n-i <= maxTokenBytes {
			return n
		}
	}
	if end-i <= maxTokenBytes && isASCII(s[i:end]) {
		return end
	}
	j := i
	for j < end {
		r, n := utf8.DecodeRuneInString(s[j:end])
		if j > i && (isGram(r) || j+n-i > maxTokenBytes) {
			break
		}
		j += n
	}
	return j
}

func hasWord(seg string) bool {
	for _, r := range seg {
		if r < utf8.RuneSelf {
			if isAlnum(byte(r)) {
				return true
			}
		} else if unicode.IsLetter(r) || unicode.IsNumber(r) || isEmoji(r) {
			return true
		}
	}
	return false
}

// rate fills in the ratings and the fences, line by line.
func (c *chunker) rate() {
	at := 0
	fence, marker := 0, ""
	blankBefore := false
	for start := 0; start < len(c.s); {
		end := len(c.s)
		if k := strings.IndexByte(c.s[start:], '\n'); k >= 0 {
			end = start + k + 1
		}
		line := strings.TrimSpace(c.s[start:end])
		for int(c.atoms[at].start) < start {
			at++
		}
		first := at
		opens, closes := fence == 0 && fenceMarker(line) != "", fence > 0 && closesFence(line, marker)
		if opens {
			marker = fenceMarker(line)
			c.fences = append(c.fences, [2]int{first, len(c.atoms) - 1})
			fence = len(c.fences)
		}
		at = c.rateLine(first, end, fence)
		if int(c.atoms[first].start) == start {
			c.atoms[first].cut = lineRating(line, fence > 0 && !opens, opens, blankBefore)
		}
		if closes {
			c.fences[fence-1][1] = at
			if at < len(c.atoms) {
				c.atoms[at].cut = cutFence
			}
			fence = 0
		}
		blankBefore = line == "" || closes
		start = end
	}
}

// rateLine marks the atoms of one line with its fence and rates cuts after
// sentences. It returns the first atom after the line.
func (c *chunker) rateLine(at, end, fence int) int {
	ended := false
	for ; at < len(c.atoms)-1 && int(c.atoms[at].start) < end; at++ {
		a := &c.atoms[at]
		a.fence = int32(fence)
		text := c.s[a.start:c.atoms[at+1].start]
		space := strings.TrimSpace(text) == ""
		if ended && !space && fence == 0 {
			a.cut = cutSentence
		}
		if !space {
			ended = endsSentence(text)
		} else if ended {
			continue
		}
	}
	return at
}

// lineRating rates a cut before a line.
func lineRating(line string, inFence, opens, blankBefore bool) rating {
	switch {
	case inFence && blankBefore && line != "":
		return cutLine
	case inFence:
		return cutSentence
	case isHeading(line):
		return cutHeading
	case line != "" && blankBefore:
		return cutBlank
	case opens:
		return cutFence
	case line == "":
		return cutToken // the blank line goes with what is before it
	}
	return cutLine
}

// isHeading reports whether a trimmed line is a Markdown heading with # signs.
func isHeading(line string) bool {
	n := 0
	for n < len(line) && line[n] == '#' {
		n++
	}
	return n > 0 && n <= 6 && (n == len(line) || line[n] == ' ' || line[n] == '\t')
}

// fenceMarker returns the run of backticks or tildes that opens fenced code, or "".
func fenceMarker(line string) string {
	if len(line) < 3 || line[0] != '`' && line[0] != '~' {
		return ""
	}
	n := 0
	for n < len(line) && line[n] == line[0] {
		n++
	}
	if n < 3 || line[0] == '`' && strings.IndexByte(line[n:], '`') >= 0 {
		return ""
	}
	return line[:n]
}

func closesFence(line, marker string) bool {
	return strings.HasPrefix(line, marker) && strings.Trim(line, marker[:1]) == ""
}

// endsSentence reports whether an atom of punctuation ends a sentence.
func endsSentence(text string) bool {
	r, _ := utf8.DecodeLastRuneInString(text)
	switch r {
	case '.', '!', '?', '。', '！', '？', '…', '；', '．', '।', '؟':
		return true
	}
	return false
}
