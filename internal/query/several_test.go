package query

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"mneme/internal/query/views"
	"mneme/memory"
)

// among opens readers of namespaces of several worlds, which are shards to them.
func among(t *testing.T, as string, names []string, shards ...*world) []*Reader {
	t.Helper()
	var out []*Reader
	for _, w := range shards {
		all, err := w.svc.OpenEach(context.Background(), names, as, views.Freshness{})
		w.OK(err)
		t.Cleanup(func() { w.OK(all[0].Close()) })
		out = append(out, all...)
	}
	return out
}

// split is a corpus in one namespace, and the same in two namespaces on each of two
// shards: a conversation is in one of them.
func split(t *testing.T, set map[string]string) (one *world, shards []*world) {
	t.Helper()
	one = newWorld(t)
	shards = []*world{newWorld(t), newWorld(t)}
	one.Namespace("all", set)
	for _, w := range shards {
		w.Namespace("even", set)
		w.Namespace("odd", set)
	}
	subjects := []string{"the harbour crane", "a blue kiln", "deploy windows", "the tide table", "an unpaid invoice", "postgres upgrades"}
	for talk := range 16 { // fewer memories than vectors give candidates
		var all []memory.Capture
		for i := range 6 {
			c := memory.Capture{Agent: agentName(i % 3), Conversation: fmt.Sprintf("talk-%d", talk), Tags: []string{fmt.Sprintf("tag-%d", i%2)},
				Text: fmt.Sprintf("about %s: remark %d of talk %d says %s", subjects[(talk*7+i)%len(subjects)], i, talk, strings.Repeat("more ", (talk+i)%5))}
			if i == 5 {
				c.Scope = memory.ScopeAgent
			}
			all = append(all, c)
		}
		one.Capture("all", all...)
		shards[talk%2].Capture([]string{"even", "odd"}[talk/2%2], all...)
	}
	return one, shards
}

// shown is what a search found, by score and text: ids differ between two corpora.
func shown(hits []memory.Hit) []string {
	hits = slices.Clone(hits)
	slices.SortStableFunc(hits, func(a, b memory.Hit) int {
		return cmp.Or(cmp.Compare(math.Round(b.Score*1e9), math.Round(a.Score*1e9)), cmp.Compare(a.Text, b.Text))
	})
	var out []string
	for _, h := range hits {
		out = append(out, fmt.Sprintf("%.9f %.9f %.9f %s %v", h.Score, h.TextScore, h.VectorScore, h.Text, h.MatchedBy))
	}
	return out
}

// A corpus that is split over namespaces and shards answers as it does in one: the
// counters of all make the scores, and the best of all set the scale.
func TestSplitCorpusAnswersAsOne(t *testing.T) {
	one, shards := split(t, withBuiltin())
	for _, as := range []string{"", "agent-2"} {
		for name, req := range map[string]memory.SearchRequest{
			"hybrid":  {Query: "when did the harbour crane say deploy"},
			"text":    {Query: "the tide table remark 3", Mode: memory.ModeText},
			"vector":  {Query: "unpaid invoices", Mode: memory.ModeVector},
			"phrase":  {Query: `"blue kiln" remark`},
			"filter":  {Query: "postgres upgrades crane", Filter: &memory.Filter{Tags: []string{"tag-1"}}},
			"scope":   {Query: "postgres upgrades crane", Filter: &memory.Filter{Scope: memory.ScopeTeam}},
			"speaker": {Query: "what did agent-1 say about kilns"},
			"floor":   {Query: "harbour crane more", MinScore: ptr(0.02)},
			"explain": {Query: "harbour kiln", Explain: true},
		} {
			req.Limit = ptr(96) // all: what stands at a limit is cut by id
			want := one.search("all", as, req)
			got, err := Search(t.Context(), among(t, as, []string{"even", "odd"}, shards...), req)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if len(want.Results) == 0 || !slices.Equal(shown(got.Results), shown(want.Results)) {
				t.Errorf("%s as %q:\n%s\nin one namespace:\n%s", name, as, strings.Join(shown(got.Results), "\n"), strings.Join(shown(want.Results), "\n"))
			}
			if got.Mode != want.Mode || got.Namespace != "" || !slices.Equal(got.Namespaces, []string{"even", "even", "odd", "odd"}) {
				t.Errorf("%s: %s %q %v", name, got.Mode, got.Namespace, got.Namespaces)
			}
			if want := shards[0].Position() + "," + shards[1].Position(); got.Position != want {
				t.Errorf("%s: position %s, want %s", name, got.Position, want)
			}
			for i, h := range got.Results {
				if h.Namespace != "even" && h.Namespace != "odd" || i > 0 && h.Score > got.Results[i-1].Score {
					t.Errorf("%s: hit %d is of %q, score %v", name, i, h.Namespace, h.Score)
				}
				if req.Explain && math.Abs(logistic(sumOf(h.Explain))-h.Score) > 1e-9 {
					t.Errorf("the parts of hit %d sum to %v, its score is %v", i, sumOf(h.Explain), h.Score)
				}
			}
			req.Limit = ptr(5)
			few, err := Search(t.Context(), among(t, as, []string{"even", "odd"}, shards...), req)
			if err != nil || len(few.Results) > 5 {
				t.Errorf("%s: a limit of 5 gave %d: %v", name, len(few.Results), err)
			}
		}
	}
}

func sumOf(e *memory.Explain) (sum float64) {
	for _, p := range e.Parts {
		sum += p.Weight * p.Value
	}
	return sum
}

// One's memories are found in several namespaces, another one's in none, and what others
// keep there moves no score.
func TestSeveralNamespacesAreIsolated(t *testing.T) {
	w := newWorld(t)
	for _, ns := range []string{"amber", "birch", "cedar"} {
		w.Namespace(ns, withBuiltin())
		w.One(ns, "ann", "deploys happen on Tuesdays in "+ns)
		w.Capture(ns, memory.Capture{Agent: "ann", Text: "ann's own deploy in " + ns, Scope: memory.ScopeAgent})
	}
	ask := func(as string) string {
		got, err := Search(t.Context(), among(t, as, []string{"amber", "birch"}, w), memory.SearchRequest{Query: canary + " deploy", All: true, Limit: ptr(50), Explain: true})
		w.OK(err)
		got.Position = ""
		return printed(got)
	}
	team, own := ask(""), ask("ann")
	if strings.Contains(team, "own deploy") || strings.Count(own, "own deploy in ") < 2 || strings.Contains(own, "cedar") {
		t.Errorf("the team sees %s\nann sees %s", team, own)
	}
	for range 20 {
		w.Capture("amber", memory.Capture{Agent: "mallory", Text: canary + " deploy", Scope: memory.ScopeAgent})
		w.One("cedar", "mallory", canary+" deploy")
	}
	if got := ask(""); got != team {
		t.Errorf("the team sees %s\nbefore %s", got, team)
	}
	if got := ask("ann"); got != own {
		t.Errorf("ann sees %s\nbefore %s", got, own)
	}
	_, err := w.svc.OpenEach(t.Context(), []string{"amber", "nowhere"}, "", views.Freshness{})
	if wantCode(t, err, memory.CodeNotFound); !strings.Contains(err.Error(), `"nowhere"`) {
		t.Error(err)
	}
}

// Namespaces may differ in what they want of a search.
func TestSettingsOfSeveralNamespaces(t *testing.T) {
	w := newWorld(t)
	w.Namespace("plain", nil)
	w.Namespace("choosy", withBuiltin("search.min_score", "0.999"))
	w.Namespace("alike", withBuiltin())
	for _, ns := range []string{"plain", "choosy", "alike"} {
		w.One(ns, "ann", "deploys happen on Tuesdays")
		w.One(ns, "ann", "the kiln is blue")
	}
	names := []string{"alike", "choosy", "plain"}
	got, err := Search(t.Context(), among(t, "", names, w), memory.SearchRequest{Query: "deploys on Tuesdays"})
	w.OK(err)
	found := map[string]int{}
	for _, h := range got.Results {
		found[h.Namespace]++
	}
	// One without vectors is not passed over beside one that has them.
	if got.Mode != memory.ModeHybrid || found["plain"] == 0 || found["alike"] == 0 || found["choosy"] != 0 {
		t.Errorf("%s: %v", got.Mode, found)
	}
	_, err = Search(t.Context(), among(t, "", names, w), memory.SearchRequest{Query: "deploys", Mode: memory.ModeVector})
	if wantCode(t, err, memory.CodeInvalid); !strings.Contains(err.Error(), `"plain"`) {
		t.Error(err)
	}
	_, err = Search(t.Context(), among(t, "", names[:2], w), memory.SearchRequest{Query: "deploys", Vector: []float64{1, 2}})
	wantCode(t, err, memory.CodeInvalid)
}

// The texts that a search reads are as many over several shards as in one namespace, and
// those of the best are read first, wherever they lie.
func TestWorkIsSharedBySeveralNamespaces(t *testing.T) {
	shards := []*world{newWorld(t), newWorld(t)}
	long := "a kiln that is blue " + strings.Repeat("filler ", 14_000) // holds the words and not the phrase
	for i, w := range shards {
		w.Namespace("team", nil)
		for range 60 {
			w.One("team", "ann", long)
		}
		w.One("team", "ann", fmt.Sprintf("blue kiln blue kiln %d", i))
	}
	readers := among(t, "", []string{"team"}, shards...)
	var s *search
	resp, err := find(t.Context(), readers, true, func(under *search) ([]memory.Hit, error) {
		s = under
		return s.run(t.Context(), &memory.SearchRequest{Query: `"blue kiln"`, Mode: memory.ModeText})
	})
	if err != nil || len(resp.Results) != 2 {
		t.Fatalf("%d results: %v", len(resp.Results), err)
	}
	if spent := maxWork - int(s.left); spent > maxWork+len(long)*4 || spent < maxWork/2 {
		t.Errorf("it spent %d of %d", spent, maxWork)
	}
}
