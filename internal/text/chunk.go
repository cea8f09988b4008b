package text

import "strings"

// Chunk is one piece of a text, for one vector.
type Chunk struct {
	// Text is the piece, verbatim: s[Start:End].
	Text string
	// Start and End are byte offsets in the text.
	Start, End int
	// StartLine and EndLine count from 1.
	StartLine, EndLine int
}

// The defaults of Chunks, in tokens.
const (
	DefaultChunkTokens  = 512
	DefaultChunkOverlap = 50
)

// PassageWords is how many words of a text are looked at together where it matters what stands
// beside what: more than a sentence or two has, and fewer than a page.
const PassageWords = 64

// maxTokenBytes bounds one token; maxChunkBytes per token bounds a chunk of
// something that has few words, such as a rule of dashes.
const (
	maxTokenBytes = 64
	maxChunkBytes = 64
)

// Chunks cuts s into overlapping pieces of at most maxTokens tokens. A maxTokens
// below 1 means DefaultChunkTokens; overlap is moved into 0..maxTokens/2 (a
// negative one means the smaller of DefaultChunkOverlap and an eighth).
//
// A piece is cut in its second half, at the first of these that is there: before a
// Markdown heading, at a blank line, around fenced code, at a line's end, at a
// sentence's end, between tokens. Among equal places it is the last one. Fenced
// code that fits in one chunk is not cut. The pieces cover s: the first starts at
// 0, the last ends at len(s), each starts after its predecessor's start and not
// after its end. An empty s has no chunks. A token is a word, or a character of a
// script without spaces.
func Chunks(s string, maxTokens, overlap int) []Chunk {
	if maxTokens < 1 {
		maxTokens = DefaultChunkTokens
	}
	if overlap < 0 {
		overlap = min(DefaultChunkOverlap, maxTokens/8)
	}
	overlap = min(overlap, maxTokens/2)
	if s == "" {
		return nil
	}
	if len(s) <= maxTokens { // no token is shorter than a byte
		return []Chunk{chunkOf(s, 0, len(s), 1)}
	}
	c := chunker{s: s, max: maxTokens, overlap: overlap}
	c.atoms = splitAtoms(s)
	c.rate()
	return c.run()
}

// chunkOf is s[start:end], which begins in the given line.
func chunkOf(s string, start, end, line int) Chunk {
	piece := s[start:end]
	return Chunk{Text: piece, Start: start, End: end, StartLine: line,
		EndLine: line + strings.Count(strings.TrimSuffix(piece, "\n"), "\n")}
}

// atom is a stretch of text that is not cut: a word with nothing around it, or the
// space and punctuation between words.
type atom struct {
	start int32
	// fence is the index of the fenced block that the atom is in, from 1, or 0.
	fence int32
	// tokens counts those before this atom.
	tokens int32
	// cut rates a cut before this atom.
	cut rating
}

// rating says how good a place for a cut is.
type rating uint8

const (
	cutToken rating = iota
	cutSentence
	cutLine
	cutFence
	cutBlank
	cutHeading
)

type chunker struct {
	s            string
	max, overlap int
	// atoms end with a sentinel at len(s).
	atoms []atom
	// fences holds the first and the end atom of each fenced block.
	fences [][2]int
}

func (c *chunker) run() []Chunk {
	var out []Chunk
	last := len(c.atoms) - 1
	line, lineAt := 1, 0
	for from := 0; ; {
		to := c.end(from)
		a, b := int(c.atoms[from].start), int(c.atoms[to].start)
		line += strings.Count(c.s[lineAt:a], "\n")
		lineAt = a
		out = append(out, chunkOf(c.s, a, b, line))
		if to == last {
			return out
		}
		// An overlap that leaves no room for anything new is dropped.
		if from = c.next(from, to); c.end(from) <= to {
			from = to
		}
	}
}

func (c *chunker) tokens(from, to int) int { return int(c.atoms[to].tokens - c.atoms[from].tokens) }

func (c *chunker) bytes(from, to int) int { return int(c.atoms[to].start - c.atoms[from].start) }

// end returns the atom before which the chunk that starts at from is cut.
func (c *chunker) end(from int) int {
	last := len(c.atoms) - 1
	hard := from
	for hard < last && c.fits(from, hard+1) {
		hard++
	}
	if hard == last {
		return last
	}
	hard = max(hard, from+1)
	if f := c.atoms[hard].fence; f > 0 {
		block := c.fences[f-1]
		if block[0] > from && c.fits(block[0], block[1]) {
			hard = block[0] // before code that fits in the next chunk
		}
	}
	best := hard
	for at := hard; at > from && 2*c.tokens(from, at) >= c.max; at-- {
		if c.atoms[at].cut > c.atoms[best].cut {
			best = at
		}
	}
	return best
}

func (c *chunker) fits(from, to int) bool {
	return c.tokens(from, to) <= c.max && c.bytes(from, to) <= c.max*maxChunkBytes
}

// next returns where the chunk after the one in from..to starts: up to overlap
// tokens before to, at the best place, and not inside code that was kept whole.
func (c *chunker) next(from, to int) int {
	best, floor := to, from+1
	for at := to - 1; at >= floor && c.tokens(at, to) <= c.overlap; at-- {
		if isSpace(c.s[c.atoms[at].start]) {
			continue
		}
		if f := c.atoms[at].fence; f > 0 && c.fences[f-1][0] < at && c.fits(c.fences[f-1][0], c.fences[f-1][1]) {
			continue
		}
		if best == to || c.atoms[at].cut >= c.atoms[best].cut {
			best = at
		}
	}
	if c.bytes(best, to) > c.overlap*maxChunkBytes {
		return to
	}
	return best
}
