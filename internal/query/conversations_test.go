package query

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/query/rank"
	"mneme/memory"
)

// conversations prints the order of every partition of a namespace.
func (w *world) conversations(ns string) string {
	w.T.Helper()
	view := w.State.View()
	defer view.Close()
	parts, err := view.Partitions(w.Space[ns])
	w.OK(err)
	var out strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&out, "%d\n%s", p.ID, w.views.Conversations(p.ID))
	}
	return out.String()
}

// TestConversationsTwin compares what the view holds after random writes, and after
// it was read again, with the records themselves.
func TestConversationsTwin(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := &generator{rand.New(rand.NewPCG(seed, 4)), time.Date(2023, 5, 1, 0, 0, 0, 0, time.UTC)}
	w := newWorld(t)
	w.Namespace("team", nil)
	tw := &twin{}
	g.populate(w, tw, 400)
	got := w.conversations("team")
	for _, as := range []string{"", agentName(0), agentName(1)} {
		compareAround(t, w, tw, as, seed)
	}
	// A load takes over what is applied while it reads: being told twice
	// changes nothing.
	for _, a := range w.Applied {
		w.views.OnApply(a)
	}
	if again := w.conversations("team"); again != got {
		t.Fatalf("seed %d: told twice\n%s\nwant %s", seed, again, got)
	}
	w.OK(w.views.Load(context.Background()))
	if again := w.conversations("team"); again != got {
		t.Fatalf("seed %d:\nfollowed %s\nread     %s", seed, got, again)
	}
	ids := w.partitions("team")
	w.Drop("team")
	for _, id := range ids {
		if w.views.Conversations(id) != nil {
			t.Errorf("partition %d is left of a namespace that is gone", id)
		}
	}
}

func (w *world) partitions(ns string) (ids []uint32) {
	w.T.Helper()
	view := w.State.View()
	defer view.Close()
	parts, err := view.Partitions(w.Space[ns])
	w.OK(err)
	for _, p := range parts {
		ids = append(ids, p.ID)
	}
	return ids
}

// compareAround asks for the neighbours of every document that an agent sees.
func compareAround(t *testing.T, w *world, tw *twin, as string, seed uint64) {
	t.Helper()
	r := w.reader("team", as)
	var around rank.Surroundings
	for _, p := range r.view.Partitions {
		want := map[string][]*twinRecord{}
		for _, rec := range tw.visible(as) {
			if rec.c.Conversation != "" && events.ScopeOf(rec.c.Scope) == p.Scope {
				want[rec.c.Conversation] = append(want[rec.c.Conversation], rec)
			}
		}
		docs := map[string]uint32{}
		w.OK(r.view.State.Docs(p.ID, p.NextDoc, func(doc uint32, d projections.Doc) (bool, error) {
			if d.Living() {
				docs[d.Record.String()] = doc
			}
			return true, nil
		}))
		for _, messages := range want {
			slices.SortFunc(messages, func(a, b *twinRecord) int {
				return cmp.Or(a.occurred().Compare(b.occurred()), cmp.Compare(docs[a.id], docs[b.id]))
			})
			var asked []uint32
			for _, rec := range messages {
				asked = append(asked, docs[rec.id])
			}
			around.Of(w.views.Conversations(p.ID), asked, &p, func(i int, before, after []uint32) {
				var exp []uint32
				for j := i - 1; j >= max(0, i-3); j-- {
					exp = append(exp, docs[messages[j].id])
				}
				for j := i + 1; j < min(len(messages), i+4); j++ {
					exp = append(exp, docs[messages[j].id])
				}
				if got := slices.Concat(before, after); !slices.Equal(got, exp) {
					t.Fatalf("seed %d as %q: around %s: %v, want %v", seed, as, messages[i].id, got, exp)
				}
			})
		}
	}
}

// TestOnlyVisibleDocumentsContribute: what a reader may not see, or what was
// forgotten or revised, changes no score of what it sees.
func TestOnlyVisibleDocumentsContribute(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	w.chatter("team", 10)
	at := time.Date(2023, 5, 8, 10, 0, 0, 0, time.UTC)
	line := func(i int, agent, text string, scope memory.Scope) memory.Capture {
		return memory.Capture{Agent: agent, Text: text, Conversation: "trip", Scope: scope, OccurredAt: ptr(at.Add(time.Duration(i) * time.Second))}
	}
	ids := w.Capture("team", line(0, "ann", "we talked about the budget", ""), line(3, "bob", "yes, as always", ""), line(4, "ann", "holiday plans are done", ""))
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
	w.Capture("team", line(1, "mallory", "the holiday treasure lies beneath the plank", memory.ScopeAgent))
	if got := answer(""); got != before {
		t.Errorf("another's memory contributes:\n%s\nwant %s", got, before)
	}
	gone := w.Capture("team", line(2, "carl", "holiday treasure holiday treasure", ""))[0]
	if got := answer(""); got == before {
		t.Error("a memory of the team contributes nothing")
	}
	w.Forget("team", gone, "carl", events.ScopeTeam)
	if got := answer(""); got != before {
		t.Errorf("a forgotten memory contributes:\n%s\nwant %s", got, before)
	}
	w.Revise("team", ids[1], 1, line(3, "bob", "the treasure and the holiday", ""))
	w.Revise("team", ids[1], 2, line(3, "bob", "yes, as always", ""))
	scores := func() (out []string) {
		for _, h := range w.search("team", "", memory.SearchRequest{Query: "holiday treasure"}).Results {
			out = append(out, fmt.Sprint(h.ID, h.Score))
		}
		return out
	}
	revised := scores()
	w.OK(w.views.Load(context.Background()))
	if again := scores(); !slices.Equal(revised, again) {
		t.Errorf("after a load: %v, want %v", again, revised)
	}
}
