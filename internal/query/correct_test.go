package query

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mneme/internal/embed"
	"mneme/internal/events"
	known "mneme/internal/index/words"
	"mneme/internal/query/querytest"
	"mneme/internal/settings"
	"mneme/internal/text"
	"mneme/memory"
)

// readAs prints what an answer corrected.
func readAs(res memory.SearchResponse) (out string) {
	for _, c := range res.Corrections {
		out += fmt.Sprintf("%s>%s(%s %d) ", c.Word, c.ReadAs, c.Kind, c.Docs)
	}
	return out
}

// TestCorrections asks for words that no memory has, in every way in which a word is
// corrected, and for some that are not.
func TestCorrections(t *testing.T) {
	for _, mode := range []memory.Mode{memory.ModeText, memory.ModeHybrid} {
		w := newWorld(t)
		w.Namespace("team", withBuiltin())
		for _, s := range []string{
			"the frontend is written in TypeScript since last year",
			"mongo holds the sessions of the portal",
			"Kubernetes upgrades happen on Tuesdays",
			"readFromUnixGroup lists the members of a group",
			"the userprofile service caches for an hour",
			"authentication uses tokens that expire",
			"commit 3f2a9c1d7b broke the build",
			"open a pull request for each fix",
			"the orchestrator restarts failed workers",
			"the grafana dashboard shows latency",
			"the billing reconciliation job runs nightly",
			"harmonics of the tide, and harmonium.rs plays them",
			"six deployments waited",
			"embankments hold, and Embankmon sings", // one may be meant, or the other
			"the flag --i-forgo-review is gone",
			"firmware 7QX4MM1 loses writes",
			"builds 9c4d1e0 9c4d1e1 9c4d1e2 9c4d1e3 9c4d1e4 are kept",
		} {
			w.One("team", "ann", s)
		}
		for range 45 {
			w.One("team", "ann", "the retrospective was moved")
		}
		w.One("team", "ann", "about the retrospectve once")
		for _, c := range []struct{ query, want, first string }{
			{"typsecript", "typsecript>typescript(edit 1) ", "TypeScript"},
			{"mango", "", ""}, // an ordinary word
			{"kuberne", "kuberne>kubernetes(beginning 1) ", "Kubernetes"},
			{"readfromunixgr", "readfromunixgr>readfromunixgroup(beginning 1) ", "readFromUnixGroup"},
			{"unixgroup", "unixgroup>unix group(split 1) unixgroup>readfromunixgroup(part 1) ", "readFromUnixGroup"},
			{"user profile", "user>userprofile(glued 1) profile>userprofile(glued 1) ", "userprofile"},
			{"grafna", "grafna>grafana(edit 1) ", "grafana"},
			{"graf ana", "graf>grafana(glued 1) ana>grafana(glued 1) ", "grafana"},
			{"billingreconciliation", "billingreconciliation>billing reconciliation(split 1) ", "billing"},
			{"k8s", "k8s>kubernetes(alias 1) ", "Kubernetes"},
			{"auth", "auth>authentication(alias 1) ", "authentication"},
			{"PR", "PR>pull request(alias 1) ", "pull request"},
			{"3f2a9c", "3f2a9c>3f2a9c1d7b(beginning 1) ", "3f2a9c1d7b"},
			{"3f2a9", "3f2a9>3f2a9c1d7b(beginning 1) ", "3f2a9c1d7b"},
			{"3F2A", "3F2A>3f2a9c1d7b(beginning 1) ", "3f2a9c1d7b"},
			{"3f2", "", ""},
			{"7QX4", "7QX4>7qx4mm1(beginning 1) ", "firmware"},
			{"9c4d1", "", ""}, // five begin so
			{"9c4d1e", "9c4d1e>9c4d1e0(beginning 1) 9c4d1e>9c4d1e1(beginning 1) 9c4d1e>9c4d1e2(beginning 1) ", "builds"},
			{"orchstrator", "orchstrator>orchestrator(edit 1) ", "orchestrator"},
			{"typsecrpit", "typsecrpit>typescript(edit 1) ", "TypeScript"},
			{"grafa", "grafa>grafana(beginning 1) ", "grafana"},
			{"--i-forg", "forg>forgo(beginning 1) i-forg>i-forgo-review(beginning 1) ", "the flag"},
			{"--i-forgo-reveiw", "reveiw>review(edit 1) i-forgo-reveiw>i-forgo-review(edit 1) ", "the flag"},
			{"harmoni", "harmoni>harmonics(beginning 1) harmoni>harmonium(beginning 1) harmoni>harmonium.rs(beginning 1) ", "harmonics"},
			{"deploymen", "deploymen>deployments(beginning 1) ", "six"},
			{"embankmen", "embankmen>embankmon(edit 1) embankmen>embankments(beginning 1) ", "embankments"},
			{"fixin", "", ""}, // three characters without the ending say little
			{"testint8x64convrt", "", ""},
			{"retrospectve", "retrospectve>retrospective(common 45) ", "about the retrospectve"},
			{"kubernetes", "kubernetes>orchestrator(related 1) ", "Kubernetes"},
			{"qzxv", "", ""},
			{"数据库", "", ""},
		} {
			res := w.search("team", "", memory.SearchRequest{Query: c.query, Mode: mode, All: true})
			if got := readAs(res); got != c.want {
				t.Errorf("%s %q: %s, want %s", mode, c.query, got, c.want)
			}
			if c.first != "" && (len(res.Results) == 0 || !strings.Contains(res.Results[0].Text, c.first)) {
				t.Errorf("%s %q: found %q", mode, c.query, texts(res.Results))
			}
			off := w.search("team", "", memory.SearchRequest{Query: c.query, Mode: mode, Parts: map[memory.Part]bool{memory.PartVocabulary: false}})
			if len(off.Corrections) > 0 {
				t.Errorf("%q: corrected although switched off", c.query)
			}
		}
	}
}

// TestShortBeginningsOfManyIDs: few characters of a hash that begin few say which one is meant, and
// put nothing in front of a memory that has them as they are.
func TestShortBeginningsOfManyIDs(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	rng := rand.New(rand.NewPCG(3, 3))
	var ids []string
	var batch []memory.Capture
	begin := map[string]int{}
	for range 3000 {
		b := make([]byte, 8+rng.IntN(8))
		for i := range b {
			b[i] = "0123456789abcdefghjkmnpqrstvwxyz"[rng.IntN(32)]
		}
		ids = append(ids, string(b))
		begin[string(b[:4])]++
		batch = append(batch, memory.Capture{Agent: "ann", Text: "job " + string(b)})
	}
	w.Capture("team", batch...)
	exact := w.One("team", "ann", "room q4z7 is booked")
	for range 5 {
		w.One("team", "ann", fmt.Sprintf("job q4z7%d", rng.IntN(1<<30)))
	}
	if res := w.search("team", "", memory.SearchRequest{Query: "q4z7"}); len(res.Results) != 1 || res.Results[0].ID != exact || len(res.Corrections) > 0 {
		t.Errorf("a known word: %v, %s", texts(res.Results), readAs(res))
	}
	found := 0
	for _, id := range ids[:300] {
		mixed := strings.ContainsAny(id[:4], "0123456789") && strings.Trim(id[:4], "0123456789") != ""
		if !mixed || begin[id[:4]] > 1 {
			continue
		}
		found++
		got := texts(w.search("team", "", memory.SearchRequest{Query: id[:4], All: true}).Results)
		if at := slices.Index(got, "job "+id); at < 0 || at > 1 { // 9kex is also kex, which begins another
			t.Errorf("%s finds %.40q, and not %s", id[:4], got, id)
		}
	}
	if found < 100 {
		t.Errorf("%d ids were asked for", found)
	}
}

// TestShortBeginningsOfSeveralPartitions: how many ids begin so is counted in what the reader sees, all
// of it and nothing else.
func TestShortBeginningsOfSeveralPartitions(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	for i := range 3 {
		w.One("team", "ann", fmt.Sprintf("job q4z7aaa%d", i))
		w.Capture("team", memory.Capture{Agent: "eve", Text: fmt.Sprintf("job q4z7bbb%d", i), Scope: memory.ScopeAgent})
	}
	for as, want := range map[string]string{"eve": "", "ann": "q4z7>q4z7aaa0(beginning 1) q4z7>q4z7aaa1(beginning 1) q4z7>q4z7aaa2(beginning 1) "} {
		if got := readAs(w.search("team", as, memory.SearchRequest{Query: "q4z7"})); got != want {
			t.Errorf("%s reads it as %s, want %s", as, got, want)
		}
	}
}

// TestOnlyWordsOfLivingMemoriesAreSuggested: a word goes with the last memory that has
// it, whether that was revised, forgotten or erased.
func TestOnlyWordsOfLivingMemoriesAreSuggested(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	for range 70 { // more than a tail
		w.One("team", "ann", "river")
	}
	for name, end := range map[string]func(id string){
		"revised": func(id string) {
			w.Revise("team", id, 1, memory.Capture{Agent: "ann", Text: "river"})
		},
		"forgotten": func(id string) { w.Forget("team", id, "ann", events.ScopeTeam) },
		"erased": func(string) {
			key, err := w.Keys.DataKey(w.Space["team"], "eve-erased")
			w.OK(err)
			w.Apply(&querytest.Item{Header: events.Header{Type: events.TypeKeyDestroyed, Namespace: w.Space["team"]}, Payload: events.EncodeKeys([][16]byte{key.ID()})})
		},
	} {
		for _, more := range []int{0, 70} {
			if more > 0 && name == "erased" {
				continue // its key is gone
			}
			id := w.Capture("team", memory.Capture{Agent: "ann", Text: "a xylocarp grows", Subject: "eve-" + name})[0]
			for range more {
				w.One("team", "ann", "river")
			}
			for _, query := range []string{"xylocrap", "xyloc", "locarp", "xylo carp", "xylocarpgrows"} {
				if got := readAs(w.search("team", "", memory.SearchRequest{Query: query})); !strings.Contains(got, "xylocarp") {
					t.Errorf("%s: %q is read as %s", name, query, got)
				}
			}
			end(id)
			for _, query := range []string{"xylocrap", "xyloc", "locarp", "xylo carp", "xylocarpgrows"} {
				if got := readAs(w.search("team", "", memory.SearchRequest{Query: query})); got != "" {
					t.Errorf("%s: %q is read as %s", name, query, got)
				}
			}
		}
	}
}

// TestCorrectionsDependOnTheRows: a node that has just read its vocabulary, and one that
// followed each capture, answer alike.
func TestCorrectionsDependOnTheRows(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	w := newWorld(t)
	w.Namespace("team", nil)
	var words []string
	word := func() string {
		b := make([]byte, 3+rng.IntN(9))
		for i := range b {
			b[i] = "abcde"[rng.IntN(5)]
		}
		return string(b)
	}
	type answer struct {
		Corrections []memory.Correction
		IDs         []string
		Scores      []float64
	}
	ask := func(query string) (a answer) {
		res := w.search("team", "", memory.SearchRequest{Query: query})
		for _, h := range res.Results {
			a.IDs, a.Scores = append(a.IDs, h.ID), append(a.Scores, h.Score)
		}
		a.Corrections = res.Corrections
		return a
	}
	for range 6 {
		for range 40 {
			words = append(words, word())
			w.One("team", "ann", words[len(words)-1]+" "+words[rng.IntN(len(words))])
		}
		queries, want := []string{}, []answer{}
		for range 40 {
			q := word()
			if known := words[rng.IntN(len(words))]; rng.IntN(3) > 0 {
				q = known[:1] + known[2:]
			}
			queries = append(queries, q+" "+word())
			want = append(want, ask(queries[len(queries)-1]))
		}
		w.restart()
		for i, q := range queries {
			if got := ask(q); !reflect.DeepEqual(got, want[i]) {
				t.Fatalf("seed %d: %q after a restart: %+v, before %+v", seed, q, got, want[i])
			}
		}
	}
}

// TestCorrectionsAreBounded asks what nobody should.
func TestCorrectionsAreBounded(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	rng := rand.New(rand.NewPCG(5, 5))
	var misspelt []string
	for range 400 {
		b := make([]byte, 10)
		for i := range b {
			b[i] = byte('a' + rng.IntN(26))
		}
		w.One("team", "ann", string(b)+" "+string(b)+"ing")
		misspelt = append(misspelt, string(b[:4])+"q"+string(b[4:]))
	}
	res := w.search("team", "", memory.SearchRequest{Query: strings.Join(misspelt[:300], " ")})
	words, total := map[string]bool{}, 0
	for _, c := range res.Corrections {
		words[c.Word] = true
		total++
	}
	if len(words) != maxCorrected || total > maxCorrected*maxTold {
		t.Errorf("%d words have %d corrections", len(words), total)
	}
	trace := strings.Repeat("goroutine 17 [running]:\nmain.(*serverr).handel(0xc000123456)\n\t/src/maim.go:42 +0x1b\n", 200)
	for _, query := range []string{"-", "*", "\"", "\"\"", "\u200f", "q", strings.Repeat("x", memory.MaxQueryBytes), trace[:memory.MaxQueryBytes], strings.Repeat("аб用", 1000), "xq\u200fyz",
		"8J+YgCBiYXNlNjQgaXMgbm90IGEgd29yZA==", strings.Repeat("ab cd ", 2000)} {
		for _, budget := range []*int{nil, ptr(500)} {
			r := w.reader("team", "")
			res, err := r.Search(context.Background(), memory.SearchRequest{Query: query, Fit: memory.Fit{Budget: budget}})
			if err != nil || len(res.Corrections) > maxCorrected*maxTold {
				t.Errorf("%.20q: %d corrections, %v", query, len(res.Corrections), err)
			}
		}
	}
}

// TestAliasesOfANamespace: a namespace has names of its own beside those of the trade.
func TestAliasesOfANamespace(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", map[string]string{settings.Aliases: "zephyr = billing portal; hal = heuristic scheduler = jupiter"})
	w.Namespace("other", nil)
	for _, ns := range []string{"team", "other"} {
		w.One(ns, "ann", "the billing portal is slow")
		w.One(ns, "ann", "jupiter opens the doors")
		w.One(ns, "ann", "hal went home")
	}
	for query, want := range map[string]string{"zephyr": "zephyr>billing portal(alias 1) ", "hal": "hal>jupiter(alias 1) ", "heuristic scheduler": "heuristic>jupiter(alias 1) heuristic>hal(alias 1) scheduler>jupiter(alias 1) scheduler>hal(alias 1) "} {
		if got := readAs(w.search("team", "", memory.SearchRequest{Query: query})); got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
		if got := readAs(w.search("other", "", memory.SearchRequest{Query: query})); strings.Contains(got, "alias") {
			t.Errorf("%q in another namespace: %s", query, got)
		}
	}
	res := w.search("team", "", memory.SearchRequest{Query: "hal", Mode: memory.ModeText, Explain: true})
	if len(res.Results) != 2 || res.Results[0].Text != "hal went home" {
		t.Fatalf("%q", texts(res.Results))
	}
	if terms := res.Results[1].Explain.Terms; len(terms) != 1 || terms[0].ReadAs != "jupit" || terms[0].Kind != "alias" {
		t.Errorf("explained by %+v", terms)
	}
	w.Change("team", map[string]string{settings.PartSetting(memory.PartVocabulary): settings.Off})
	if got := readAs(w.search("team", "", memory.SearchRequest{Query: "zephyr"})); got != "" {
		t.Errorf("switched off: %s", got)
	}
}

// TestNamesThatMemoriesExplain: a name that a living memory of the reader explains finds what
// it stands for. Of a known word a name of several words is not looked for.
func TestNamesThatMemoriesExplain(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	w.Namespace("other", nil)
	var defines []string
	for _, s := range []string{"the quarterly harbour ledger (QHL) is kept by Ben", "we move to Zephyrine (ZPH) in May"} {
		defines = append(defines, w.One("team", "ann", s))
	}
	w.Capture("team", memory.Capture{Agent: "ben", Text: "the Frobnicator (FBN) is his", Scope: memory.ScopeAgent})
	for _, ns := range []string{"team", "other"} {
		for _, s := range []string{"QHL was closed late", "a quarterly harbour ledger has four columns", "ZPH is slow", "zephyrine is fast", "FBN is full", "a frobnicator is empty"} {
			w.One(ns, "ann", s)
		}
	}
	find := func(ns, query, as string) (out []string, read string) {
		res := w.search(ns, as, memory.SearchRequest{Query: query, Mode: memory.ModeText, All: true})
		return texts(res.Results), readAs(res)
	}
	wants := map[string]string{"who has the quarterly harbour ledger": "QHL was closed late", "quarterly harbour ledgers": "QHL was closed late", "zph": "zephyrine is fast", "is zephyrine up": "ZPH is slow"}
	for query, want := range wants {
		if got, read := find("team", query, "cleo"); !slices.Contains(got, want) || !strings.Contains(read, "alias") {
			t.Errorf("%q finds %q, read as %s", query, got, read)
		}
		if got, read := find("other", query, "cleo"); slices.Contains(got, want) || strings.Contains(read, "alias") {
			t.Errorf("in another namespace %q finds %q, read as %s", query, got, read)
		}
	}
	if got, read := find("team", "FBN", "cleo"); strings.Contains(read, "alias") {
		t.Errorf("what Ben keeps for himself explains: %q, read as %s", got, read)
	}
	if got, read := find("team", "FBN", "ben"); !slices.Contains(got, "a frobnicator is empty") {
		t.Errorf("Ben finds %q, read as %s", got, read)
	}
	for _, id := range defines {
		w.Forget("team", id, "ann", events.ScopeTeam)
	}
	for query, want := range wants {
		if got, read := find("team", query, "cleo"); slices.Contains(got, want) || strings.Contains(read, "alias") {
			t.Errorf("what was forgotten explains: %q finds %q, read as %s", query, got, read)
		}
	}
}

// TestExactHitsAreNotDrowned: a memory with a word as it is written comes before those with
// what it, or words beside it, may have been meant for.
func TestExactHitsAreNotDrowned(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	rng := rand.New(rand.NewPCG(7, 7))
	var names, wrong []string
	var batch []memory.Capture
	for range 600 {
		b := make([]byte, 8+rng.IntN(8))
		for i := range b {
			b[i] = "bcdfghjklmnpqrtvwxz"[rng.IntN(19)]
		}
		names = append(names, string(b))
		wrong = append(wrong, string(b[:3])+"u"+string(b[3:]))
		batch = append(batch, memory.Capture{Agent: "ann", Text: string(b)})
	}
	w.Capture("team", batch...)
	for range 40 {
		w.One("team", "ann", "grafena") // an edit from a rarer one
	}
	exact := w.One("team", "ann", "grafana")
	for _, mode := range []memory.Mode{memory.ModeText, memory.ModeHybrid} {
		if res := w.search("team", "", memory.SearchRequest{Query: "grafana", Mode: mode}); len(res.Results) == 0 || res.Results[0].ID != exact {
			t.Errorf("%s: %v", mode, texts(res.Results))
		}
		for i := range 6 {
			query := names[i] + " " + strings.Join(wrong[100:399], " ")
			if i%2 > 0 {
				query = strings.Join(wrong[100:250], " ") + " " + names[i] + " " + strings.Join(wrong[250:399], " ") // 256 words count
			}
			res := w.search("team", "", memory.SearchRequest{Query: query[:min(len(query), memory.MaxQueryBytes)], Mode: mode, All: true})
			if len(res.Corrections) == 0 || len(res.Results) == 0 || res.Results[0].Text != names[i] {
				t.Errorf("%s %s beside 299 misspelt ones: %d corrections, %.3q", mode, names[i], len(res.Corrections), texts(res.Results))
			}
		}
	}
}

// BenchmarkCorrect prints what corrections add to a search: a search of known words, of one
// misspelt word, of eight and of 300, each as it is and with corrections off. Terms of the
// vocabulary: MNEME_BENCH_TERMS, or 100,000.
func BenchmarkCorrect(b *testing.B) {
	terms := 100_000
	if n, err := strconv.Atoi(os.Getenv("MNEME_BENCH_TERMS")); err == nil {
		terms = n
	}
	w := newWorld(b)
	w.Namespace("team", nil)
	rng := rand.New(rand.NewPCG(5, 5))
	var batch []memory.Capture
	var wrong []string
	for range terms / 50 {
		var t strings.Builder
		for range 50 {
			word := make([]byte, 8+rng.IntN(8))
			for i := range word {
				word[i] = byte('a' + rng.IntN(26))
			}
			if len(wrong) < 300 {
				wrong = append(wrong, string(word[:3])+string(word[4:]))
			}
			t.Write(append(word, ' '))
		}
		if batch = append(batch, memory.Capture{Agent: "ann", Text: t.String() + "kubernetes"}); len(batch) == 500 {
			w.Capture("team", batch...)
			batch = batch[:0]
		}
	}
	for len(w.search("team", "", memory.SearchRequest{Query: "kubrnetes"}).Corrections) == 0 {
		runtime.Gosched() // the vocabulary is being read
	}
	for name, query := range map[string]string{"known": "kubernetes", "one": "kubrnetes", "ending": "qxzvlmbizationally", "eight": strings.Join(wrong[:8], " "), "300": strings.Join(wrong, " "), "begins": "kub*"} {
		for _, on := range []bool{true, false} {
			b.Run(fmt.Sprintf("%s/%v", name, on), func(b *testing.B) {
				for b.Loop() {
					w.search("team", "", memory.SearchRequest{Query: query, Parts: map[memory.Part]bool{memory.PartVocabulary: on}})
				}
			})
		}
	}
}

// What is near to a word is known in each of its forms, both ways, and not from group to group; another
// word of the same stem is not that word.
func TestNearWords(t *testing.T) {
	near := func(word string) (out []string) {
		w := &queried{Word: text.Word{Token: text.Token{Term: termOf(word)}, Folded: text.Fold(word)}, whole: true}
		for _, n := range w.related() {
			out = append(out, n.word)
		}
		return out
	}
	for word, want := range map[string]string{"limit": "quota", "limits": "quota", "quotas": "limit", "outages": "downtime", "reverted": "rollback", "reverting": "rollback", "缓存": "cache"} {
		if got := near(word); !slices.Contains(got, want) {
			t.Errorf("%s is near to %q, not to %s", word, got, want)
		}
	}
	for word, not := range map[string]string{"limit": "allowed", "schedule": "kubernetes", "scheduler": "roster", "limitation": "quota"} {
		if got := near(word); slices.Contains(got, not) || slices.Contains(got, word) {
			t.Errorf("%s is near to %q", word, got)
		}
	}
	if got := near("copy"); len(got) == 0 { // pairs that are in two groups were counted twice
		t.Error("copy is near to nothing")
	}
	for term, others := range nearWords() {
		for i, o := range others {
			if slices.Contains(others[:i], o) {
				t.Errorf("%s is near to %s twice", term, o.word)
			}
		}
		if n := termsOf(others); n > maxNear {
			t.Errorf("%s is near to %d terms", term, n)
		}
	}
}

// A word that no memory has is also looked for by what people say for it; one that many have is
// not. Parts of names are looked for as they stand.
func TestWordsThatAreNear(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	for i := range 12 {
		w.One("team", "ann", fmt.Sprintf("nightly job %d ended", i))
	}
	w.One("team", "carl", "machines of the old hall")
	roster := w.One("team", "ann", "the roster of June is full")
	w.One("team", "ann", "the quota of the store is 40 GB")
	w.One("team", "bob", "another quota for builds")
	w.One("team", "bob", "a third quota for agents")
	limit := w.One("team", "bob", "limit of the gateway")
	w.One("team", "bob", "tuning of the accessibility tree, and the colo")
	w.One("team", "bob", "runbook of the gateway")
	w.One("team", "bob", "runbook of the harbour")
	w.One("team", "bob", "a playbook, and writes")
	for range rareDocs + 1 {
		w.One("team", "bob", "a datacenter of ours")
	}
	for query, want := range map[string]string{
		"rota":        "rota>roster(related 1) ",
		"limit":       "limit>quota(related 3) ", // one memory has it
		"quota":       "",                        // three have
		"rota_x":      "",
		"server":      "server>machines(related 1) ", // as the memory writes it, and not the stem machin
		"rota roster": "",
		"ro*":         "ro*>roster(begins 1) ",
		"rota*":       "", // a beginning is no word

		"a11y":         "a11y>accessibility(alias 1) ", // near, too
		"colo":         "colo>datacenter(related 3) ",  // one memory has it
		"datacenter":   "",                             // three have it, and none as it is spelt elsewhere
		"datacentre":   "",
		"runbook":      "runbook>playbook(related 1) ",    // two memories have it
		"请写入":          "写入>writes(related 1) ",           // that are two words, or three characters
		"optimisation": "optimisation>tuning(related 1) ", // the list has optimization
	} {
		if got := readAs(w.search("team", "", memory.SearchRequest{Query: query, All: true})); got != want {
			t.Errorf("%q is read as %q, want %q", query, got, want)
		}
	}
	for query, want := range map[string]float64{"rota": 0.3, "limit": 0.2, "runbook": 0.2} { // as docs/search.md says
		if got := w.search("team", "", memory.SearchRequest{Query: query, All: true}).Corrections; len(got) != 1 || got[0].Weight != want {
			t.Errorf("%q is read as %+v, want the weight %v", query, got, want)
		}
	}
	// By that weight it counts in what is matched, and a name of the same thing by its root.
	for query, want := range map[string]float64{"rota": 0.3, "a11y": math.Sqrt(weightAlias)} {
		got := w.search("team", "", memory.SearchRequest{Query: query, Explain: true, All: true}).Results
		if len(got) != 1 || math.Abs(part(&got[0], "matched")-want) > 1e-9 {
			t.Errorf("%q finds %q, want one of which %v is matched", query, texts(got), want)
		}
	}
	res := w.search("team", "", memory.SearchRequest{Query: "limit", Explain: true, All: true})
	if len(res.Results) != 4 || res.Results[0].ID != limit {
		t.Errorf("who says the word comes first: %v", texts(res.Results))
	}
	for _, h := range res.Results {
		if err := checkExplain(&h); err != nil {
			t.Error(err)
		}
	}
	off := memory.SearchRequest{Query: "rota", All: true, Parts: map[memory.Part]bool{memory.PartVocabulary: false}}
	if res := w.search("team", "", off); len(res.Results) > 0 || len(res.Corrections) > 0 {
		t.Errorf("switched off: %v", texts(res.Results))
	}
	w.Forget("team", roster, "ann", events.ScopeTeam)
	if got := readAs(w.search("team", "", memory.SearchRequest{Query: "rota", All: true})); got != "" {
		t.Errorf("forgotten: %q", got)
	}
}

// A near word is told where a result has it: by itself it lifts no memory above the floor, and
// beside other words it adds to what they find.
func TestNearWordsAreToldWhereTheyAreFound(t *testing.T) {
	for _, mode := range []memory.Mode{memory.ModeText, memory.ModeHybrid} {
		w := newWorld(t)
		w.Namespace("team", withBuiltin())
		for i := range 40 {
			w.One("team", "ann", fmt.Sprintf("nightly job %d ended", i))
		}
		w.One("team", "ann", "the roster of June is full, says the harbour master")
		w.One("team", "ann", "the duty of the harbour master is paid")
		search := func(query string, all bool) memory.SearchResponse {
			return w.search("team", "", memory.SearchRequest{Query: query, Mode: mode, All: all})
		}
		if res := search("rota", false); !res.NothingFound || res.BestRefused == 0 || len(res.Corrections) > 0 {
			t.Errorf("%s: a near word by itself: %q, %s", mode, texts(res.Results), readAs(res))
		}
		if res := search("rota", true); readAs(res) == "" || !strings.Contains(readAs(res), "rota>roster(related 1)") {
			t.Errorf("%s: below the floor: %q, %s", mode, texts(res.Results), readAs(res))
		}
		res := search("rota of June, harbour master", false)
		if len(res.Results) == 0 || !strings.Contains(res.Results[0].Text, "roster") || !strings.Contains(readAs(res), "rota>roster(related 1)") {
			t.Errorf("%s: beside other words: %q, %s", mode, texts(res.Results), readAs(res))
		}
		if res = search("rota night", false); strings.Contains(readAs(res), "related") {
			t.Errorf("%s: beside what finds others: %q, %s", mode, texts(res.Results), readAs(res))
		}
	}
}

// TestWordsThatHaveNearOnesWereAllCorrected: of a query of words that have other names or near
// words each was looked for in every way, and not eight of them.
func TestWordsThatHaveNearOnesWereAllCorrected(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	var query []string
	for _, group := range known.Related() {
		if name := group[0].Word; len(name) >= leastTwoEdits && !embed.Ordinary(name) && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz") == "" && !slices.Contains(query, name) {
			query = append(query, name)
			w.One("team", "ann", "x"+name+" "+name[:3]+"xx"+name[3:])
		}
		if len(query) == 5*maxCorrected {
			break
		}
	}
	w.One("team", "ann", "the roster")
	res := w.search("team", "", memory.SearchRequest{Query: strings.Join(append(query, "rota"), " "), All: true, Limit: ptr(100)})
	corrected := map[string]bool{}
	for _, c := range res.Corrections {
		if c.Kind != string(kindAlias) && c.Kind != string(kindRelated) {
			corrected[c.Word] = true
		}
	}
	if len(corrected) != maxCorrected || !strings.Contains(readAs(res), "rota>roster(related 1)") {
		t.Errorf("%d words are corrected: %s", len(corrected), readAs(res))
	}
}
