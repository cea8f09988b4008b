package hooks

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"mneme/internal/recall"
	"mneme/memory"
)

// Lengths of a text that is kept, in characters, of which a wide one counts twice. What an
// explicit word asks to remember may be shorter.
const (
	minLength = 10
	maxLength = 500
)

// Found is a text that is worth keeping, and why.
type Found struct {
	Text     string
	Class    string // of the trigger
	Category string // preference, decision, entity, fact or other
}

// Kind is the category as memories have it; an entity is a fact with a tag.
func (f *Found) Kind() memory.Kind {
	switch f.Category {
	case "preference":
		return memory.KindPreference
	case "decision":
		return memory.KindDecision
	case "entity", "fact":
		return memory.KindFact
	}
	return memory.KindOther
}

// patterns are compiled when the first text is looked at: a hook that has none needs none.
type patterns struct {
	triggers []compiledTrigger
	never    []*regexp.Regexp
	tag      *regexp.Regexp
}

type compiledTrigger struct {
	*trigger
	is, unless, own *regexp.Regexp // unless and own may be nil
	chinese         bool           // fits in nothing that is not
}

var compiled = sync.OnceValue(func() *patterns {
	p := &patterns{
		never: compileAll(never),
		// <!-- -->, <br/>, </x>, <div class="x">, but not a < b > c or <3.
		tag: regexp.MustCompile(`<(?:/?[A-Za-z][\w:-]*(?:\s[^<>]*)?/?|!--.*?--|![A-Za-z][^<>]*)>`),
	}
	for i := range triggers {
		t := &triggers[i]
		p.triggers = append(p.triggers, compiledTrigger{t, compile(t.pattern), compile(t.unless), compile(t.own), strings.ContainsFunc(t.pattern, isHan)})
	}
	return p
})

// inCategories are the patterns of categories, for a text that is kept.
var inCategories = sync.OnceValue(func() []*regexp.Regexp {
	var out []*regexp.Regexp
	for _, c := range categories {
		out = append(out, regexp.MustCompile(`(?i)`+c.pattern))
	}
	return out
})

// Find looks for what is worth keeping in what a user said, or in a reply. A text of up to 500
// characters is looked at as one; of a longer one, each paragraph, and of a longer paragraph
// each sentence. What an explicit word asks to remember comes first.
func Find(text string, reply bool) []Found {
	var asked, others []Found
	for _, piece := range pieces(text) {
		f, ok := judge(piece, reply)
		switch {
		case !ok:
		case f.Class == "remember":
			asked = append(asked, f)
		default:
			others = append(others, f)
		}
	}
	return append(asked, others...)
}

// judge decides about one text: its length, what excludes it, then any trigger.
func judge(text string, reply bool) (Found, bool) {
	text = strings.TrimSpace(text)
	n := width(text)
	if n > maxLength || excluded(text) {
		return Found{}, false
	}
	plain := plain(text)
	said := said(plain)
	for _, sentence := range sentences(said) {
		for i := range compiled().triggers {
			t := &compiled().triggers[i]
			if n < minLength && t.class != "remember" {
				continue
			}
			in := sentence
			if t.whole {
				in = said
			}
			if t.fits(in, reply) {
				if t.rest && !says(t.is.ReplaceAllString(plain, "$1")) {
					return Found{}, false
				}
				return Found{Text: text, Class: t.class, Category: categoryOf(plain)}, true
			}
		}
	}
	return Found{}, false
}

func (t *compiledTrigger) fits(s string, reply bool) bool {
	if t.chinese && !strings.ContainsFunc(s, isHan) { // sooner than the pattern finds out
		return false
	}
	question := isQuestion(s)
	s = strings.TrimLeftFunc(s, isSign)
	return (!reply || t.replies) && (t.asks || !question) && t.is.MatchString(s) &&
		!(t.unless != nil && t.unless.MatchString(s)) && !(reply && t.own != nil && t.own.MatchString(s))
}

// width is the length of a text: a Chinese character says as much as two of others.
func width(s string) int {
	n := 0
	for _, r := range s {
		n++
		if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
			n++
		}
	}
	return n
}

func isHan(r rune) bool { return r >= 0x2e80 && unicode.Is(unicode.Han, r) }

// says reports whether a text has any words.
func says(s string) bool { return strings.TrimFunc(s, isSign) != "" }

// excluded: text with tags, what was recalled, and what instructs readers. Nobody says anything in code: see said.
func excluded(text string) bool {
	return recall.Contains(text) || compiled().tag.MatchString(text) || instructs(text)
}

func categoryOf(text string) string {
	for i, re := range inCategories() {
		if re.MatchString(text) {
			return categories[i].category
		}
	}
	return "other"
}

// IsNoise says that a prompt is nothing to search for, such as "go on".
func IsNoise(text string) bool {
	text = strings.TrimSpace(text)
	return width(text) < 3 || slash().MatchString(text) || noise().MatchString(strings.TrimFunc(plain(text), isSign))
}

// isSign: neither letter nor digit, of whatever script.
func isSign(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }

func isQuestion(s string) bool {
	s = strings.TrimRight(s, " \t\"')]”’」。.!！")
	return strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？") || strings.HasSuffix(s, "吗") || strings.HasSuffix(s, "呢")
}

// pieces cuts a text into what is judged, without blocks of code where it has to be cut.
func pieces(text string) []string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if width(text) <= maxLength {
		return []string{text}
	}
	var out []string
	for _, paragraph := range paragraphs(text) {
		if width(paragraph) <= maxLength {
			out = append(out, paragraph)
			continue
		}
		out = append(out, sentences(paragraph)...)
	}
	return out
}

// paragraphs cuts at empty lines and at items of lists, and leaves fenced code out.
func paragraphs(text string) []string {
	var out []string
	var now []string
	end := func() {
		if len(now) > 0 {
			out = append(out, strings.Join(now, "\n"))
		}
		now = nil
	}
	fence := ""
	for line := range strings.SplitSeq(text, "\n") {
		bare := strings.TrimSpace(line)
		switch {
		case fence != "":
			if strings.HasPrefix(bare, fence) {
				fence = ""
			}
		case strings.HasPrefix(bare, "```") && !strings.Contains(bare[3:], "`"), strings.HasPrefix(bare, "~~~"):
			end()
			fence = bare[:3]
		case bare == "":
			end()
		case strings.HasPrefix(bare, "- "), strings.HasPrefix(bare, "* "), strings.HasPrefix(bare, "#"):
			end()
			now = append(now, strings.TrimLeft(bare, "-*# "))
		default:
			now = append(now, line)
		}
	}
	end()
	return out
}

// sentences cuts behind . ! ? before white space, behind their Chinese forms, and at new lines.
func sentences(text string) []string {
	var out []string
	from := 0
	for i, r := range text {
		end := i + utf8.RuneLen(r)
		if r == utf8.RuneError {
			continue
		}
		switch r {
		case '.', '!', '?':
			if end < len(text) && text[end] != ' ' && text[end] != '\t' && text[end] != '\n' {
				continue
			}
		case '\n', '。', '！', '？', '；':
		default:
			continue
		}
		if s := strings.TrimSpace(text[from:end]); s != "" {
			out = append(out, s)
		}
		from = end
	}
	if s := strings.TrimSpace(text[from:]); s != "" {
		out = append(out, s)
	}
	return out
}
