package text

import (
	"slices"
	"testing"
	"unicode/utf8"
)

// seeds are texts with something of everything.
var seeds = []string{
	"", " ", "plain words", "don't stop, it's Caroline's", "https://a.b/c_d?e=1#f", "a@b.c C++ x::y HTTPServer2 v1.2.3",
	"我的猫 2024年5月1日", "ｶﾞカ\u3099 東京", "한국어 \u1112\u1161\u11ab", "สวัสดี", "👩‍💻👍🏽❤️🇩🇪1️⃣", "café e\u0301 ﬁ ＡＢＣ",
	"# h\n\ntext. More.\n```go\ncode\n```\n", "~~~\n```\n", "\xff\xfe\x00", "a\u200db", "\u0301\u0301", "x.y.z...a--b", "2023-05-08T1", "1,2,3.4.5",
}

func FuzzAnalyze(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		pos := 0
		var terms []string
		AnalyzeWords(s, func(w Word) bool {
			if w.Start < 0 || w.Start >= w.End || w.End > len(s) {
				t.Fatalf("%q: %q at %d..%d", s, w.Term, w.Start, w.End)
			}
			if w.Term == "" || len(w.Term) > maxTerm {
				t.Fatalf("%q: term %q", s, w.Term)
			}
			if utf8.ValidString(s) && (!utf8.ValidString(w.Term) || !utf8.ValidString(s[w.Start:w.End])) {
				t.Fatalf("%q: term %q cuts a character", s, w.Term)
			}
			if w.Pos < pos {
				t.Fatalf("%q: position %d after %d", s, w.Pos, pos)
			}
			pos = w.Pos
			if w.Kind != KindStop {
				terms = append(terms, w.Term)
			}
			return true
		})
		if again := Terms(s); !slices.Equal(again, terms) {
			t.Fatalf("%q: %q, then %q", s, terms, again)
		}
		AnalyzeTag(s)
		AnalyzeURI(s)
	})
}

func FuzzChunks(f *testing.F) {
	for i, s := range seeds {
		f.Add(s, i%7, i%3)
	}
	f.Fuzz(func(t *testing.T, s string, maxTokens, overlap int) {
		chunks := Chunks(s, maxTokens, overlap)
		if maxTokens < 1 {
			maxTokens = DefaultChunkTokens
		}
		checkChunks(t, s, chunks, maxTokens)
	})
}

func FuzzSnippet(f *testing.F) {
	for i, s := range seeds {
		f.Add(s, seeds[(i+3)%len(seeds)], i)
	}
	f.Fuzz(func(t *testing.T, s, query string, maxRunes int) {
		checkSnippet(t, s, append(Terms(query), Terms(s)...), maxRunes)
	})
}
