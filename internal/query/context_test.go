package query

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/memory"
)

// conversations prints what a context view holds, in words that do not depend
// on the order in which it learned them.
func (w *world) conversations(v *contextView) string {
	w.t.Helper()
	view := w.state.View()
	defer view.Close()
	var out strings.Builder
	for _, id := range slices.Sorted(maps.Keys(v.parts)) {
		p := v.get(id)
		var talks []string
		for _, docs := range p.members {
			if len(docs) == 0 {
				continue
			}
			var talk []string
			for _, doc := range docs {
				d, _, err := view.Doc(id, doc)
				w.ok(err)
				_, agent, at := p.of(doc)
				if p.agents[agent-1] != d.Agent || at != d.OccurredAt || !d.Living() {
					w.t.Fatalf("partition %d document %d: %s at %d, want %+v", id, doc, p.agents[agent-1], at, d)
				}
				talk = append(talk, d.Record.String())
			}
			talks = append(talks, strings.Join(talk, " "))
		}
		slices.Sort(talks)
		fmt.Fprintf(&out, "%d: %s\n", id, strings.Join(talks, "; "))
	}
	return out.String()
}

// TestContextTwin compares what the view holds after random writes, and after
// it was read again, with the records themselves.
func TestContextTwin(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := &generator{rand.New(rand.NewPCG(seed, 4)), time.Date(2023, 5, 1, 0, 0, 0, 0, time.UTC)}
	w := newWorld(t)
	w.namespace("team", nil)
	tw := &twin{}
	g.populate(w, tw, 400)
	got := w.conversations(w.svc.contexts.Load())
	for _, as := range []string{"", agentName(0), agentName(1)} {
		compareAround(t, w, tw, as, seed)
	}
	// A load takes over what is applied while it reads: being told twice
	// changes nothing.
	for _, a := range w.applied {
		w.svc.contexts.Load().apply(a)
	}
	if again := w.conversations(w.svc.contexts.Load()); again != got {
		t.Fatalf("seed %d: told twice\n%s\nwant %s", seed, again, got)
	}
	w.ok(w.svc.Load(context.Background()))
	if again := w.conversations(w.svc.contexts.Load()); again != got {
		t.Fatalf("seed %d:\nfollowed %s\nread     %s", seed, got, again)
	}
	w.drop("team")
	if n := len(w.svc.contexts.Load().parts); n != 0 {
		t.Errorf("%d partitions are left of a namespace that is gone", n)
	}
}

// compareAround asks for the neighbours of every document that an agent sees.
func compareAround(t *testing.T, w *world, tw *twin, as string, seed uint64) {
	t.Helper()
	r := w.reader("team", as)
	for _, p := range r.parts {
		want := map[string][]*twinRecord{}
		for _, rec := range tw.visible(as) {
			if rec.c.Conversation != "" && events.ScopeOf(rec.c.Scope) == p.Scope {
				want[rec.c.Conversation] = append(want[rec.c.Conversation], rec)
			}
		}
		docs := map[string]uint32{}
		w.ok(r.view.Docs(p.ID, p.NextDoc, func(doc uint32, d projections.Doc) (bool, error) {
			if d.Living() {
				docs[d.Record.String()] = doc
			}
			return true, nil
		}))
		for _, talk := range want {
			slices.SortFunc(talk, func(a, b *twinRecord) int {
				return cmp.Or(a.occurred().Compare(b.occurred()), cmp.Compare(docs[a.id], docs[b.id]))
			})
			for i, rec := range talk {
				var before, after [3]uint32
				nb, na := w.svc.contexts.Load().get(p.ID).around(docs[rec.id], before[:], after[:], p.visible)
				var got, exp []uint32
				got = append(append(got, before[:nb]...), after[:na]...)
				for j := i - 1; j >= max(0, i-3); j-- {
					exp = append(exp, docs[talk[j].id])
				}
				for j := i + 1; j < min(len(talk), i+4); j++ {
					exp = append(exp, docs[talk[j].id])
				}
				if !slices.Equal(got, exp) {
					t.Fatalf("seed %d as %q: around %s: %v, want %v", seed, as, rec.id, got, exp)
				}
			}
		}
	}
}

// TestNobodyUnseenLends: what a reader may not see, or what was forgotten or
// revised, changes no score of what he sees.
func TestNobodyUnseenLends(t *testing.T) {
	w := newWorld(t)
	w.namespace("team", withBuiltin())
	w.chatter("team", 10)
	at := time.Date(2023, 5, 8, 10, 0, 0, 0, time.UTC)
	line := func(i int, agent, text string, scope memory.Scope) memory.Capture {
		return memory.Capture{Agent: agent, Text: text, Conversation: "trip", Scope: scope, OccurredAt: ptr(at.Add(time.Duration(i) * time.Second))}
	}
	ids := w.capture("team", line(0, "ann", "we talked about the budget", ""), line(3, "bob", "yes, as always", ""), line(4, "ann", "holiday plans are done", ""))
	answer := func(as string) string {
		res := w.search("team", as, memory.SearchRequest{Query: "holiday treasure", Explain: true, Filter: &memory.Filter{Scope: memory.ScopeTeam}})
		out := printed(res.Results)
		for _, h := range res.Results {
			for _, p := range h.Explain.Parts {
				out += fmt.Sprintf(" %s %v", p.Source, p.Raw)
			}
		}
		return out
	}
	before := answer("")
	w.capture("team", line(1, "mallory", "the holiday treasure lies beneath the plank", memory.ScopeAgent))
	if got := answer(""); got != before {
		t.Errorf("another's memory contributes:\n%s\nwant %s", got, before)
	}
	gone := w.capture("team", line(2, "carl", "holiday treasure holiday treasure", ""))[0]
	if got := answer(""); got == before {
		t.Error("a memory of the team contributes nothing")
	}
	w.forget("team", gone, "carl", events.ScopeTeam)
	if got := answer(""); got != before {
		t.Errorf("a forgotten memory contributes:\n%s\nwant %s", got, before)
	}
	w.revise("team", ids[1], 1, line(3, "bob", "the treasure and the holiday", ""))
	w.revise("team", ids[1], 2, line(3, "bob", "yes, as always", ""))
	scores := func() (out []string) {
		for _, h := range w.search("team", "", memory.SearchRequest{Query: "holiday treasure"}).Results {
			out = append(out, fmt.Sprint(h.ID, h.Score))
		}
		return out
	}
	revised := scores()
	w.ok(w.svc.Load(context.Background()))
	if again := scores(); !slices.Equal(revised, again) {
		t.Errorf("after a load: %v, want %v", again, revised)
	}
}
