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

// told captures memories of one agent, a month apart.
func (w *world) told(ns, agent string, scope memory.Scope, texts ...string) []string {
	var batch []memory.Capture
	for i, s := range texts {
		at := time.Date(2023, time.Month(1+i), 3, 10, 0, 0, 0, time.UTC)
		batch = append(batch, memory.Capture{Agent: agent, Text: s, Scope: scope, OccurredAt: &at})
	}
	return w.Capture(ns, batch...)
}

func hitIDs(hits []memory.Hit) []string {
	out := make([]string, len(hits))
	for i, h := range hits {
		out[i] = h.ID
	}
	return out
}

func partOf(h memory.Hit, source string) float64 {
	for _, p := range h.Explain.Parts {
		if p.Source == source {
			return p.Value
		}
	}
	return 0
}

func TestTheNewerMemoryComesFirst(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	w.chatter("team", 40)
	ids := w.told("team", "mason", memory.ScopeTeam, "galley runs on RabbitMQ", "galley runs no longer on RabbitMQ but on NATS", "galley has a cook")
	older, newer := ids[0], ids[1]
	req := memory.SearchRequest{Query: "what does galley run on? rabbitmq", Explain: true}
	plain := w.search("team", "", req).Results
	if len(plain) < 2 || plain[0].ID != older || plain[1].ID != newer {
		t.Fatalf("nothing is asked of the present: %v", texts(plain))
	}
	lifted := func(query string, change ...func(*memory.SearchRequest)) bool {
		t.Helper()
		req := req
		req.Query = query
		for _, c := range change {
			c(&req)
		}
		got := w.search("team", "", req).Results
		for _, h := range got {
			if err := checkExplain(&h); err != nil {
				t.Errorf("%s: %v", query, err)
			}
		}
		return len(got) > 0 && got[0].ID == newer
	}
	for _, query := range []string{"what does galley run on now? rabbitmq", "does galley still run on rabbitmq", "current rabbitmq galley run"} {
		if !lifted(query) {
			t.Errorf("%s: the older one is first", query)
		}
	}
	now := w.search("team", "", memory.SearchRequest{Query: "what does galley run on now? rabbitmq", Explain: true}).Results
	switch by := partOf(now[0], "newer"); {
	case now[0].Explain.NewerThan != older || now[1].ID != older || now[1].Explain.OlderThan != newer || now[0].Score != now[1].Score:
		t.Errorf("%+v\n%+v", now[0].Explain, now[1].Explain)
	case math.Abs(by-(plain[0].Explain.Sum-plain[1].Explain.Sum)) > 1e-9 || !slices.Contains(now[0].MatchedBy, "newer") || slices.Contains(now[1].MatchedBy, "newer"):
		t.Errorf("it counts for %v, the sums were %v and %v", by, plain[0].Explain.Sum, plain[1].Explain.Sum)
	}
	for name, change := range map[string]func(*memory.SearchRequest){
		"switched off":                  func(r *memory.SearchRequest) { r.Parts = map[memory.Part]bool{memory.PartNewer: false} },
		"in quotes":                     func(r *memory.SearchRequest) { r.Query = `"galley" "on" rabbitmq now` },
		"a filter leaves out the newer": func(r *memory.SearchRequest) { r.Filter = &memory.Filter{Until: ptr(now[0].OccurredAt)} },
		"a pasted text":                 func(r *memory.SearchRequest) { r.Query += "\nrabbitmq" },
		"vectors alone":                 func(r *memory.SearchRequest) { r.Mode = memory.ModeVector },
	} {
		if lifted("what does galley run on now? rabbitmq", change) {
			t.Errorf("%s: the newer one is first", name)
		}
	}
	w.Change("team", map[string]string{settings.PartSetting(memory.PartNewer): settings.Off})
	if lifted("what does galley run on now? rabbitmq") {
		t.Error("switched off for the namespace: the newer one is first")
	}
	w.Change("team", map[string]string{settings.PartSetting(memory.PartNewer): settings.On})
	// A revised memory is as new as its revision.
	w.Revise("team", older, 1, memory.Capture{Agent: "mason", Text: "galley runs on RabbitMQ again, and on nothing else", OccurredAt: ptr(plain[0].OccurredAt)})
	if lifted("what does galley run on now? rabbitmq") {
		t.Error("the revised one is not first")
	}
	// What is forgotten is passed by nothing.
	w.Forget("team", older, "mason", events.ScopeTeam)
	for _, h := range w.search("team", "", memory.SearchRequest{Query: "what does galley run on now? rabbitmq", Explain: true}).Results {
		if h.Explain.NewerThan != "" || h.Explain.OlderThan != "" {
			t.Errorf("%+v", h.Explain)
		}
	}
}

// TestNobodyLearnsWhatWasPassed: a memory that the reader may not see moves nothing.
func TestNobodyLearnsWhatWasPassed(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	w.chatter("team", 40)
	own := w.told("team", "bob", memory.ScopeAgent, "galley runs on RabbitMQ")[0]
	ids := w.told("team", "mason", memory.ScopeTeam, "the sea is calm", "galley runs no longer on RabbitMQ but on NATS")
	for as, want := range map[string]string{"bob": own, "ann": "", "": ""} {
		got := w.search("team", as, memory.SearchRequest{Query: "what does galley run on now? rabbitmq", Explain: true}).Results
		if len(got) == 0 || got[0].ID != ids[1] || got[0].Explain.NewerThan != want || (partOf(got[0], "newer") > 0) != (want != "") {
			t.Errorf("%q: %v %+v", as, texts(got), got[0].Explain)
		}
	}
}

// TestTheNewestOfThreeComesFirst: what passed an older memory is passed by a newer one, each
// beside what it passed.
func TestTheNewestOfThreeComesFirst(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	day := func(n int) time.Time { return time.Date(2024, 5, n, 0, 0, 0, 0, time.UTC) }
	ids := w.Capture("team",
		memory.Capture{Agent: "ann", Text: "rabbitmq galley, galley rabbitmq, rabbitmq galley", OccurredAt: ptr(day(1))},
		memory.Capture{Agent: "ann", Text: "rabbitmq of the galley" + strings.Repeat(", plain words", 6), OccurredAt: ptr(day(2))},
		memory.Capture{Agent: "ann", Text: "rabbitmq left the galley" + strings.Repeat(", plain words", 28), OccurredAt: ptr(day(3))})
	for range 20 {
		w.One("team", "ann", "the kiln is cold and nobody paints")
	}
	search := func(query string) []memory.Hit {
		return w.search("team", "", memory.SearchRequest{Query: query, Mode: memory.ModeText, All: true, Explain: true}).Results
	}
	plain := search("rabbitmq galley")
	if len(plain) != 3 || plain[0].ID != ids[0] || plain[1].ID != ids[1] || plain[0].Explain.Sum-plain[2].Explain.Sum <= 1 || plain[1].Explain.Sum-plain[2].Explain.Sum > 1 ||
		plain[0].Explain.Sum-plain[1].Explain.Sum > 1 {
		t.Fatalf("without a question for now: sums %v, %v, %v", plain[0].Explain.Sum, plain[1].Explain.Sum, plain[2].Explain.Sum)
	}
	now := search("rabbitmq galley now")
	for i, want := range []string{ids[2], ids[1], ids[0]} {
		if now[i].ID != want {
			t.Fatalf("at %d is %q", i, now[i].Text)
		}
	}
	if now[0].Explain.NewerThan != ids[1] || now[1].Explain.NewerThan != ids[0] || now[1].Explain.OlderThan != ids[2] || now[2].Explain.OlderThan != ids[1] {
		t.Errorf("explained as %+v, %+v, %+v", now[0].Explain, now[1].Explain, now[2].Explain)
	}
}

// TestNoLimitChangesWhatIsNewer: a shorter answer is the beginning of a longer one, and a floor
// cuts its end, whatever was put in front.
func TestNoLimitChangesWhatIsNewer(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := &generator{rand.New(rand.NewPCG(seed, 9)), time.Date(2023, 5, 1, 0, 0, 0, 0, time.UTC)}
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	g.populate(w, &twin{}, 200)
	moved := 0
	for range 60 {
		req := memory.SearchRequest{Query: "current " + g.words(1+g.IntN(3)), Limit: ptr(200), All: true, Explain: true}
		if g.IntN(3) == 0 {
			req.Filter = g.filter("")
		}
		all := w.search("team", "", req).Results
		for _, h := range all {
			if h.Explain.NewerThan != "" {
				moved++
			}
		}
		for _, limit := range []int{1, 2, 5, 11} {
			req.Limit = &limit
			if got := w.search("team", "", req).Results; !slices.Equal(hitIDs(got), hitIDs(all)[:min(limit, len(all))]) {
				t.Fatalf("seed %d, %s: %v, but of 200 %v", seed, req.Query, hitIDs(got), hitIDs(all))
			}
		}
		req.Limit, req.All = ptr(200), false
		for _, floor := range []float64{0.1, 0.25, 0.6} {
			req.MinScore = &floor
			n := 0
			for n < len(all) && all[n].Score >= floor {
				n++
			}
			if got := w.search("team", "", req).Results; !slices.Equal(hitIDs(got), hitIDs(all)[:n]) {
				t.Fatalf("seed %d, %s above %v: %v, not %v", seed, req.Query, floor, hitIDs(got), hitIDs(all)[:n])
			}
		}
	}
	if moved == 0 {
		t.Error("nothing was ever moved")
	}
	t.Logf("%d moved", moved)
}

// The examples of docs/search.md find first what it says.
func TestExamplesOfWhatHoldsNow(t *testing.T) {
	memories, rows := examples(t, "With these memories")
	w := newWorld(t)
	w.Namespace("team", nil)
	numbers := map[string]string{}
	for i, text := range memories {
		day, says, _ := strings.Cut(text, " ")
		at, err := time.Parse(time.DateOnly, day)
		w.OK(err)
		numbers[w.Capture("team", memory.Capture{Agent: "ann", Text: says, OccurredAt: &at})[0]] = fmt.Sprint(i + 1)
	}
	for _, row := range rows {
		got := w.search("team", "", memory.SearchRequest{Query: row[0], Mode: memory.ModeText, Explain: true}).Results
		if len(got) == 0 || numbers[got[0].ID] != row[1] {
			t.Errorf("%s does not find %s first: %v", row[0], row[1], texts(got))
			for _, h := range got {
				t.Logf("%s %+v", h.Text, h.Explain)
			}
		}
	}
	if len(numbers) != 4 || len(rows) != 5 {
		t.Errorf("%d memories and %d examples", len(numbers), len(rows))
	}
}

// TestNewerOfAnotherNamespace: what is searched at once is ranked at once, on two shards too. The
// part counts where all namespaces have it switched on.
func TestNewerOfAnotherNamespace(t *testing.T) {
	shards := []*world{newWorld(t), newWorld(t)}
	names := []string{"even", "odd"}
	for _, w := range shards {
		for _, ns := range names {
			w.Namespace(ns, withBuiltin())
			w.chatter(ns, 20)
		}
	}
	older := shards[0].told("odd", "mason", memory.ScopeTeam, "galley runs on RabbitMQ")[0]
	newer := shards[1].told("even", "mason", memory.ScopeTeam, "the sea is calm", "galley runs no longer on RabbitMQ but on NATS")[1]
	search := func() []memory.Hit {
		t.Helper()
		got, err := Search(context.Background(), among(t, "", names, shards...), memory.SearchRequest{Query: "what does galley run on now? rabbitmq", Explain: true})
		if err != nil || len(got.Results) < 2 {
			t.Fatalf("%v, %v", texts(got.Results), err)
		}
		return got.Results
	}
	if got := search(); got[0].ID != newer || got[0].Explain.NewerThan != older || got[1].ID != older || got[1].Explain.OlderThan != newer {
		t.Errorf("%+v\n%+v", got[0], got[1])
	}
	shards[0].Change("even", map[string]string{settings.PartSetting(memory.PartNewer): settings.Off})
	if got := search(); got[0].ID != older || got[0].Explain.OlderThan != "" {
		t.Errorf("%+v\n%+v", got[0], got[1])
	}
}
