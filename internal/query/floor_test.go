package query

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"mneme/internal/settings"
	"mneme/memory"
)

// TestALimitCutsAndChangesNothing: the first ten hung on the limit in a tenth of all
// questions, and a score on what else was found.
func TestALimitCutsAndChangesNothing(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := &generator{rand.New(rand.NewPCG(seed, 5)), time.Date(2023, 5, 1, 0, 0, 0, 0, time.UTC)}
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	g.populate(w, &twin{}, 400)
	for i := range 60 {
		req := memory.SearchRequest{Query: g.words(1 + g.IntN(5)), All: true, Limit: ptr(memory.MaxLimit),
			Mode: []memory.Mode{memory.ModeHybrid, memory.ModeText, memory.ModeVector}[g.IntN(3)]}
		whole := w.search("team", agentName(1), req).Results
		scores := map[string]float64{}
		for _, h := range whole {
			scores[h.ID] = h.Score
		}
		for _, limit := range []int{1, 10, 60} {
			req.Limit = ptr(limit)
			got := w.search("team", agentName(1), req).Results
			if len(got) != min(limit, len(whole)) {
				t.Fatalf("seed %d, search %d: %d of %d results", seed, i, len(got), len(whole))
			}
			for k := range got {
				if got[k].ID != whole[k].ID || got[k].Score != whole[k].Score {
					t.Fatalf("seed %d, search %d, limit %d: hit %d is %s with %v, of 200 it is %s with %v",
						seed, i, limit, k, got[k].ID, got[k].Score, whole[k].ID, whole[k].Score)
				}
			}
		}
		req.Limit, req.Filter = ptr(memory.MaxLimit), g.filter(agentName(1))
		for _, h := range w.search("team", agentName(1), req).Results {
			if score, ok := scores[h.ID]; ok && score != h.Score {
				t.Fatalf("seed %d, search %d, filter %+v: %s scores %v, without a filter %v", seed, i, req.Filter, h.ID, h.Score, score)
			}
		}
	}
}

// TestNothingIsAnAnswer: whatever was asked, something came back.
func TestNothingIsAnAnswer(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	w.chatter("team", 20)
	w.One("team", "ann", "The database password rotates monthly.")
	off := memory.SearchRequest{Query: "which weather station measures the wind over the northern glacier valley"}
	res := w.search("team", "", off)
	if len(res.Results) != 0 || !res.NothingFound || res.BestRefused <= 0 || res.BestRefused >= settings.DefaultMinScore {
		t.Fatalf("%d results, nothing found %v, best refused %v", len(res.Results), res.NothingFound, res.BestRefused)
	}
	for name, change := range map[string]func(*memory.SearchRequest){
		"all":        func(r *memory.SearchRequest) { r.All = true },
		"no floor":   func(r *memory.SearchRequest) { r.MinScore = ptr(0.0) },
		"just below": func(r *memory.SearchRequest) { r.MinScore = ptr(res.BestRefused) },
	} {
		req := off
		change(&req)
		got := w.search("team", "", req)
		if len(got.Results) == 0 || got.NothingFound || got.BestRefused != 0 || got.Results[0].Score != res.BestRefused {
			t.Errorf("%s: %d results, nothing found %v", name, len(got.Results), got.NothingFound)
		}
	}
	if got := w.search("team", "", memory.SearchRequest{Query: "when does the database password rotate"}); len(got.Results) != 1 || got.NothingFound {
		t.Errorf("%v", texts(got.Results))
	}
	w.Change("team", map[string]string{settings.MinScore: "0"})
	if got := w.search("team", "", off); len(got.Results) == 0 {
		t.Error("a namespace without a floor answers with nothing")
	}
	w.Change("team", map[string]string{settings.MinScore: "1"})
	if got := w.search("team", "", memory.SearchRequest{Query: "database password"}); len(got.Results) != 0 || got.BestRefused <= 0.5 {
		t.Errorf("%v, best refused %v", texts(got.Results), got.BestRefused)
	}
}

// TestTheFirstMemoriesAreFound: words of which one of five memories has each counted as common
// ones, and what held half of a question lay below the floor.
func TestTheFirstMemoriesAreFound(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	w.One("team", "ann", "deploys happen on Tuesdays")
	for query, found := range map[string]bool{
		"Tuesday": true, "when do we deploy": true, "deployment day": true, "what is the wifi password": false,
	} {
		if n := len(w.search("team", "", memory.SearchRequest{Query: query}).Results); (n == 1) != found {
			t.Errorf("of one memory %q finds %d", query, n)
		}
	}
	for _, text := range []string{"the wifi password is hunter2", "Ana prefers dark mode in her editor", "billing-api uses Postgres 16 with pgbouncer",
		"We decided to keep retries at 5, because the bank is slow"} {
		w.One("team", "ann", text)
	}
	for query, want := range map[string]string{
		"deployment day": "deploys", "Tuesday": "deploys", "what editor theme does Ana like": "dark mode",
		"database of billing": "billing", "how many retries": "retries", "postgres version": "Postgres", "pgbouncr": "pgbouncer",
		"cake recipe": "", "who is the president of France": "",
	} {
		got := texts(w.search("team", "", memory.SearchRequest{Query: query}).Results)
		if want == "" && len(got) > 0 || want != "" && (len(got) == 0 || !strings.Contains(got[0], want)) {
			t.Errorf("of five memories %q finds %q", query, got)
		}
	}
}

// TestASubjectThatNobodyWroteAbout: what held the rest of such a question was found.
func TestASubjectThatNobodyWroteAbout(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	w.chatter("team", 200)
	w.One("team", "ann", "moorgate listens on port 8093, its metrics are on port 9093")
	for query, want := range map[string]int{
		"which port does moorgate listen on": 1, "which port has the selenium grid": 0, "which port has moorgate": 1,
	} {
		res := w.search("team", "", memory.SearchRequest{Query: query})
		if len(res.Results) != want || res.NothingFound != (want == 0) {
			t.Errorf("%q finds %q", query, shown(res.Results))
		}
	}
}

// TestExactHitsLieAboveTheFloor, whatever else the query says.
func TestExactHitsLieAboveTheFloor(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	w.Namespace("both", withBuiltin())
	for _, ns := range []string{"team", "both"} {
		w.chatter(ns, 400)
		w.One(ns, "ann", "see internal/store/memtable.go for how it ends; ticket INC-2081 has the rest "+strings.Repeat("filler words beside it ", 200))
	}
	rest := " and why the glacier valley of northern stations measures wind or snow beside distant villages nobody has heard about"
	for _, exact := range []string{"internal/store/memtable.go", "INC-2081", `"has the rest"`} {
		for _, ns := range []string{"team", "both"} {
			for _, mode := range []memory.Mode{memory.ModeHybrid, memory.ModeText} {
				if got := w.search(ns, "", memory.SearchRequest{Query: exact + rest, Mode: mode}).Results; len(got) == 0 || !strings.HasPrefix(got[0].Text, "see ") {
					t.Errorf("%s in %s, %s: %v", exact, ns, mode, texts(got))
				}
			}
		}
	}
}

// TestTheTimeOfAskingCostsNothing: agents append it to each question, and its numbers and
// its date stood for what was asked.
func TestTheTimeOfAskingCostsNothing(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	var all []memory.Capture
	for i := range 30 {
		at := time.Date(2024, 3, 20, 7, 42, 0, 0, time.UTC).AddDate(0, 0, i)
		all = append(all, memory.Capture{Agent: "user", Text: "喝了咖啡 a cup of coffee", OccurredAt: &at})
	}
	at := time.Date(2023, 1, 5, 9, 0, 0, 0, time.UTC)
	all = append(all, memory.Capture{Agent: "user", Text: "我的表弟住在杭州 my cousin lives in Hangzhou", OccurredAt: &at})
	w.Capture("team", all...)
	for _, asked := range []string{"我的表弟住在哪里？", "where does my cousin live?"} {
		plain := w.search("team", "", memory.SearchRequest{Query: asked, All: true})
		for _, stamp := range []string{" 2024年04月04日 周四 07:42", "（提问时间：2024年04月04日 周四 07:42）", " (asked at 2024-04-04 07:42)", " 2024-04-04T07:42:00Z", " Thursday, 4 April 2024 07:42"} {
			got := w.search("team", "", memory.SearchRequest{Query: asked + stamp, All: true})
			if fmt.Sprint(shown(got.Results)) != fmt.Sprint(shown(plain.Results)) {
				t.Errorf("%s%s:\n%s\nwithout it:\n%s", asked, stamp, strings.Join(shown(got.Results), "\n"), strings.Join(shown(plain.Results), "\n"))
			}
		}
	}
	// A day is asked for.
	if got := w.search("team", "", memory.SearchRequest{Query: "coffee on 25 March 2024"}).Results; len(got) == 0 || !got[0].OccurredAt.Equal(time.Date(2024, 3, 25, 7, 42, 0, 0, time.UTC)) {
		t.Errorf("%v", texts(got))
	}
}

// TestMoreEvidenceIsNeverLess: with more of one feature, a score is not less.
func TestMoreEvidenceIsNeverLess(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	w.chatter("team", 40)
	w.talk("team", "talk", [2]string{"ann", "see main.go of 3 May 2023"}, [2]string{"bob", "the kiln is blue"})
	seen := map[string]bool{}
	for _, query := range []string{"blue kiln", "main.go", "3 May 2023 kiln", "what did I say to Bob about the kiln on 8 May 2023", "what is it", `"kiln is blue"`} {
		for _, mode := range []memory.Mode{memory.ModeHybrid, memory.ModeText, memory.ModeVector} {
			for _, h := range w.search("team", "ann", memory.SearchRequest{Query: query, Mode: mode, All: true, Explain: true, Limit: ptr(200)}).Results {
				if err := checkExplain(&h); err != nil { // which holds weights and values to be 0 or more
					t.Errorf("%s: %v", query, err)
				}
				for _, p := range h.Explain.Parts {
					seen[p.Source] = seen[p.Source] || p.Value > 0
					if more := logistic(h.Explain.Sum + p.Weight*0.01); p.Source != "base" && more < h.Score || math.IsNaN(more) {
						t.Errorf("%s: more of %s makes %v of %v", query, p.Source, more, h.Score)
					}
				}
			}
		}
	}
	for _, source := range []string{"base", "known", "words_alone", "vectors_alone", "exact", "vector", "vector_neighbours", "text", "matched", "neighbours", "told", "dates", "speaker"} {
		if !seen[source] {
			t.Errorf("%s was never met", source)
		}
	}
}
