package query

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"mneme/internal/events"
	"mneme/internal/settings"
	"mneme/memory"
)

// TestExplainAccountsForEveryScore holds every hit of random searches, with any
// parts, to score = Σ weight × value.
func TestExplainAccountsForEveryScore(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := &generator{rand.New(rand.NewPCG(seed, 3)), time.Date(2023, 5, 1, 0, 0, 0, 0, time.UTC)}
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	tw := &twin{}
	g.populate(w, tw, 200)
	found, sources := 0, map[string]int{}
	for i := range 300 {
		req := memory.SearchRequest{Query: g.words(1 + g.IntN(5)), Limit: ptr(1 + g.IntN(20)), Explain: true, Parts: map[memory.Part]bool{},
			Mode: []memory.Mode{memory.ModeHybrid, memory.ModeText, memory.ModeVector}[g.IntN(3)]}
		if g.IntN(2) == 0 {
			req.Query += fmt.Sprintf(" said agent-%d and I on 3 May 2023 to me", g.IntN(3))
		}
		if g.IntN(3) == 0 {
			req.Query = "current " + req.Query
		}
		for _, p := range memory.Parts {
			if g.IntN(2) == 0 {
				req.Parts[p] = g.IntN(2) == 0
			}
		}
		as := []string{"", agentName(0)}[g.IntN(2)]
		if g.IntN(3) == 0 {
			req.Filter = g.filter(as)
		}
		last := 2.0
		for _, h := range w.search("team", as, req).Results {
			if err := checkExplain(&h); err != nil {
				t.Fatalf("seed %d, search %d %+v: %v\n%+v", seed, i, req, err, h.Explain)
			}
			if h.Score < 0 || h.Score > 1 || h.Score > last || h.TextScore < 0 || h.TextScore > 1 || h.VectorScore < 0 || h.VectorScore > 1 {
				t.Fatalf("seed %d, search %d: score %v after %v, text %v, vector %v", seed, i, h.Score, last, h.TextScore, h.VectorScore)
			}
			for _, p := range h.Explain.Parts {
				if p.Value > 0 {
					sources[p.Source]++
				}
			}
			last = h.Score
			found++
		}
	}
	t.Logf("%d hits, values above 0 by source: %v", found, sources)
	for _, s := range []string{"vector", "text", "neighbours", "speaker", "dates", "opening", "recent", "newer"} {
		if sources[s] == 0 {
			t.Errorf("seed %d: nothing was ever found by %s", seed, s)
		}
	}
}

// talk captures a conversation, one message a second.
func (w *world) talk(ns, name string, lines ...[2]string) []string {
	at := time.Date(2023, 5, 8, 10, 0, 0, 0, time.UTC)
	var batch []memory.Capture
	for i, l := range lines {
		batch = append(batch, memory.Capture{Agent: l[0], Text: l[1], Conversation: name, OccurredAt: ptr(at.Add(time.Duration(i) * time.Second))})
	}
	return w.Capture(ns, batch...)
}

func (w *world) chatter(ns string, n int) {
	for i := range n {
		w.talk(ns, fmt.Sprintf("other-%d", i), [2]string{"carl", fmt.Sprintf("weather report number %d", i)}, [2]string{"dora", "nothing new in the garden"})
	}
}

func TestAnAnswerIsFoundByItsQuestion(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	w.chatter("team", 20)
	ids := w.talk("team", "trip", [2]string{"ann", "Where did you spend the summer holiday?"}, [2]string{"bob", "In Lisbon!"}, [2]string{"ann", "Lovely."})
	req := memory.SearchRequest{Query: "where was the summer holiday", All: true, Explain: true}
	got := w.search("team", "", req).Results
	if len(got) != 3 || got[0].ID != ids[0] || got[1].ID != ids[1] || !slices.Contains(got[1].MatchedBy, "neighbours") || slices.Contains(got[1].MatchedBy, "text") {
		t.Errorf("%+v", got)
	}
	req.Parts = map[memory.Part]bool{memory.PartNeighbours: false}
	if got := w.search("team", "", req).Results; len(got) != 1 {
		t.Errorf("without neighbours: %v", texts(got))
	}
	w.Change("team", map[string]string{settings.PartSetting(memory.PartNeighbours): settings.Off})
	req.Parts = nil
	if got := w.search("team", "", req).Results; len(got) != 1 {
		t.Errorf("switched off for the namespace: %v", texts(got))
	}
	// A filter restricts results; a neighbour that it leaves out still contributes.
	w.Change("team", map[string]string{settings.PartSetting(memory.PartNeighbours): settings.On})
	req.Filter = &memory.Filter{Agents: []string{"bob"}}
	if got := w.search("team", "", req).Results; len(got) != 1 || got[0].ID != ids[1] {
		t.Errorf("filtered: %v", texts(got))
	}
}

func TestTheSpeakerMeant(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	w.chatter("team", 20)
	same := func(agents ...string) (ids []string) {
		for i, a := range agents {
			ids = append(ids, w.talk("team", fmt.Sprintf("talk-%d", i), [2]string{a, "The pottery class begins soon."})...)
		}
		return ids
	}
	ids := same("user", "melanie", "ann", "melvin")
	for query, want := range map[string]string{
		"when does my pottery class begin":        ids[0],
		"when does Melanie's pottery class begin": ids[1],
		"when does the pottery class of Melvin?":  ids[3],
	} {
		got := w.search("team", "", memory.SearchRequest{Query: query, Explain: true}).Results
		if len(got) == 0 || got[0].ID != want || !slices.Contains(got[0].MatchedBy, "speaker") {
			t.Errorf("%q: %s first, %+v", query, got[0].Agent, got[0].Explain)
		}
	}
	off := memory.SearchRequest{Query: "when does my pottery class begin", Explain: true, Parts: map[memory.Part]bool{memory.PartSpeaker: false}}
	for _, h := range w.search("team", "ann", off).Results {
		if slices.Contains(h.MatchedBy, "speaker") {
			t.Errorf("switched off: %+v", h.Explain)
		}
	}
	// Who is asking is I, and a word that begins a sentence is no name.
	if got := w.search("team", "ann", memory.SearchRequest{Query: "when does my pottery class begin"}).Results; got[0].ID != ids[2] {
		t.Errorf("as ann: %+v", got[0])
	}
	for _, query := range []string{"Ann: when does the pottery class begin", "when does ann begin with the pottery class",
		"when does the Ann pottery class begin", "which Melanie pottery class begins", "wann fängt die Melanie pottery class an"} {
		for _, h := range w.search("team", "", memory.SearchRequest{Query: query}).Results {
			if slices.Contains(h.MatchedBy, "speaker") {
				t.Errorf("%q speaks of %s", query, h.Agent)
			}
		}
	}
}

// TestAnAgentsNameCapturesNoQuery: with an agent called search, the only right answer to
// "search cluster password" stood behind all that agent ever said.
func TestAnAgentsNameCapturesNoQuery(t *testing.T) {
	for _, name := range []string{"search", "docs"} {
		w := newWorld(t)
		w.Namespace("team", withBuiltin())
		w.chatter("team", 20)
		right := w.talk("team", "ops", [2]string{"ops", "The " + name + " cluster password is kept in the vault."})[0]
		for i := range 12 {
			w.talk("team", fmt.Sprintf("talk-%d", i), [2]string{name, fmt.Sprintf("Password rotation of cluster %d went well.", i)})
		}
		for _, query := range []string{name + " cluster password", strings.ToUpper(name[:1]) + name[1:] + " cluster password", "what is the " + name + " cluster password?"} {
			if got := w.search("team", "", memory.SearchRequest{Query: query, Explain: true}).Results; len(got) == 0 || got[0].ID != right {
				t.Errorf("%q: %v", query, texts(got))
			}
		}
	}
}

// part is the value of a part of a hit's score.
func part(h *memory.Hit, p memory.Part) float64 {
	for _, e := range h.Explain.Parts {
		if e.Source == string(p) {
			return e.Value
		}
	}
	return 0
}

// The first message of a conversation says what it is about; one that nothing follows is no
// conversation.
func TestWhatOpensAConversation(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	w.chatter("team", 20)
	budget := [2]string{"ann", "The budget for the pottery class"}
	talk := w.talk("team", "talk", budget, [2]string{"bob", "Go on."}, budget)
	alone := w.talk("team", "alone", budget)[0]
	req := memory.SearchRequest{Query: "budget of the pottery class", Explain: true, Parts: map[memory.Part]bool{}}
	opening := func() map[string]float64 {
		out := map[string]float64{}
		for _, h := range w.search("team", "", req).Results {
			out[h.ID] = part(&h, memory.PartOpening)
		}
		return out
	}
	got := opening()
	if got[talk[0]] != 1 || got[talk[2]] != 0 || got[alone] != 0 || len(got) < 3 {
		t.Errorf("%v of %v and %s", got, talk, alone)
	}
	req.Parts[memory.PartNeighbours] = false // says nothing of where a message stands
	if got := opening(); got[talk[0]] != 1 || got[talk[2]] != 0 || got[alone] != 0 || len(got) != 3 {
		t.Errorf("without neighbours: %v of %v and %s", got, talk, alone)
	}
	delete(req.Parts, memory.PartNeighbours)
	w.Forget("team", talk[0], "ann", events.ScopeTeam)
	if got := opening(); got[talk[1]]+got[talk[2]] > 1 || got[talk[2]] != 0 {
		t.Errorf("what opened it is forgotten: %v of %v", got, talk)
	}
	req.Parts[memory.PartOpening] = false
	for id, v := range opening() {
		if v != 0 {
			t.Errorf("switched off: %s has %v", id, v)
		}
	}
}

// Who speaks of himself means what was written lately: of many memories the newer ones, by
// the formula of docs/search.md. Other queries do not ask when a memory was written.
func TestTheFirstPersonMeansWhatIsRecent(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	var ids []string
	for range 3 {
		ids = append(ids, w.Capture("team", memory.Capture{Agent: "ann", Text: "The budget for the pottery class"})...)
		var rest []memory.Capture
		for i := range 200 {
			rest = append(rest, memory.Capture{Agent: "carl", Text: fmt.Sprintf("weather report number %d", i)})
		}
		w.Capture("team", rest...)
	}
	fresh := func(newer int) float64 { return 1 / (1 + math.Log(1+float64(newer)/500)) }
	for query, asks := range map[string]bool{"what is my budget of the pottery class": true, "do we have a budget for the pottery class": true, "the budget of the pottery class": false} {
		got := w.search("team", "", memory.SearchRequest{Query: query, Explain: true}).Results
		if len(got) != 3 || asks && (got[0].ID != ids[2] || got[2].ID != ids[0]) {
			t.Fatalf("%q: %v of %v", query, got, ids)
		}
		for _, h := range got {
			want := 0.0
			if asks {
				want = fresh(200+201*(2-slices.Index(ids, h.ID))) - fresh(602)
			}
			if v := part(&h, memory.PartRecent); math.Abs(v-want) > 1e-12 {
				t.Errorf("%q: memory %d has %v, want %v", query, slices.Index(ids, h.ID), v, want)
			}
		}
	}
	// What somebody keeps for himself is as recent as it is among that.
	own := w.Capture("team", memory.Capture{Agent: "eve", Text: "The budget for the pottery class", Scope: memory.ScopeAgent},
		memory.Capture{Agent: "eve", Text: "The budget for the pottery class", Scope: memory.ScopeAgent})
	for _, h := range w.search("team", "eve", memory.SearchRequest{Query: "what is my budget of the pottery class", Explain: true}).Results {
		at := slices.Index(own, h.ID)
		if v := part(&h, memory.PartRecent); at == 0 && v != 0 || at == 1 && math.Abs(v-(1-fresh(1))) > 1e-12 || at < 0 && v < 1e-12 && h.ID != ids[0] {
			t.Errorf("memory %d of her own, or %d of the team, has %v", at, slices.Index(ids, h.ID), v)
		}
	}
	off := memory.SearchRequest{Query: "what is my budget of the pottery class", Explain: true, Parts: map[memory.Part]bool{memory.PartRecent: false}}
	for _, h := range w.search("team", "", off).Results {
		if part(&h, memory.PartRecent) != 0 {
			t.Errorf("switched off: %+v", h.Explain)
		}
	}
}

func TestDatesOfAQuery(t *testing.T) {
	w := newWorld(t) // now is 1 May 2024, a Wednesday
	w.Namespace("team", nil)
	w.chatter("team", 20)
	day := func(y int, m time.Month, d int, text string) string {
		return w.Capture("team", memory.Capture{Agent: "ann", Text: text, OccurredAt: ptr(time.Date(y, m, d, 9, 0, 0, 0, time.UTC))})[0]
	}
	may := day(2023, 5, 10, "dinner with the neighbours")
	day(2023, 9, 1, "dinner with the neighbours")
	week := day(2024, 4, 24, "dinner with the neighbours")
	chinese := day(2022, 3, 8, "和邻居一起吃晚饭")
	day(2022, 7, 8, "和邻居一起吃晚饭")
	for query, want := range map[string]string{
		"dinner with neighbours last May":                  may,
		"which dinner with neighbours was there last week": week,
		"2022年三月和邻居吃晚饭":                                    chinese,
	} {
		got := w.search("team", "", memory.SearchRequest{Query: query, Explain: true}).Results
		if len(got) == 0 || got[0].ID != want || !slices.Contains(got[0].MatchedBy, "dates") {
			t.Errorf("%q: %v", query, texts(got))
		}
		off := w.search("team", "", memory.SearchRequest{Query: query, Parts: map[memory.Part]bool{memory.PartDates: false}}).Results
		for _, h := range off {
			if slices.Contains(h.MatchedBy, "dates") {
				t.Errorf("%q: dates are off", query)
			}
		}
	}
}

func TestPartsAreChecked(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	for _, req := range []memory.SearchRequest{{Query: "x", Parts: map[memory.Part]bool{"odd": true}},
		{Query: "x", Parts: map[memory.Part]bool{"conversation": true}}, {Query: "x", Parts: map[memory.Part]bool{"calibration": true}}} {
		_, err := w.reader("team", "").Search(context.Background(), req)
		wantCode(t, err, memory.CodeInvalid)
	}
}
