package query

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"mneme/memory"
)

// TestPhrases: a phrase finds the texts that hold it word for word, and all of
// them up to the limit, however good others are.
func TestPhrases(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	var want []string
	for i := range 150 { // better by every other measure
		w.One("team", "ann", fmt.Sprintf("harbour crane crane harbour %d", i))
	}
	for i := range 12 {
		want = append(want, w.One("team", "bob", fmt.Sprintf("%s and then the Harbour  CRANE stood still %d", strings.Repeat("a long story about many other things ", 5), i)))
	}
	w.One("team", "bob", "the crane of the harbour")
	sea := w.One("team", "carl", "今天和邻居一起吃晚饭")
	be := w.One("team", "dora", "to be or not to be is the question")
	for _, mode := range []memory.Mode{memory.ModeHybrid, memory.ModeText} {
		for _, q := range []string{`"the harbour crane stood"`, `crane “the Harbour crane” harbour`} {
			res := w.search("team", "", memory.SearchRequest{Query: q, Mode: mode, Limit: ptr(200), Explain: true}).Results
			var got []string
			for _, h := range res {
				got = append(got, h.ID)
				if err := checkExplain(&h); err != nil {
					t.Error(err)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s %s: %d results, want %d", mode, q, len(got), len(want))
			}
			if res := w.search("team", "", memory.SearchRequest{Query: q, Mode: mode, Limit: ptr(5)}).Results; len(res) != 5 {
				t.Errorf("%s %s: %d of 5 results", mode, q, len(res))
			}
		}
		for q, id := range map[string]string{`「邻居一起」`: sea, `question "to be or not to be"`: be} {
			if res := w.search("team", "", memory.SearchRequest{Query: q, Mode: mode}).Results; len(res) != 1 || res[0].ID != id {
				t.Errorf("%s %s: %v", mode, q, texts(res))
			}
		}
		for _, q := range []string{`"crane stood harbour"`, `"no such words here"`, `「一起邻居」`} {
			if res := w.search("team", "", memory.SearchRequest{Query: q, Mode: mode}).Results; len(res) != 0 {
				t.Errorf("%s %s: %v", mode, q, texts(res))
			}
		}
		if res := w.search("team", "", memory.SearchRequest{Query: `where is "the crane stood harbour"?`, Mode: mode}).Results; len(res) != 0 {
			t.Errorf("%s: quotes in a question: %v", mode, texts(res))
		}
		for _, q := range []string{`"crane`, `"harbour crane`} {
			if res := w.search("team", "", memory.SearchRequest{Query: q, Mode: mode}).Results; len(res) != memory.DefaultLimit {
				t.Errorf("%s: %s quotes: %v", mode, q, texts(res))
			}
		}
	}
}

// TestPhrasesThatNothingHasAreWords: a pasted message found nothing, for the name that it quotes. The
// answer is that of the words, and phrases that memories have stay.
func TestPhrasesThatNothingHasAreWords(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	for _, s := range []string{
		`jobs "ferry-9" is refused: breaks TidePolicy "strict:latest": the keel is not dry`,
		`what TidePolicy "strict:latest" asks for`,
		"jobs of the ferry are refused on Sundays",
		`level=warn msg="no greeting from client 10.1.2.3:4444"`,
		"the blue crane and the red house",
		"the red crane and the blue house",
	} {
		w.One("team", "ann", s)
	}
	w.Capture("team", memory.Capture{Agent: "eve", Text: `jobs "barge-7" stand still`, Scope: memory.ScopeAgent})
	for i := range 30 {
		w.One("team", "bob", fmt.Sprintf("some words about other things %d", i))
	}
	for _, mode := range []memory.Mode{memory.ModeHybrid, memory.ModeText} {
		for query, want := range map[string]struct{ kept, read, first string }{
			`jobs "barge-7" is refused: breaks TidePolicy "strict:latest"`: {`jobs barge-7 is refused: breaks TidePolicy "strict:latest"`,
				`"barge-7">barge-7(phrase 0) `, `jobs "ferry-9"`},
			`jobs "barge-7" is refused`: {`jobs  barge-7  is refused`, `"barge-7">barge-7(phrase 0) `, ""},
			`level=warn msg="no greeting from client 10.9.9.9:51022"`: {`level=warn msg= no greeting from client 10.9.9.9:51022 `,
				`"no greeting from client 10.9.9.9:51022">no greeting from client 10.9.9.9:51022(phrase 1) `, "level=warn"},
			`"refused still"  "blue crane"`: {`refused still "blue crane"`, `"refused still">refused still(phrase 0) `, "the blue crane"},
			`"blue crane" "blue house"`:     {`blue crane blue house`, `"blue crane" "blue house">blue crane blue house(phrase 0) `, ""},
			`"no such" "blue crane" "blue house"`: {`no such blue crane blue house`,
				`"no such">no such(phrase 1) "blue crane" "blue house">blue crane blue house(phrase 0) `, ""},
			// A phrase of stop words is looked for in what other words of the query find.
			`"is not" "blue crane" refused`:   {`is not blue crane refused`, `"is not" "blue crane">is not blue crane(phrase 0) `, ""},
			`"&&" crane -"red house"`:         {`crane -"red house"`, `"&&">&&(phrase 0) `, "the red crane"},
			`"blue crane" crane -"house"`:     {`"blue crane" crane -"house"`, "", ""},
			`"no such" "blue crane" -"house"`: {`no such "blue crane" -"house"`, `"no such">no such(phrase 1) `, ""},
			`"crane blue" crane 2024-04-04 `:  {`crane blue crane 2024-04-04`, `"crane blue">crane blue(phrase 2) `, ""},
			// One phrase alone means what it says, whoever asks for it and when.
			`where is "crane blue"?`:         {`where is "crane blue"?`, `"crane blue">where is crane blue ?(phrase 2) `, ""},
			`"crane blue" 2024-04-04 07:42`:  {`"crane blue"`, `"crane blue">crane blue(phrase 2) `, ""},
			`wo ist der "crane blue"`:        {`"crane blue"`, `"crane blue">wo ist der crane blue(phrase 2) `, ""},
			`"crane blue" -house`:            {`"crane blue"`, "", ""},
			`"blue crane" "red house" crane`: {`"blue crane" "red house" crane`, "", "the blue crane"},
		} {
			req := memory.SearchRequest{Query: query, Mode: mode, Explain: true, Parts: map[memory.Part]bool{memory.PartNewer: false}}
			res := w.search("team", "", req)
			phrases := slices.DeleteFunc(slices.Clone(res.Corrections), func(c memory.Correction) bool { return c.Kind != string(kindPhrase) })
			if got := readAs(memory.SearchResponse{Corrections: phrases}); got != want.read {
				t.Errorf("%s %s: %s, want %s", mode, query, got, want.read)
			}
			for _, c := range phrases { // the weight says whether its words were looked for
				if stays := strings.Contains(want.kept, c.Word); c.Weight != 1 && !stays || c.Weight != 0 && stays {
					t.Errorf("%s %s: %s has the weight %v", mode, query, c.Word, c.Weight)
				}
			}
			if want.first != "" && (len(res.Results) == 0 || !strings.HasPrefix(res.Results[0].Text, want.first)) {
				t.Errorf("%s %s: found %q", mode, query, texts(res.Results))
			}
			req.Query = want.kept
			plain := w.search("team", "", req)
			if got, want := shown(res.Results), shown(plain.Results); !slices.Equal(got, want) {
				t.Errorf("%s %s:\n%s\nas words:\n%s", mode, query, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			for _, h := range res.Results {
				if err := checkExplain(&h); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// TestPhrasesAreGivenUpWithinTheBudget: where phrases stand nowhere, and their words everywhere, a quarter
// more is read than of one that does, and the phrase that stands somewhere is found.
func TestPhrasesAreGivenUpWithinTheBudget(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	long := "a kiln that is blue " + strings.Repeat("filler ", 14_000) + "and a crane that is red"
	for range 100 {
		w.One("team", "ann", long)
	}
	held := w.One("team", "ann", "crane red crane red kiln, blue filler")
	var s *search
	resp, err := find(t.Context(), []*Reader{w.reader("team", "")}, false, func(under *search) ([]memory.Hit, error) {
		s = under
		return s.run(t.Context(), &memory.SearchRequest{Query: `"blue kiln" "red filler" "crane red" "filler kiln" blue`, Mode: memory.ModeText})
	})
	if err != nil || len(resp.Results) != 1 || resp.Results[0].ID != held || len(resp.Corrections) != 3 {
		t.Fatalf("%d results: %v, %+v", len(resp.Results), err, resp.Corrections)
	}
	const shares = 5 // four phrases, and the search after them
	for _, c := range resp.Corrections {
		if most := givenUpWork/shares/len(long) + 1; c.Docs > most+1 { // and the short one
			t.Errorf("%s was looked for in %d texts, at most %d are of its share", c.Word, c.Docs, most)
		}
	}
	if text := int(s.left) - shownWork; text < -6*len(long) || text > givenUpWork/2 {
		t.Errorf("%d of work is left for reading", text)
	}
	// A phrase alone is looked for in what may be read, and told of so many.
	alone := w.search("team", "", memory.SearchRequest{Query: `"blue kiln"`, Mode: memory.ModeText}).Corrections
	if most := (maxWork-shownWork)/len(long) + 2; len(alone) != 1 || alone[0].Docs > most {
		t.Errorf("%+v, at most %d were read", alone, most)
	}
}

// TestPhraseTwin compares the phrases of random texts with a look at each text.
func TestPhraseTwin(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := &generator{rand.New(rand.NewPCG(seed, 5)), time.Date(2023, 5, 1, 0, 0, 0, 0, time.UTC)}
	w := newWorld(t)
	w.Namespace("team", nil)
	tw := &twin{}
	g.populate(w, tw, 200)
	found := 0
	for range 100 {
		q := g.words(2)
		query, without := `"`+q+`"`, q+` -"`+q+`"`
		ask := func(query string) (ids []string) {
			for _, h := range w.search("team", "", memory.SearchRequest{Query: query, Limit: ptr(200), Parts: map[memory.Part]bool{memory.PartNeighbours: false}}).Results {
				ids = append(ids, h.ID)
			}
			slices.Sort(ids)
			return ids
		}
		var want []string
		for _, r := range tw.visible("") {
			if holds(strings.ToLower(r.c.Text), strings.ToLower(q)) {
				want = append(want, r.id)
			}
		}
		slices.Sort(want)
		got := ask(query)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: %q: %d results, want %d", seed, query, len(got), len(want))
		}
		rest := slices.DeleteFunc(ask(q), func(id string) bool { return slices.Contains(want, id) })
		if got := ask(without); !slices.Equal(got, rest) {
			t.Fatalf("seed %d: %q: %d results, want %d", seed, without, len(got), len(rest))
		}
		found += len(got)
	}
	if found == 0 {
		t.Errorf("seed %d: no phrase was found", seed)
	}
}

// holds looks at each place of a text of small letters.
func holds(s, phrase string) bool {
	s = strings.Join(strings.Fields(s), " ")
	word := func(i int) bool {
		return i >= 0 && i < len(s) && (unicode.IsLetter(rune(s[i])) || unicode.IsNumber(rune(s[i])) || s[i] >= 0x80)
	}
	for i := 0; i+len(phrase) <= len(s); i++ {
		if s[i:i+len(phrase)] == phrase && !word(i-1) && !word(i+len(phrase)) {
			return true
		}
	}
	return false
}

// What is left out is in no result, whatever source would have brought it; the rest of the query
// finds what it finds.
func TestLeftOut(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	for i := range 250 { // more than a source gives
		w.One("team", "ann", fmt.Sprintf("mongo on atlas, mongo %d", i))
	}
	plain := w.One("team", "bob", "a long story of other things, and then mongo")
	forms := w.One("team", "bob", "another long story about things, with mongo and atlases")
	flag := w.One("team", "carl", "git commit --no-verify leaves the hooks out")
	for _, mode := range []memory.Mode{memory.ModeHybrid, memory.ModeText, memory.ModeVector} {
		for q, want := range map[string][]string{
			"mongo -atlas":               {plain, forms},
			"Mongo? -ATLAS -atlases":     {plain},
			`mongo -"on atlas" -stories`: {plain, forms},
		} {
			var got []string
			for _, h := range w.search("team", "", memory.SearchRequest{Query: q, Mode: mode, Limit: ptr(200)}).Results {
				if h.ID != flag { // vectors find what is near at all
					got = append(got, h.ID)
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if mode != memory.ModeVector && !slices.Equal(got, want) {
				t.Errorf("%s %s: %v, want %v", mode, q, got, want)
			}
			if slices.ContainsFunc(got, func(id string) bool { return !slices.Contains(want, id) }) {
				t.Errorf("%s %s: %v", mode, q, got)
			}
		}
	}
	if res := w.search("team", "", memory.SearchRequest{Query: "commit --no-verify"}).Results; len(res) == 0 || res[0].ID != flag {
		t.Errorf("a flag: %v", texts(res))
	}
	if res := w.search("team", "", memory.SearchRequest{Query: "-atlas", Mode: memory.ModeText}).Results; len(res) == 0 || !strings.Contains(res[0].Text, "atlas") {
		t.Errorf("what is left out alone: %v", texts(res))
	}
}

// TestWhatSomebodySaidHasNoOperators: a dash, quotes and a star in a prompt are what they are.
func TestWhatSomebodySaidHasNoOperators(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	race := w.One("team", "ann", "Remember that go test -race fails without gcc, the C compiler.")
	w.One("team", "ann", "The walrus feeds at noon.")
	for _, q := range []string{"go test -race fails without gcc, what now?", `"go test" "fails always" without gcc`, "does go test fail -gcc without -compiler?", "go test fail* -rac* without gcc"} {
		for _, mode := range []memory.Mode{memory.ModeHybrid, memory.ModeText} {
			res := w.search("team", "", memory.SearchRequest{Query: q, Syntax: memory.SyntaxPlain, Mode: mode})
			if len(res.Results) == 0 || res.Results[0].ID != race {
				t.Errorf("%s %s finds %v", mode, q, texts(res.Results))
			}
			for _, c := range res.Corrections {
				if c.Kind == "phrase" || c.Kind == "begins" {
					t.Errorf("%s: %+v", q, c)
				}
			}
		}
	}
	if res := w.search("team", "", memory.SearchRequest{Query: "go test -race fails without gcc, what now?"}).Results; len(res) > 0 && res[0].ID == race {
		t.Error("a query that somebody wrote has no operators either")
	}
}

// TestPhraseThatNothingHasWasNotTold: the answer was empty, and said nothing.
func TestPhraseThatNothingHasWasNotTold(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	w.One("team", "ann", "the crane is blue")
	w.One("team", "ann", "a blue, blue crane")
	w.One("team", "ann", "a blue house")
	w.Capture("team", memory.Capture{Agent: "eve", Text: "green crane", Scope: memory.ScopeAgent})
	for _, mode := range []memory.Mode{memory.ModeHybrid, memory.ModeText} {
		for query, want := range map[string]string{
			`"crane blue"`:             `"crane blue">crane blue(phrase 2) `,
			`where is "Crane  blue"?`:  `"crane blue">where is Crane blue ?(phrase 2) `,
			`"blue house" "the crane"`: `"blue house" "the crane">blue house the crane(phrase 0) `,
			`"green crane"`:            `"green crane">green crane(phrase 0) `,
			`"the is"`:                 "",
			`"is to" crane`:            `"is to">is to(phrase 0) `,
			`"blue crane"`:             "",
			`"crane blue" -house`:      "",
			`"blue house"`:             "",
		} {
			if got := readAs(w.search("team", "", memory.SearchRequest{Query: query, Mode: mode})); got != want {
				t.Errorf("%s %s: %s, want %s", mode, query, got, want)
			}
		}
	}
}

// The examples of docs/search.md find what it says.
func TestExamplesOfTheDocumentation(t *testing.T) {
	memories, rows := examples(t, "Of these memories")
	w := newWorld(t)
	w.Namespace("team", nil)
	numbers := map[string]string{}
	for i, text := range memories {
		numbers[w.One("team", "ann", text)] = fmt.Sprint(i + 1)
	}
	for _, row := range rows {
		var found []string
		for _, h := range w.search("team", "", memory.SearchRequest{Query: row[0], Mode: memory.ModeText, Limit: ptr(200)}).Results {
			found = append(found, numbers[h.ID])
		}
		slices.Sort(found)
		got := strings.Join(found, ", ")
		if got == "" {
			got = "nothing"
		}
		if got != row[1] {
			t.Errorf("%s finds %s, and not %s", row[0], got, row[1])
		}
	}
	if len(numbers) != 7 || len(rows) != 24 {
		t.Errorf("%d memories and %d examples", len(numbers), len(rows))
	}
}

// TestLongTextsLeftNothingForWhatIsFound: sixteen phrases that nothing holds read as many long texts
// to their ends, and nothing could be read for what the rest of the query finds.
func TestLongTextsLeftNothingForWhatIsFound(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	long := strings.Repeat("blue kiln filler red ", 12_000)
	for range 8 {
		w.One("team", "ann", long)
	}
	held := w.One("team", "ann", "crane red crane red kiln, blue filler")
	ferry := w.One("team", "ann", "ferry filler red blue kiln filler red")
	query := "ferry"
	for i := range 15 {
		query += ` "` + strings.Repeat("kiln ", i+1) + `blue filler"`
	}
	for more, want := range map[string]string{` "crane red"`: held, " -crane": ferry} {
		res := w.search("team", "", memory.SearchRequest{Query: query + more, Mode: memory.ModeText})
		if len(res.Results) == 0 || res.Results[0].ID != want || len(res.Corrections) != 15 {
			t.Errorf("%s: %d results, %d corrections", more, len(res.Results), len(res.Corrections))
		}
	}
}

// TestAPhraseWasReadAsACorrection: what was looked for in place of a phrase is its own words, and not
// what another word of the query found.
func TestAPhraseWasReadAsACorrection(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	w.One("team", "ann", "six deployments waited")
	w.One("team", "ann", "the crane waited")
	want := `deploymen>deployments(beginning 1) "deploy crane">deploy crane(phrase 0) `
	if got := readAs(w.search("team", "", memory.SearchRequest{Query: `"deploy crane" deploymen`})); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
