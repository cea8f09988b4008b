package query

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"mneme/internal/events"
	"mneme/memory"
)

// readAll pages through audited reads and prints each.
func readAll(t *testing.T, r *Reader, req memory.AuditedReadsRequest) (out []string) {
	t.Helper()
	for {
		page, err := r.AuditedReads(context.Background(), req)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range page.Reads {
			s := fmt.Sprintf("%s %s", a.Agent, a.Scope)
			for _, g := range a.Given {
				s += fmt.Sprintf(" %s v%d", g.RecordID, g.Version)
			}
			out = append(out, s)
			if a.Position == "" || a.EventID == "" || a.ReadAt == "" || a.Namespace != "team" || a.Purpose != memory.PurposeInject || a.Consistency != memory.ConsistencyLocal {
				t.Errorf("%+v", a)
			}
		}
		if req.Cursor = page.Cursor; req.Cursor == "" {
			return out
		}
	}
}

// TestAuditedReads: newest first, by agent, record and time, in pages of any size; who may not
// see a scope sees nothing of what was given of it. Forgetting and erasing change nothing.
func TestAuditedReads(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	one := w.One("team", "ann", "one")
	own := w.Capture("team", memory.Capture{Agent: "bob", Text: "own", Scope: memory.ScopeAgent})[0]
	w.Read("team", "ann", events.ScopeTeam, one)
	w.Now = w.Now.Add(time.Minute)
	mid := w.Now
	w.Read("team", "bob", events.ScopeTeam)
	w.Read("team", "bob", events.ScopeAgent, own)
	w.Read("team", "", events.ScopeTeam, one, own)
	w.Forget("team", one, "ann", events.ScopeTeam)
	all := []string{" team " + one + " v1 " + own + " v1", "bob agent " + own + " v1", "bob team", "ann team " + one + " v1"}
	public := slices.Delete(slices.Clone(all), 1, 2)
	for limit := range 4 {
		if got := readAll(t, w.reader("team", "bob"), memory.AuditedReadsRequest{Limit: limit}); !slices.Equal(got, all) {
			t.Errorf("limit %d: %q", limit, got)
		}
		for _, as := range []string{"", "ann"} {
			if got := readAll(t, w.reader("team", as), memory.AuditedReadsRequest{Limit: limit}); !slices.Equal(got, public) {
				t.Errorf("limit %d as %q: %q", limit, as, got)
			}
		}
	}
	for name, c := range map[string]struct {
		req  memory.AuditedReadsRequest
		want []string
	}{
		"agent":  {memory.AuditedReadsRequest{Agent: "bob"}, all[1:3]},
		"record": {memory.AuditedReadsRequest{Record: one, Limit: 1}, []string{all[0], all[3]}},
		"since":  {memory.AuditedReadsRequest{Since: &mid}, all[:3]},
		"until":  {memory.AuditedReadsRequest{Until: &mid, Limit: 1}, all[3:]},
		"both":   {memory.AuditedReadsRequest{Agent: "ann", Record: own}, nil},
	} {
		if got := readAll(t, w.reader("team", "bob"), c.req); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	for _, req := range []memory.AuditedReadsRequest{{Cursor: "odd"}, {Limit: 999}, {Cursor: "p7.0.1.0"}, {Record: "01"}, {Agent: "Bob"}} {
		if _, err := w.reader("team", "").AuditedReads(context.Background(), req); memory.CodeOf(err) == "" || memory.CodeOf(err) == memory.CodeInternal {
			t.Errorf("%+v: %v", req, err)
		}
	}
}

// TestNoteOfAnAnswer: a namespace that has reads for prompts audited wants a note of them, with
// what the answer gives of it, by scope, and of others it wants none.
func TestNoteOfAnAnswer(t *testing.T) {
	w := newWorld(t)
	w.Namespace("quiet", nil)
	w.Namespace("team", map[string]string{"audit.injections": "on"})
	id := w.One("team", "ann", "deploys happen on Tuesdays")
	own := w.Capture("team", memory.Capture{Agent: "ann", Text: "my own deploys", Scope: memory.ScopeAgent})[0]
	hits := []memory.Hit{{ID: id, Version: 1, Scope: memory.ScopeTeam}, {ID: own, Version: 2, Scope: memory.ScopeAgent}, {ID: w.NewID().String(), Namespace: "other", Version: 3}}
	inject := memory.SearchRequest{Query: "when do we deploy", Purpose: memory.PurposeInject}
	for _, c := range []struct {
		namespace string
		req       memory.SearchRequest
		want      bool
	}{{"quiet", inject, false}, {"team", memory.SearchRequest{Query: "q"}, false}, {"team", inject, true}} {
		if _, wants, err := w.reader(c.namespace, "ann").Note(c.req.Purpose, c.req.Query, "", hits); wants != c.want || err != nil {
			t.Errorf("%s, %q: %v, %v", c.namespace, c.req.Purpose, wants, err)
		}
	}
	r := w.reader("team", "ann")
	n, _, err := r.Note(inject.Purpose, inject.Query, memory.ConsistencyLinearizable, hits)
	if err != nil {
		t.Fatal(err)
	}
	at := w.State.Cursor()
	if n.Namespace != w.Space["team"] || n.Agent != "ann" || !n.Team.Linear || n.Team.Seq != at.Seq || len(n.Team.Given) != 1 || n.Team.Given[0].Record.String() != id ||
		len(n.Own.Given) != 1 || n.Own.Given[0].Version != 2 || n.Team.Query.IsZero() || n.Team.Query != n.Own.Query {
		t.Errorf("%+v: %+v, %+v", n, n.Team, n.Own)
	}
	again, _, _ := r.Note(inject.Purpose, inject.Query, "", nil)
	other, _, _ := r.Note(memory.PurposeInject, "another", "", nil)
	blank, _, _ := r.Note(memory.PurposeInject, "", "", nil)
	if again.Team.Query != n.Team.Query || other.Team.Query == n.Team.Query || !blank.Team.Query.IsZero() || again.Own != nil || len(again.Team.Given) != 0 {
		t.Errorf("%+v, %+v, %+v", again.Team, other.Team, blank.Team)
	}
}
