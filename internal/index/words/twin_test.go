package words

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// listed is what a vocabulary lists.
type listed struct {
	Terms []string
	All   bool
}

func list(terms []string, all bool) listed { return listed{terms, all} }

// near looks for a word by itself.
func near(v *Vocabulary, word string, edits int, work *Work) []Match {
	var p Pattern
	p.Set(word, edits)
	return v.Near(nil, &p, work)
}

// twin is the vocabulary as it should be: a list.
type twin []string

func (w twin) beginnings(word string, limit int) (out listed) {
	for _, t := range w {
		if strings.HasPrefix(t, word) && t != word {
			out.Terms = append(out.Terms, t)
		}
	}
	if len(out.Terms) > limit {
		return listed{}
	}
	out.All = true
	return out
}

func (w twin) endings(word string, limit int) (out listed) {
	for _, t := range w {
		if strings.HasSuffix(t, word) && t != word {
			out.Terms = append(out.Terms, t)
		}
	}
	if len(out.Terms) > limit {
		return listed{}
	}
	out.All = true
	return out
}

func (w twin) near(word string, edits int) (out []Match) {
	if len(word) > MaxNear {
		return nil
	}
	first, _ := utf8.DecodeRuneInString(word)
	for _, t := range w {
		if r, _ := utf8.DecodeRuneInString(t); edits > 1 && r != first {
			continue
		}
		if d := distance(word, t); d > 0 && d <= edits {
			out = append(out, Match{t, d})
		}
	}
	return out
}

func (w twin) splits(word string) (out []Split) {
	r := []rune(word)
	for at := MinSplit; at <= len(r)-MinSplit; at++ {
		if a, b := string(r[:at]), string(r[at:]); slices.Contains(w, a) && slices.Contains(w, b) {
			out = append(out, Split{a, b})
		}
	}
	return out
}

// distance is the optimal string alignment distance (Damerau 1964; the recurrence of
// Wagner and Fischer with swaps of neighbours).
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	d := make([][]int, len(x)+1)
	for i := range d {
		d[i] = make([]int, len(y)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(x)][len(y)]
}

const plenty = 1 << 30

// seeded prints the seed of a random test with what replays it.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("WORDS_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("WORDS_SEED=%d go test -run %s", seed, t.Name())
		}
	})
	return rand.New(rand.NewPCG(seed, 9))
}

// alphabets are small, so that words are near to one another.
var alphabets = []string{"ab", "abcde", "aé用ё😀", "ab\u200f\u0301", "0123456789abcdef"}

func randomWord(rng *rand.Rand, alphabet []rune, most int) string {
	b := make([]rune, 1+rng.IntN(most))
	for i := range b {
		b[i] = alphabet[rng.IntN(len(alphabet))]
	}
	return string(b)
}

// edited changes up to n characters.
func edited(rng *rand.Rand, word string, alphabet []rune, n int) string {
	r := []rune(word)
	for range rng.IntN(n + 1) {
		at, c := rng.IntN(len(r)+1), alphabet[rng.IntN(len(alphabet))]
		switch rng.IntN(4) {
		case 0:
			r = slices.Insert(r, at, c)
		case 1:
			if at < len(r) && len(r) > 1 {
				r = slices.Delete(r, at, at+1)
			}
		case 2:
			if at < len(r) {
				r[at] = c
			}
		default:
			if at+1 < len(r) {
				r[at], r[at+1] = r[at+1], r[at]
			}
		}
	}
	return string(r)
}

// cut makes a vocabulary of which a part is beside the transducer.
func cut(t *testing.T, rng *rand.Rand, all []string, built int) *Vocabulary {
	t.Helper()
	mixed := slices.Clone(all)
	rng.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	v, err := Build(slices.Clone(mixed[:built]))
	if err != nil {
		t.Fatal(err)
	}
	if built < len(mixed) || rng.IntN(2) == 0 {
		fresh := append(mixed[built:], mixed[:rng.IntN(built+1)]...) // some again
		some := rng.IntN(len(fresh) + 1)
		v = v.With(fresh[some:]).With(fresh[:some])
	}
	return v
}

// TestLookUpsEqualADumbScan compares every look-up with a scan of all terms, however
// the terms are divided, and the work that it takes with that of another division.
func TestLookUpsEqualADumbScan(t *testing.T) {
	rng := seeded(t)
	term := func(half string) string { return half }
	for round := range 5 {
		alphabet := []rune(alphabets[round%len(alphabets)])
		var all []string
		for range rng.IntN(200) {
			all = append(all, randomWord(rng, alphabet, 1+rng.IntN(14)))
		}
		slices.Sort(all)
		all = slices.Compact(all)
		vocabularies := []*Vocabulary{cut(t, rng, all, 0), cut(t, rng, all, len(all)), cut(t, rng, all, rng.IntN(len(all)+1)), new(Vocabulary).With(all)}
		for range 40 {
			word := randomWord(rng, alphabet, 10)
			if len(all) > 0 && rng.IntN(4) > 0 {
				word = edited(rng, all[rng.IntN(len(all))], alphabet, 3)
			}
			if rng.IntN(3) == 0 {
				word = word[:len(string([]rune(word)[:rng.IntN(utf8.RuneCountInString(word)+1)]))]
			}
			limit := 1 + rng.IntN(40)
			type answer struct {
				Beginnings, Endings listed
				Near1, Near2        []Match
				Splits              []Split
				Has                 bool
				Work                [2]int
			}
			want := answer{Beginnings: twin(all).beginnings(word, limit), Endings: twin(all).endings(word, limit), Splits: twin(all).splits(word),
				Has: slices.Contains(all, word)}
			if word != "" {
				want.Near1, want.Near2 = twin(all).near(word, 1), twin(all).near(word, 2)
			}
			for i, v := range vocabularies {
				w1, w2 := Work{plenty}, Work{plenty}
				got := answer{Beginnings: list(v.Beginnings(nil, word, limit)), Endings: list(v.Endings(nil, word, limit)), Near1: near(v, word, 1, &w1),
					Near2: near(v, word, 2, &w2), Splits: v.Splits(nil, word, term), Has: v.Has(word)}
				got.Work = [2]int{plenty - w1.Nodes, plenty - w2.Nodes}
				if i == 0 {
					want.Work = got.Work
				}
				if a, b := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); a != b {
					t.Fatalf("round %d, division %d, word %q:\n%s\nwant\n%s", round, i, word, a, b)
				}
			}
		}
	}
}

// TestWorkThatRunsOutFindsNothing: a part of the matches would depend on which terms
// are in the transducer.
func TestWorkThatRunsOutFindsNothing(t *testing.T) {
	rng := seeded(t)
	alphabet := []rune("abc")
	var all []string
	for range 400 {
		all = append(all, randomWord(rng, alphabet, 9))
	}
	slices.Sort(all)
	all = slices.Compact(all)
	whole, divided := cut(t, rng, all, len(all)), cut(t, rng, all, len(all)/2)
	for range 50 {
		word := edited(rng, all[rng.IntN(len(all))], alphabet, 2)
		if word == "" {
			continue
		}
		need := Work{plenty}
		want := near(whole, word, 1, &need)
		for _, v := range []*Vocabulary{whole, divided} {
			for less := range 3 {
				work := Work{plenty - need.Nodes + 1 - less}
				got := near(v, word, 1, &work)
				if less > 0 && len(got) > 0 || less == 0 && len(got) != len(want) {
					t.Fatalf("%q with %d nodes less than it takes: %v, all are %v", word, less-1, got, want)
				}
				if work.Nodes < 0 {
					t.Fatalf("%d nodes too many", -work.Nodes)
				}
			}
		}
	}
}

// TestWordsOfAllKinds asks for what a query may hold: long and empty words, scripts
// without case, marks of direction, bytes that are no text.
func TestWordsOfAllKinds(t *testing.T) {
	rng := seeded(t)
	terms := []string{"用户界面", "\u200fשלום", "naïve", strings.Repeat("x", 128)}
	for n := 1; n <= 42; n++ {
		terms = append(terms, strings.Repeat("a", n), strings.Repeat("用", n))
	}
	v := cut(t, rng, terms, len(terms)/2)
	for _, n := range []int{0, 1, 2, 3, 5, 7, 8, 10, 11, 12, 16, 31, 32, 33, 64, 65, 128, 200} {
		for _, c := range []string{"a", "用", "\u200f", "😀", "\xff"} {
			word := strings.Repeat(c, n)
			work := Work{plenty}
			found := near(v, word, 1, &work)
			for _, m := range found {
				if distance(word, m.Term) != m.Edits {
					t.Errorf("%q is %d from %q, not %d", word, distance(word, m.Term), m.Term, m.Edits)
				}
			}
			if len(word) > MaxNear && len(found) > 0 {
				t.Errorf("%d bytes have %d near", len(word), len(found))
			}
			if c == "用" && n > 1 && 3*n <= MaxNear && len(found) != 2 {
				t.Errorf("%d characters have %v near", n, found)
			}
			near(v, word, 2, &work)
			v.Splits(nil, word, func(half string) string { return half })
			v.Beginnings(nil, word, 10)
			v.Endings(nil, word, 10)
			Sound(word)
			Strangeness(word, terms[n%len(terms)])
		}
	}
	long := strings.Repeat("0123456789abcdef", 1<<10)
	work := Work{plenty}
	if got := near(v, long, 2, &work); got != nil || work.Nodes != plenty {
		t.Errorf("a word of 16 KiB has %v near", got)
	}
	if v.Splits(nil, long, func(half string) string { return half }) != nil || v.Has(long) || list(v.Beginnings(nil, long, 10)).Terms != nil || list(v.Endings(nil, long, 10)).Terms != nil {
		t.Error("a word of 16 KiB is known")
	}
}

func TestSound(t *testing.T) {
	for _, same := range [][2]string{{"fone", "phone"}, {"kubernetes", "cubernetes"}, {"recieve", "receive"}, {"definately", "definitely"},
		{"nife", "knife"}, {"databaze", "database"}, {"kwery", "query"}, {"adress", "address"}} {
		if a, b := Sound(same[0]), Sound(same[1]); a != b {
			t.Errorf("%q sounds like %q, %q like %q", same[0], a, same[1], b)
		}
	}
	for _, other := range [][2]string{{"cat", "car"}, {"node", "code"}, {"index", "intro"}, {"用户", "用戶"}} {
		if Sound(other[0]) == Sound(other[1]) {
			t.Errorf("%q and %q sound alike: %q", other[0], other[1], Sound(other[0]))
		}
	}
}

func TestStrangeness(t *testing.T) {
	for _, c := range []struct {
		word, term string
		want       int
	}{
		{"typsecript", "typescript", 0}, // swapped
		{"serber", "server", 0},         // b beside v
		{"definately", "definitely", 0}, // sounds alike
		{"sercer", "serper", 1},
		{"nongo", "mongo", 2}, // n beside m, but in front
		{"xongo", "mongo", 3},
		{"用户", "用戶", 1},
		{"", "a", 3},
	} {
		if got := Strangeness(c.word, c.term); got != c.want {
			t.Errorf("%q for %q: %d, want %d", c.word, c.term, got, c.want)
		}
	}
}
