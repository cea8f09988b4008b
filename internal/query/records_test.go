package query

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/memory"
)

func TestGetByIDAndURI(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	w.Namespace("other", nil)
	ctx := context.Background()
	at := time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)
	full := memory.Capture{ID: "k1", Agent: "ann", Text: "one", Kind: memory.KindFact, Role: "user", URI: "notes/a", Tags: []string{"x"}, Conversation: "talk",
		Subject: "jane", Importance: ptr(0.5), OccurredAt: &at, Metadata: json.RawMessage(`{"a":1}`)}
	id := w.Capture("team", full)[0]
	plain := w.Capture("team", memory.Capture{Agent: "ann", Text: "two", DerivedFrom: []string{id}})[0]
	mine := w.Capture("team", memory.Capture{Agent: "ann", Text: "mine", URI: "notes/b", Scope: memory.ScopeAgent})[0]
	r := w.reader("team", "")
	for _, name := range []string{id, "mem://team/notes/a", "notes/a", "mem://team/" + id} {
		rec, err := r.Get(ctx, name, 0)
		w.OK(err)
		if rec.RecordID != id || rec.Text != "one" || rec.URI != "mem://team/notes/a" || rec.Subject != "jane" || rec.ID != "k1" || *rec.Importance != 0.5 ||
			!rec.OccurredAt.Equal(at) || rec.Namespace != "team" || rec.Origin != memory.OriginCapture || rec.Role != "user" || string(rec.Metadata) != `{"a":1}` {
			t.Errorf("%s: %+v", name, rec)
		}
	}
	rec, err := r.Get(ctx, "mem://team/"+plain, 1)
	w.OK(err)
	if rec.URI != "mem://team/"+plain || !slices.Equal(rec.DerivedFrom, []string{id}) {
		t.Errorf("%+v", rec)
	}
	if rec, err := w.reader("team", "ann").Get(ctx, "notes/b", 0); err != nil || rec.RecordID != mine || rec.Scope != memory.ScopeAgent {
		t.Errorf("own record: %+v %v", rec, err)
	}
	for _, name := range []string{mine, "notes/b", "notes/none", w.NewID().String(), "mem://other/notes/a", "mem://team/" + mine} {
		_, err := r.Get(ctx, name, 0)
		wantCode(t, err, memory.CodeNotFound)
		_, err = r.History(ctx, name)
		wantCode(t, err, memory.CodeNotFound)
	}
	for _, name := range []string{"mem://", "a//b"} {
		_, err := r.Get(ctx, name, 0)
		wantCode(t, err, memory.CodeInvalid)
	}
	_, err = r.Get(ctx, id, -1)
	wantCode(t, err, memory.CodeInvalid)
	_, err = r.Get(ctx, id, 2)
	wantCode(t, err, memory.CodeNotFound)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = r.Get(ended, id, 0)
	wantCode(t, err, memory.CodeTimeout)
}

func TestVersionsAndHistory(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	ctx := context.Background()
	id := w.One("team", "ann", "first")
	w.Revise("team", id, 1, memory.Capture{Agent: "bob", Text: "second"})
	r := w.reader("team", "")
	for v, want := range []string{"second", "first", "second"} {
		rec, err := r.Get(ctx, id, v)
		w.OK(err)
		if rec.Text != want || v > 0 && rec.Version != v {
			t.Errorf("version %d: %+v", v, rec)
		}
	}
	w.Forget("team", id, "ann", events.ScopeTeam)
	r = w.reader("team", "")
	for v := range 3 {
		_, err := r.Get(ctx, id, v)
		wantCode(t, err, memory.CodeNotFound)
	}
	h, err := r.History(ctx, id)
	w.OK(err)
	if len(h.Versions) != 2 || len(h.Events) != 3 || !h.Versions[0].Forgotten || h.Versions[1].Text != "second" ||
		h.Events[2].Type != "memory.forgotten" || h.Events[1].Agent != "bob" || h.Events[2].Position == h.Events[1].Position {
		t.Errorf("%+v", h)
	}
	if _, err := r.Timeline(ctx, memory.TimelineRequest{ID: id, Before: ptr(1), After: ptr(1)}); memory.CodeOf(err) != memory.CodeNotFound {
		t.Errorf("timeline of a forgotten record: %v", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = r.History(ended, id)
	wantCode(t, err, memory.CodeTimeout)
}

func TestListPagesAreStable(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	ctx := context.Background()
	var ids []string
	for i := range 10 {
		scope := memory.ScopeTeam
		if i%3 == 0 {
			scope = memory.ScopeAgent
		}
		ids = append(ids, w.Capture("team", memory.Capture{Agent: "ann", Text: fmt.Sprint(i), Scope: scope})...)
	}
	var got []string
	req := memory.ListRequest{Limit: 3}
	for {
		list, err := w.reader("team", "ann").List(ctx, req)
		w.OK(err)
		for _, rec := range list.Records {
			got = append(got, rec.RecordID)
		}
		if req.Cursor = list.Cursor; req.Cursor == "" {
			break
		}
		// Others write between the pages: what was there stays in its place.
		w.One("team", "ann", "more")
		w.Revise("team", ids[1], uint32(len(got)/3), memory.Capture{Agent: "ann", Text: "again"})
	}
	slices.Reverse(ids)
	if !slices.Equal(got, ids) {
		t.Errorf("got %v\nwant %v", got, ids)
	}
	r := w.reader("team", "")
	for _, req := range []memory.ListRequest{{Limit: -1}, {Limit: 201}, {Cursor: "odd"}, {Filter: memory.Filter{Kinds: []memory.Kind{"odd"}}}, {Filter: memory.Filter{Scope: memory.ScopeAgent}}} {
		_, err := r.List(ctx, req)
		wantCode(t, err, memory.CodeInvalid)
	}
}

func FuzzListCursor(f *testing.F) {
	f.Add(encodeCursor(projections.Ref{Seq: 1, Index: 2}))
	f.Add("AQ")
	f.Add("")
	if got := encodeCursor(projections.Ref{Seq: 258, Index: 3}); got != "AQAAAAAAAAECAAAAAw" {
		f.Errorf("golden cursor is %s", got)
	}
	f.Fuzz(func(t *testing.T, s string) {
		at, err := decodeCursor(s)
		if err == nil && len(s) == 18 && encodeCursor(at) != s && encodeCursor(at)[:17] != s[:17] {
			t.Errorf("%q became %q", s, encodeCursor(at))
		}
	})
}

func TestTimeline(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	ctx := context.Background()
	day := time.Date(2023, 5, 1, 0, 0, 0, 0, time.UTC)
	add := func(text, talk string, hour int, scope memory.Scope) string {
		at := day.Add(time.Duration(hour) * time.Hour)
		return w.Capture("team", memory.Capture{Agent: "ann", Text: text, Conversation: talk, OccurredAt: &at, Scope: scope})[0]
	}
	// Written out of order, some at one moment.
	add("e", "talk", 5, "")
	anchor := add("c", "talk", 3, "")
	add("d", "talk", 3, "")
	add("a", "talk", 1, "")
	add("x", "", 2, "")
	gone := add("y", "talk", 2, "")
	add("b", "talk", 2, memory.ScopeAgent)
	lone := add("z", "", 4, "")
	w.Forget("team", gone, "ann", events.ScopeTeam)
	check := func(as, id string, before, after int, wantBefore, wantAfter string) {
		t.Helper()
		tl, err := w.reader("team", as).Timeline(ctx, memory.TimelineRequest{ID: id, Before: ptr(before), After: ptr(after)})
		w.OK(err)
		join := func(list []memory.Record) (s string) {
			for _, r := range list {
				s += r.Text
			}
			return s
		}
		if join(tl.Before) != wantBefore || join(tl.After) != wantAfter || tl.Anchor.RecordID != id {
			t.Errorf("as %q: %q, %q, want %q, %q", as, join(tl.Before), join(tl.After), wantBefore, wantAfter)
		}
	}
	check("ann", anchor, 3, 3, "ab", "de")
	check("", anchor, 3, 3, "a", "de")
	check("ann", anchor, 1, 1, "b", "d")
	check("ann", anchor, 0, 0, "", "")
	check("ann", lone, 9, 9, "axbcd", "e")
	for _, n := range []int{-1, 201} {
		_, err := w.reader("team", "").Timeline(ctx, memory.TimelineRequest{ID: anchor, Before: ptr(n), After: ptr(0)})
		wantCode(t, err, memory.CodeInvalid)
	}
}

func TestExport(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	ctx := context.Background()
	at := time.Date(2023, 5, 1, 0, 0, 0, 0, time.UTC)
	given := []memory.Capture{
		{ID: "k", Agent: "ann", Text: "a", Kind: memory.KindFact, Scope: memory.ScopeTeam, URI: "mem://team/notes/a", Tags: []string{"t"}, OccurredAt: &at},
		{Agent: "ann", Text: "b", Kind: memory.KindOther, Scope: memory.ScopeAgent},
		{Agent: "bob", Text: "c", Kind: memory.KindOther, Scope: memory.ScopeTeam},
	}
	ids := w.Capture("team", given...)
	w.Revise("team", ids[0], 1, given[0])
	var lines []memory.ExportLine
	r := w.reader("team", "ann")
	w.OK(r.Export(ctx, func(l memory.ExportLine) error { lines = append(lines, l); return nil }))
	if len(lines) != 3 || lines[0].Version != 1 && lines[0].Version != 2 {
		t.Fatalf("%+v", lines)
	}
	for i, l := range lines {
		want, _ := json.Marshal(given[i])
		got, _ := json.Marshal(l.Capture)
		if l.RecordID != ids[i] || string(got) != string(want) {
			t.Errorf("line %d is %s, want %s", i, got, want)
		}
		rec, err := r.Get(ctx, ids[i], 0)
		if err != nil || l.Origin != rec.Origin || l.Origin == "" || l.Source != rec.Source {
			t.Errorf("line %d came about by %q of %q, and the record by %q of %q, %v", i, l.Origin, l.Source, rec.Origin, rec.Source, err)
		}
	}
	stop := errors.New("stop")
	if err := r.Export(ctx, func(memory.ExportLine) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("yield's error became %v", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	wantCode(t, r.Export(ended, func(memory.ExportLine) error { return nil }), memory.CodeTimeout)
}

// TestListOfNamespacesHadNoEnd: it told of all of them at once, however many.
func TestListOfNamespacesHadNoEnd(t *testing.T) {
	w := newWorld(t)
	var want []string
	for i := range memory.DefaultPage + 3 {
		want = append(want, fmt.Sprintf("team-%02d", i))
		w.Namespace(want[i], nil)
	}
	for limit, pages := range map[int]int{0: 2, 1: len(want), 10: 6, len(want): 1, memory.MaxLimit: 1} {
		var got []string
		asked := 0
		for req := (memory.NamespacesRequest{Limit: limit}); asked == 0 || req.Cursor != ""; asked++ {
			page, err := w.svc.Namespaces(context.Background(), req)
			w.OK(err)
			if most := cmp.Or(limit, memory.DefaultPage); len(page.Namespaces) > most {
				t.Fatalf("%d on a page of %d", len(page.Namespaces), most)
			}
			for _, ns := range page.Namespaces {
				got = append(got, ns.Name)
			}
			req.Cursor = page.Cursor
		}
		if !slices.Equal(got, want) || asked != pages {
			t.Errorf("limit %d: %d pages, want %d, of %v", limit, asked, pages, got)
		}
	}
	page, err := w.svc.Namespaces(context.Background(), memory.NamespacesRequest{Cursor: "team-05-deleted", Limit: 1})
	w.OK(err)
	if len(page.Namespaces) != 1 || page.Namespaces[0].Name != "team-06" {
		t.Errorf("behind a namespace that is gone: %+v", page)
	}
	for _, bad := range []memory.NamespacesRequest{{Limit: -1}, {Limit: memory.MaxLimit + 1}, {Cursor: "No Name"}} {
		_, err := w.svc.Namespaces(context.Background(), bad)
		wantCode(t, err, memory.CodeInvalid)
	}
}

func TestNamespaces(t *testing.T) {
	w := newWorld(t)
	w.Namespace("zoo", withBuiltin("search.min_score", "0.1"))
	w.Namespace("ant", nil)
	w.One("zoo", "ann", "x")
	ctx := context.Background()
	page, err := w.svc.Namespaces(ctx, memory.NamespacesRequest{})
	w.OK(err)
	list := page.Namespaces
	if page.Cursor != "" || len(list) != 2 || list[0].Name != "ant" || list[0].Embedder.Provider != "none" || list[1].Records != 1 || list[1].StateHash == "" ||
		list[1].Settings["search.min_score"] != "0.1" || len(list[1].Settings) != 1 || list[1].Space != list[1].Embedder.Space || list[1].Position != w.Position() {
		t.Errorf("%+v", list)
	}
	_, err = w.svc.Namespace(ctx, "none")
	wantCode(t, err, memory.CodeNotFound)
	if memory.AsError(err).Hint == "" {
		t.Error("no hint")
	}
	_, err = w.svc.Namespace(ctx, "Zoo")
	wantCode(t, err, memory.CodeInvalid)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = w.svc.Namespaces(ended, memory.NamespacesRequest{})
	wantCode(t, err, memory.CodeTimeout)
	_, err = w.svc.Namespace(ended, "zoo")
	wantCode(t, err, memory.CodeTimeout)
}
