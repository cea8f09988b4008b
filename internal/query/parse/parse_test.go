package parse

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"mneme/internal/text"
)

func strs(all []Phrase) (out []string) {
	for _, ph := range all {
		out = append(out, ph.String())
	}
	return out
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		query, text      string
		phrases, without []string
		beginnings       []string
	}{
		{query: "port of the gateway", text: "port of the gateway"},
		{query: "", text: ""},
		{query: `say "Hello  World" now`, text: "say  Hello  World  now", phrases: []string{"hello world"}},
		{query: `"to be" „or“ «not» 「好」`, text: " to be   or   not   好 ", phrases: []string{"to be", "or", "not", "好"}},
		{query: `"a b" "A  B"`, text: " a b   A  B ", phrases: []string{"a b"}},
		{query: `name="x y"`, text: "name= x y ", phrases: []string{"x y"}},
		{query: `"never shut`, text: `"never shut`},
		{query: `a 3.5" disk and a 5" disk, say"x"`, text: `a 3.5" disk and a 5" disk, say"x"`},
		{query: "找「好」的", text: "找 好 的", phrases: []string{"好"}},
		{query: `""  " "`, text: `""  " "`},
		{query: "who was killed?", text: "who was killed?"},
		{query: "mongo -atlas", text: "mongo ", without: []string{"atlas"}},
		{query: `mongo -"in the cloud" -user_profile`, text: "mongo  ", without: []string{"in the cloud", "user_profile"}},
		{query: "-atlas mongo", text: " mongo", without: []string{"atlas"}},
		{query: "-atlas", text: "-atlas"},
		{query: "-atlas -cloud", text: "-atlas -cloud"},
		{query: "git commit --no-verify", text: "git commit --no-verify"},
		{query: "tail -f -1 - — -", text: "tail -f -1 - — -"},
		{query: "re-read e-mail a - b", text: "re-read e-mail a - b"},
		{query: "find -(x) -x=1", text: "find -(x) -x=1"},
		{query: "deploy* of Kube*, deploy*", text: "deploy of Kube, deploy", beginnings: []string{"deploy", "Kube"}},
		{query: "is it v1.2*? 10.0.* 3f2a* internal/sto*", text: "is it v1.2? 10.0. 3f2a internal/sto", beginnings: []string{"v1.2", "10.0.", "3f2a", "internal/sto"}},
		{query: "数* разв* é* öl*", text: "数 разв é* öl", beginnings: []string{"数", "разв", "öl"}},
		{query: "select * from a* **bold** -x* x*y *word (word*) .word* word**", text: "select * from a* **bold** -x* x*y *word (word*) .word* word**"},
		{query: `"word* of" -deploy* -deploy mongo`, text: ` word* of    mongo`, phrases: []string{"word* of"}, without: []string{"deploy*", "deploy"}},
		{query: "a pasted* text\nof lines", text: "a pasted* text\nof lines"},
		{query: "a OR b AND NOT site:x (c)", text: "a OR b AND NOT site:x (c)"},
		{query: "panic: \"x\"\n\tmain.go:1 -v* -race", text: "panic: \"x\"\n\tmain.go:1 -v* -race"},
		{query: "ends with a line -race\n", text: "ends with a line \n", without: []string{"race"}},
		{query: "\u200f-שלום עולם", text: "\u200f-שלום עולם"},
		{query: "עולם -שלום", text: "עולם ", without: []string{"שלום"}},
		{query: "数据库 -备份", text: "数据库 ", without: []string{"备份"}},
	} {
		q := Parse(c.query)
		if q.Text != c.text || !slices.Equal(strs(q.Phrases), c.phrases) || !slices.Equal(strs(q.Without), c.without) || !slices.Equal(q.Beginnings, c.beginnings) {
			t.Errorf("%q: %q %q %q %q; want %q %q %q %q", c.query, q.Text, strs(q.Phrases), strs(q.Without), q.Beginnings, c.text, c.phrases, c.without, c.beginnings)
		}
		if len(q.Phrases) == 0 && q.Beside != q.Text {
			t.Errorf("%q: beside phrases %q, and there are none", c.query, q.Beside)
		}
	}
	for query, want := range map[string]string{`"a b"`: " ", `say "a b" now kube*`: "say   now kube", `msg="a" -bb`: "msg=  ", `"a`: `"a`} {
		if q := Parse(query); q.Beside != want {
			t.Errorf("%q: beside phrases %q, want %q", query, q.Beside, want)
		}
	}
	for one, most := range map[string]int{`"word%d" `: maxPhrases, "x -word%d ": maxPhrases, "word%d* ": maxBeginnings} {
		many := ""
		for i := range most + 1 {
			if q := Parse(many); i > 0 && len(q.Phrases)+len(q.Without)+len(q.Beginnings) != i {
				t.Errorf("%d of %q: %+v", i, one, q)
			}
			many += fmt.Sprintf(one, i)
		}
		if q := Parse(many); q.Text != many || q.Beside != many || len(q.Phrases)+len(q.Without)+len(q.Beginnings) > 0 {
			t.Errorf("%q was pasted: %+v", many, q)
		}
	}
}

func TestPhraseIn(t *testing.T) {
	for _, c := range []struct {
		phrase, text string
		want         bool
	}{
		{"harbour crane", "the Harbour\n\n CRANE, still", true},
		{"harbour crane", "the harbour cranes", false},
		{"harbour crane", "theharbour crane", false},
		{"harbour crane", "harbour cranes and a harbour crane", true},
		{"to be", "to be or not", true},
		{"profile", "user_profile", true},
		{"profile", "userprofile", false},
		{"memtable.go", "internal/store/memtable.go:42", true},
		{"v1.29", "v1.29.4", true},
		{"1.29", "v1.29.4", false},
		{"cafe", "Café", true},
		{"e", "e\u0301", true}, // folds to e
		{"क", "कि", false},     // another letter with a sign
		{"邻居一起", "今天和邻居一起吃晚饭", true},
		{"邻居a", "邻居abc", false},
		{"->", "a->b", true},
		{"-> b", "a->b", false},
		{"ｆｕｌｌ", "full width", true},
		{"crane*", "cranes", false},
	} {
		ph, ok := NewPhrase(c.phrase)
		if got := ph.In(Fold(c.text)); !ok || got != c.want {
			t.Errorf("%q in %q: %v", c.phrase, c.text, got)
		}
	}
	if ph, _ := NewPhrase("crane"); ph.begins {
		t.Error("it begins words")
	} else if ph.begins = true; !ph.In("cranes") || ph.In("acrane") || !ph.In("a crane") {
		t.Error("it does not begin what it begins")
	}
	if _, ok := NewPhrase(" \n"); ok || (Phrase{}).In("x") {
		t.Error("white space is a phrase")
	}
}

// A phrase of 16 KiB that stands at each word of 256 KiB, and never at an edge, was compared from
// each of them.
func TestPhrasesTookTimeForEachOfTheirWords(t *testing.T) {
	ph, _ := NewPhrase(strings.Repeat("xz ", 5000) + "x")
	text := Fold(strings.Repeat("xz ", 80_000))
	began := time.Now()
	if ph.In(text) || !ph.In(text+" x") {
		t.Error("it is found where it is not, or not where it is")
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

// A look at each place of a text, edge by edge.
func TestPhraseTwin(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	draw := func(n int) string {
		out := ""
		for range r.IntN(n) {
			out += []string{"a", "b", "aa", " ", " ", "_", "-", "1", "数", "据", "É", "\u0301"}[r.IntN(12)]
		}
		return out
	}
	found := 0
	for range 5000 {
		ph, ok := NewPhrase(draw(6))
		if !ok {
			continue
		}
		folded := []rune(Fold(draw(30)))
		p, want := []rune(ph.folded), false
		word := func(i int) bool {
			return i >= 0 && i < len(folded) && (unicode.IsLetter(folded[i]) || unicode.IsNumber(folded[i]) || unicode.IsMark(folded[i]))
		}
		cut := func(i int) bool { // a word goes over the border before i
			han := func(i int) bool { return unicode.Is(unicode.Han, folded[i]) }
			return word(i-1) && word(i) && !(han(i-1) && han(i))
		}
		for i := 0; i+len(p) <= len(folded); i++ {
			want = want || slices.Equal(folded[i:i+len(p)], p) && !cut(i) && !cut(i+len(p))
		}
		if got := ph.In(string(folded)); got != want {
			t.Fatalf("seed %d: %q in %q: %v", seed, ph.folded, string(folded), got)
		}
		if want {
			found++
		}
	}
	if found == 0 {
		t.Error("none was found")
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`a "b c" -d`, `"`, `-"`, "-", "*", "“", "\u200f-x", "ab* -cd* \"e*\" *", "数*", "10.0.* v1.*?", strings.Repeat(`"a`, 50), "\xff\"\xff\""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q := Parse(s)
		if strings.TrimSpace(s) != "" && strings.TrimSpace(q.Text) == "" && strings.ContainsFunc(s, unicode.IsLetter) {
			t.Errorf("nothing is left of %q", s)
		}
		for _, ph := range append(q.Phrases, q.Without...) {
			if ph.String() == "" || Fold(ph.String()) == "" {
				t.Errorf("%q: an empty phrase", s)
			}
		}
		for _, b := range q.Beginnings {
			if !strings.Contains(q.Text, b) || !isBeginning(b) {
				t.Errorf("%q begins with %q", s, b)
			}
		}
		if !strings.ContainsAny(s, "*-\"“„«「『") && q.Text != s {
			t.Errorf("%q became %q", s, q.Text)
		}
	})
}

// A query costs what its length is, not its square.
func BenchmarkParse(b *testing.B) {
	for name, s := range map[string]string{"one word": strings.Repeat("a", 16<<10), "open quotes": strings.Repeat("“a ", 16<<10/5), "stars": strings.Repeat("*", 16<<10), "dashes": strings.Repeat(" -", 8<<10)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_ = Parse(s)
			}
		})
	}
}

// TestFoldASCII holds the pass over ASCII to the way of all other texts.
func TestFoldASCII(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		b := make([]byte, rng.IntN(20))
		for i := range b {
			b[i] = byte(rng.IntN(128))
			if rng.IntN(2) == 0 {
				b[i] = " \t\n\v\f\r\x1c Aa"[rng.IntN(10)]
			}
		}
		s := string(b)
		if got, want := Fold(s), strings.Join(strings.Fields(text.Fold(s)), " "); got != want {
			t.Fatalf("%q: %q, want %q", s, got, want)
		}
	}
	if got := Fold(" Ä  b "); got != "a b" {
		t.Errorf("%q", got)
	}
}
