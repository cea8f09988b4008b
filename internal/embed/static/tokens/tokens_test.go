package tokens

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"mneme/internal/text"
)

func cut(s string, words ...string) []string {
	var out []string
	Each(text.NewAnalysis(s), func(w string) bool { return slices.Contains(words, w) }, func(t Token) {
		out = append(out, []string{"word", "stop", "whole", "number", "run", "character"}[t.Kind]+":"+t.Text)
	})
	return out
}

func TestEach(t *testing.T) {
	tests := []struct {
		text  string
		words []string
		want  string
	}{
		{"", nil, ""},
		{"The deployments happen", nil, "stop:the word:deploy word:happen"},
		{"in internal/text 3.14", nil, "stop:in whole:internal/text word:intern word:text number:3.14"},
		{"我喜欢你", nil, "character:我 character:喜 character:欢 character:你"},
		{"我喜欢你", []string{"喜欢", "喜欢你们"}, "character:我 character:喜 character:欢 run:喜欢 character:你"},
		{"北京大学生", []string{"北京", "北京大学", "大学生"}, "character:北 character:京 character:大 character:学 run:北京大学 character:生"},
		{"喜，欢", []string{"喜欢"}, "character:喜 character:欢"},
		{"用kubernetes部署", []string{"部署"}, "character:用 word:kubernet character:部 character:署 run:部署"},
	}
	for _, test := range tests {
		if got := strings.Join(cut(test.text, test.words...), " "); got != test.want {
			t.Errorf("%q:\n got %s\nwant %s", test.text, got, test.want)
		}
	}
}

// TestNoVocabulary: nil knows no runs.
func TestNoVocabulary(t *testing.T) {
	Each(text.NewAnalysis("中文字"), nil, func(tok Token) {
		if tok.Kind != Character {
			t.Errorf("%q is of kind %d", tok.Text, tok.Kind)
		}
	})
}

// FuzzEach: characters of a stretch come in order and once each, and a run is made
// of the characters before it.
func FuzzEach(f *testing.F) {
	f.Add("北京大学 and 3月 や 한국어", uint8(3))
	f.Add("\xff中\xfe文", uint8(0))
	f.Fuzz(func(t *testing.T, s string, n uint8) {
		known := func(w string) bool { return Hash(w)%3 == uint64(n)%3 }
		var characters []string
		Each(text.NewAnalysis(s), known, func(tok Token) {
			switch tok.Kind {
			case Character:
				characters = append(characters, tok.Text)
			case Run:
				k := utf8.RuneCountInString(tok.Text)
				if k < 2 || k > MaxRun || !known(tok.Text) || strings.Join(characters[len(characters)-k:], "") != tok.Text {
					t.Errorf("run %q after %q", tok.Text, characters)
				}
			}
		})
	})
}

// Hash is a hash for the test.
func Hash(s string) (h uint64) {
	for i := range len(s) {
		h = h*131 + uint64(s[i])
	}
	return h
}
