package query

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"mneme/internal/embed"
	"mneme/internal/embed/static"
	"mneme/internal/events"
	"mneme/internal/settings"
	"mneme/memory"
)

// TestUnknownCodesFoundTheFirstMessages: in a namespace of chats, a hash, a ticket, an address or a
// word that nobody wrote was answered with whatever opens a conversation.
func TestUnknownCodesFoundTheFirstMessages(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	topics := strings.Fields("garden harbour deploy invoice holiday budget printer kitchen train server ticket coffee")
	for i := range 60 {
		a, b := topics[i%len(topics)], topics[(i*7+3)%len(topics)]
		w.talk("team", fmt.Sprint("chat-", i), [2]string{"ann", "shall we look at the " + a + " and the " + b + " today?"}, [2]string{"bob", "yes, the " + b + " first, then the rest"})
	}
	rng := rand.New(rand.NewPCG(7, 7))
	letters := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte("bcdfghjklmnpqrstvwxz"[rng.IntN(20)])
		}
		return b.String()
	}
	const each = 50
	for name, most := range map[string]struct {
		query func() string
		found int // by chance, by parts of words
	}{
		"hashes":    {func() string { return fmt.Sprintf("%08x", rng.Uint32()|1<<31) }, 2},
		"tickets":   {func() string { return fmt.Sprintf("%s-%d", strings.ToUpper(letters(3)), 1000+rng.IntN(9000)) }, 2},
		"addresses": {func() string { return fmt.Sprintf("10.%d.%d.%d", rng.IntN(256), rng.IntN(256), rng.IntN(256)) }, 2},
		"words":     {func() string { return letters(9) }, 5},
	} {
		answered := 0
		for range each {
			if res := w.search("team", "", memory.SearchRequest{Query: most.query()}); len(res.Results) > 0 {
				answered++
			}
		}
		if answered > most.found {
			t.Errorf("%s: %d of %d were answered", name, answered, each)
		}
	}
	if len(w.search("team", "", memory.SearchRequest{Query: "what about the printer"}).Results) == 0 {
		t.Error("nothing is found at all")
	}
}

// TestForgottenMemoriesAgedTheRest: recency counted what was ever written, so that a score changed
// with memories that nobody sees any more.
func TestForgottenMemoriesAgedTheRest(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	for i := range 20 {
		if i == 10 {
			w.One("team", "user", "our heater hums at night")
		}
		w.One("team", "user", fmt.Sprintf("a note of the day %d", i))
	}
	score := func() float64 {
		res := w.search("team", "", memory.SearchRequest{Query: "what about our heater", Explain: true})
		if len(res.Results) == 0 {
			t.Fatal("the heater is not found")
		}
		return res.Results[0].Score
	}
	before := score()
	var gone []string
	for i := range 300 {
		gone = append(gone, w.One("team", "user", fmt.Sprintf("passing remark %d", i)))
	}
	if score() == before {
		t.Error("300 newer memories do not matter")
	}
	for _, id := range gone {
		w.Forget("team", id, "user", events.ScopeTeam)
	}
	if after := score(); after != before {
		t.Errorf("%v before, %v after 300 others came and went", before, after)
	}
}

// TestAPathOfAllMemoriesLiftedThemAll: a hit with an identifier of the query lay above the floor,
// be the identifier in every memory.
func TestAPathOfAllMemoriesLiftedThemAll(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	var all []memory.Capture
	for i := range 300 {
		all = append(all, memory.Capture{Agent: "ann", Text: fmt.Sprintf("acme/api.go line %d: the handler returns early", i)})
	}
	all = append(all, memory.Capture{Agent: "ann", Text: "acme/rare.go has the only parser"})
	w.Capture("team", all...)
	if got := w.search("team", "", memory.SearchRequest{Query: "the moonlit zebra juggles flaming pineapples at acme/api.go", Limit: ptr(200)}).Results; len(got) > 0 {
		t.Errorf("%d hits, the first with %v", len(got), got[0].Score)
	}
	if got := w.search("team", "", memory.SearchRequest{Query: "the moonlit zebra juggles flaming pineapples at acme/rare.go"}).Results; len(got) != 1 || !strings.Contains(got[0].Text, "rare.go") {
		t.Errorf("a rare one: %v", texts(got))
	}
}

// TestScatteredWordsOfALongText: a long text that holds the words of a query here and there came
// before a short one that says them together.
func TestScatteredWordsOfALongText(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	filler := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "Paragraph %d is about options, files and levels of the tool. ", i)
		}
		return b.String()
	}
	long := "The runner is described. " + filler(20) + "Which pipeline fits. " + filler(20) + "We use colours. " + filler(20) + "A cache of nightly builds. " + filler(20)
	together := filler(30) + "The runner of the pipeline keeps a nightly cache of colours. " + filler(30)
	w.One("team", "docs", long)
	short := w.One("team", "ann", "nightly pipeline: the runner has a cache")
	for range 30 {
		w.One("team", "bob", "something else about gardens")
	}
	query := memory.SearchRequest{Query: "runner pipeline nightly cache", Explain: true, Limit: ptr(200), All: true}
	got := w.search("team", "", query).Results
	if len(got) < 2 || got[0].ID != short {
		t.Errorf("%.60q", texts(got))
	}
	for i := range got {
		if err := checkExplain(&got[i]); err != nil {
			t.Error(err)
		}
	}
	matched := func(text string) float64 {
		for _, h := range w.search("team", "", memory.SearchRequest{Query: query.Query, Explain: true, All: true, Fit: memory.Fit{MaxText: ptr(memory.MaxTextBytes)}}).Results {
			for _, p := range h.Explain.Parts {
				if h.Text == text && p.Source == "matched" {
					return p.Value
				}
			}
		}
		return 0
	}
	w.One("team", "docs", together)
	if scattered, near := matched(long), matched(together); near < 0.99 || scattered > 0.85 || scattered < 0.65 {
		// of four words two stand together, so that by half the whole and by half these it is about three quarters
		t.Errorf("scattered %v, together %v", scattered, near)
	}
	// What has all words scattered was in front of what has most of them together, and goes back.
	query.Query = "which runner of the pipeline has a nightly cache of builds in colours"
	// The order is that of a limit that shows all, whatever the limit.
	all := w.search("team", "", query).Results
	at := map[string]int{}
	for i, h := range all {
		at[h.Text[:min(len(h.Text), 20)]] = i
		if i > 0 && h.Score > all[i-1].Score {
			t.Errorf("hit %d has %v, behind one with %v", i, h.Score, all[i-1].Score)
		}
	}
	if at[long[:20]] < at[together[:20]] {
		t.Errorf("scattered words come before those that stand together: %v", at)
	}
	for limit := 1; limit <= 4; limit++ {
		query.Limit = &limit
		for i, h := range w.search("team", "", query).Results {
			if h.ID != all[i].ID || h.Score != all[i].Score {
				t.Errorf("limit %d: hit %d is %s with %v, not %s with %v", limit, i, h.ID, h.Score, all[i].ID, all[i].Score)
			}
		}
	}
}

// TestWhatIsLeftOutMayBeATag: "-plan" left a memory in that has the word as a tag, or in its name.
func TestWhatIsLeftOutMayBeATag(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	w.Capture("team", memory.Capture{Agent: "ann", Text: "the release of May", Tags: []string{"release-plan"}},
		memory.Capture{Agent: "ann", Text: "the release of June", URI: "notes/plan/june"}, memory.Capture{Agent: "ann", Text: "the release of July"})
	for _, mode := range []memory.Mode{memory.ModeText, memory.ModeHybrid} {
		if got := w.search("team", "", memory.SearchRequest{Query: "release -plan", Mode: mode}).Results; len(got) != 1 || got[0].Text != "the release of July" {
			t.Errorf("%s: %v", mode, texts(got))
		}
	}
}

// TestAnotherLanguageIsLeftToWords: the built-in vectors know no German, and a German question lost
// what its words had found.
func TestAnotherLanguageIsLeftToWords(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", map[string]string{settings.EmbedderSpace: settings.EncodeSpace(embed.Space{Provider: embed.ProviderBuiltin, Model: embed.ModelStatic,
		Dimensions: static.Dimensions, Normalised: true, Version: static.Version})})
	id := w.One("team", "ann", "Die Rechnungen verschickt Frau Huber am Monatsersten.")
	for i := range 40 {
		w.One("team", "bob", fmt.Sprintf("note %d about lorries and harbours", i))
	}
	for query, vectors := range map[string]bool{"wer verschickt uns immer diese ganzen Rechnungen": false, "who looks after lorries": true, "what is it": true} {
		res := w.search("team", "", memory.SearchRequest{Query: query, All: true, Explain: true})
		if res.Mode != memory.ModeHybrid || len(res.Results) == 0 || !vectors && res.Results[0].ID != id {
			t.Errorf("%q: %s, %v", query, res.Mode, texts(res.Results))
			continue
		}
		if got := res.Results[0].VectorScore > 0; got != vectors {
			t.Errorf("%q: vectors say something: %v", query, got)
		}
	}
	if res := w.search("team", "", memory.SearchRequest{Query: "wer verschickt uns immer diese ganzen Rechnungen"}).Results; len(res) != 1 {
		t.Errorf("above the floor: %v", texts(res))
	}
}
