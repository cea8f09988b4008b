package text

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// checkChunks fails if the pieces break a promise of Chunks.
func checkChunks(t *testing.T, s string, chunks []Chunk, maxTokens int) {
	t.Helper()
	if s == "" {
		if len(chunks) != 0 {
			t.Fatalf("empty text has %d chunks", len(chunks))
		}
		return
	}
	if len(chunks) == 0 || chunks[0].Start != 0 || chunks[len(chunks)-1].End != len(s) {
		t.Fatalf("%q is not covered: %+v", s, chunks)
	}
	for i, c := range chunks {
		if c.Start >= c.End || c.Text != s[c.Start:c.End] {
			t.Fatalf("chunk %d: %d..%d of %q holds %q", i, c.Start, c.End, s, c.Text)
		}
		if i > 0 && (c.Start <= chunks[i-1].Start || c.Start > chunks[i-1].End || c.End <= chunks[i-1].End) {
			t.Fatalf("chunk %d (%d..%d) does not follow %d..%d", i, c.Start, c.End, chunks[i-1].Start, chunks[i-1].End)
		}
		if n := countTokens(c.Text); n > maxTokens {
			t.Fatalf("chunk %d has %d tokens of %d", i, n, maxTokens)
		}
		if len(c.Text) > maxTokens*maxChunkBytes+maxTokenBytes+utf8.UTFMax {
			t.Fatalf("chunk %d has %d bytes at %d tokens", i, len(c.Text), maxTokens)
		}
		if utf8.ValidString(s) && !utf8.ValidString(c.Text) {
			t.Fatalf("chunk %d cuts a character: %q", i, c.Text)
		}
		if a, b := Lines(s, c.Start, c.End); a != c.StartLine || b != c.EndLine {
			t.Fatalf("chunk %d is on lines %d..%d, says %d..%d", i, a, b, c.StartLine, c.EndLine)
		}
	}
}

func TestChunks(t *testing.T) {
	code := "```go\n" + strings.Repeat("a := b\n", 5) + "```\n"
	tests := []struct {
		name         string
		in           string
		max, overlap int
		want         []string
	}{
		{"empty", "", 4, 0, nil},
		{"only space", " \n\n ", 4, 0, []string{" \n\n "}},
		{"fits", "one two three.", 4, 1, []string{"one two three."}},
		{"headings first", "a b c\n\nd\n# H\ne f g", 6, 0, []string{"a b c\n\nd\n", "# H\ne f g"}},
		{"blank line before line end", "a b c\n\nd e\nf g h", 6, 0, []string{"a b c\n\n", "d e\nf g h"}},
		{"line end before sentence end", "a b. c\nd e. f g h i", 6, 0, []string{"a b. c\n", "d e. f g h i"}},
		{"sentence end before word end", "a b c d. e f g h i", 6, 0, []string{"a b c d. ", "e f g h i"}},
		{"word end", "a b c d e", 3, 0, []string{"a b c ", "d e"}},
		{"overlap at words", "a b c d e f", 4, 1, []string{"a b c d ", "d e f"}},
		{"overlap from a sentence", "a b c. d e f g h", 5, 2, []string{"a b c. ", "b c. d e f ", "e f g h"}},
		{"code stays whole", "a b c\n" + code + "d e", 11, 0, []string{"a b c\n", code, "d e"}},
		{"chinese sentences", "我喜欢猫。他喜欢狗。", 6, 0, []string{"我喜欢猫。", "他喜欢狗。"}},
		{"long word", strings.Repeat("x", 150), 1, 0, []string{strings.Repeat("x", 64), strings.Repeat("x", 64), strings.Repeat("x", 22)}},
		{"windows line ends", "a b c\r\n\r\nd e f", 4, 0, []string{"a b c\r\n\r\n", "d e f"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			chunks := Chunks(test.in, test.max, test.overlap)
			checkChunks(t, test.in, chunks, test.max)
			var got []string
			for _, c := range chunks {
				got = append(got, c.Text)
			}
			if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", test.want) {
				t.Errorf("\n got %q\nwant %q", got, test.want)
			}
		})
	}
}

func countTokens(s string) int {
	atoms := splitAtoms(s)
	return int(atoms[len(atoms)-1].tokens)
}

func TestChunksDefaults(t *testing.T) {
	s := strings.Repeat("This is a sentence of seven words. ", 400)
	chunks := Chunks(s, 0, -1)
	checkChunks(t, s, chunks, DefaultChunkTokens)
	for i, c := range chunks[:len(chunks)-1] {
		if n := countTokens(c.Text); n < DefaultChunkTokens/2 {
			t.Errorf("chunk %d has only %d tokens", i, n)
		}
		if shared := c.End - chunks[i+1].Start; shared == 0 {
			t.Errorf("chunks %d and %d do not overlap", i, i+1)
		}
		if !strings.HasPrefix(chunks[i+1].Text, "This") {
			t.Errorf("chunk %d starts with %.20q", i+1, chunks[i+1].Text)
		}
	}
}

func TestCodeFences(t *testing.T) {
	s := "~~~\n# no heading\n```\n~~~~\n# heading\n"
	c := chunker{s: s, max: 9, atoms: splitAtoms(s)}
	c.rate()
	headings := 0
	for _, a := range c.atoms {
		if a.cut == cutHeading {
			headings++
			if !strings.HasPrefix(s[a.start:], "# heading") {
				t.Errorf("heading found at %q", s[a.start:])
			}
		}
	}
	if headings != 1 || len(c.fences) != 1 {
		t.Errorf("%d headings, fences %v", headings, c.fences)
	}
	for line, want := range map[string]bool{"# a": true, "#": true, "###### a": true, "####### a": false, "#a": false, "a": false} {
		if isHeading(line) != want {
			t.Errorf("isHeading(%q) = %t", line, !want)
		}
	}
	for line, want := range map[string]string{"```go": "```", "````": "````", "``": "", "```a```": "", "~~~ x": "~~~", "- ```": ""} {
		if got := fenceMarker(line); got != want {
			t.Errorf("fenceMarker(%q) = %q", line, got)
		}
	}
}

// piece returns a random bit of Markdown, prose or rubbish.
func piece(r *rand.Rand) string {
	pieces := []string{"word ", "Sentence end. ", "\n", "\n\n", "# head\n", "```\n", "~~~\n", "我", "猫。", "カ\u3099", "é", "e\u0301\u0301",
		"👩‍💻", "\r\n", "----------", " ", "\t", "a.b/c_d", "\xff", "\x00", "한국", "สวั", "!?", strings.Repeat("y", 70)}
	return pieces[r.IntN(len(pieces))]
}

func TestChunksKeepTheirPromisesOnRandomText(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 3000 {
		var b strings.Builder
		for range r.IntN(120) {
			b.WriteString(piece(r))
		}
		s, maxTokens, overlap := b.String(), 1+r.IntN(20), r.IntN(12)
		checkChunks(t, s, Chunks(s, maxTokens, overlap), maxTokens)
		if t.Failed() {
			t.Fatalf("seed %d, max %d, overlap %d", seed, maxTokens, overlap)
		}
	}
}

func TestChunksOfTextWithoutWords(t *testing.T) {
	for _, s := range []string{strings.Repeat("-", 5000), strings.Repeat(" \n", 5000), strings.Repeat("```\n", 2000), "猫" + strings.Repeat("\u0301", 9000)} {
		checkChunks(t, s, Chunks(s, 8, 2), 8)
	}
}

// TestLongRepeatsTakeLinearTime: a scan to the end of a word for each of its pieces
// took minutes on a limit-sized text of combining vowels.
func TestLongRepeatsTakeLinearTime(t *testing.T) {
	for _, unit := range []string{"\u0e31", "\u0301", "é", "猫", "1年", "a:\u0301", "👩\u200d", "```\n", "\xff", "1-", "🇩"} {
		s := strings.Repeat(unit, 256<<10/len(unit))
		began := time.Now()
		query := Terms(s)
		Snippet(s, query[:min(len(query), 50)], 0)
		checkChunks(t, s, Chunks(s, 0, -1), DefaultChunkTokens)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%q repeated to %d bytes took %v", unit, len(s), took)
		}
	}
}
