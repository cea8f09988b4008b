package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/query/querytest"
	"mneme/internal/query/views"
	"mneme/memory"
)

func TestAuditPages(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	w.Began(events.TypeLeaderBegan)
	w.Namespace("team", nil)
	id := w.One("team", "ann", "one")
	w.Capture("team", memory.Capture{Agent: "ann", Text: "own", Scope: memory.ScopeAgent})
	w.Apply(&querytest.Item{Header: events.Header{Type: events.TypeKeyCreated, Namespace: w.Space["team"]}})
	mid := w.Now.Add(time.Nanosecond)
	w.One("team", "bob", "two")
	w.Forget("team", id, "bob", events.ScopeTeam)
	w.Fold(projections.RangeFrame{Bytes: []byte("no frame at all")})
	read := func(as string, req memory.AuditRequest) []string {
		t.Helper()
		var out []string
		for {
			page, err := w.reader("team", as).Audit(ctx, req)
			w.OK(err)
			for _, row := range page.Rows {
				out = append(out, row.Type+" "+row.Agent+" "+row.Outcome)
				if row.System != (row.Namespace == "") || row.Hash == "" || row.Position == "" {
					t.Errorf("row %+v", row)
				}
			}
			if req.From = page.Cursor; req.From == "" {
				return out
			}
		}
	}
	want := []string{"leader.began  applied", "namespace.created  applied", "memory.captured ann created", "memory.captured bob created", "memory.forgotten bob forgotten", "frame.void  void"}
	for limit := range 4 {
		if got := read("", memory.AuditRequest{Limit: limit}); !slices.Equal(got, want) {
			t.Errorf("limit %d: %q", limit, got)
		}
	}
	if got := read("ann", memory.AuditRequest{}); len(got) != 7 {
		t.Errorf("as ann: %q", got)
	}
	if got := read("", memory.AuditRequest{Actor: "bob"}); !slices.Equal(got, want[3:5]) {
		t.Errorf("by bob: %q", got)
	}
	if got := read("", memory.AuditRequest{Type: "memory.captured", Limit: 1}); !slices.Equal(got, want[2:4]) {
		t.Errorf("captures: %q", got)
	}
	if got := read("", memory.AuditRequest{Since: &mid}); !slices.Equal(got, want[3:]) {
		t.Errorf("since: %q", got)
	}
	if got := read("", memory.AuditRequest{Until: &mid}); !slices.Equal(got, want[:3]) {
		t.Errorf("until: %q", got)
	}
	for _, req := range []memory.AuditRequest{{From: "odd"}, {Type: "odd"}, {Limit: 999}, {From: "p7.0.1.0"}} {
		_, err := w.reader("team", "").Audit(ctx, req)
		wantCode(t, err, memory.CodeInvalid)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err := w.reader("team", "").Audit(ended, memory.AuditRequest{})
	wantCode(t, err, memory.CodeTimeout)
}

// TestAuditHidesARefusalsRecord: the same client id in another scope points to
// a record that the team must not hear of.
func TestAuditHidesARefusalsRecord(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	own := w.Capture("team", memory.Capture{ID: "k", Agent: "ann", Text: "own", Scope: memory.ScopeAgent})[0]
	if res := w.Apply(w.Draft("team", memory.Capture{ID: "k", Agent: "ann", Text: "public"})); res[0].Outcome != projections.OutcomeConflict {
		t.Fatalf("%+v", res)
	}
	for as, want := range map[string]string{"": "", "ann": own} {
		page, err := w.reader("team", as).Audit(context.Background(), memory.AuditRequest{})
		w.OK(err)
		if last := page.Rows[len(page.Rows)-1]; last.Outcome != "conflict" || last.RecordID != want {
			t.Errorf("as %q: %+v", as, last)
		}
	}
}

func TestEvents(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	ctx := context.Background()
	at := time.Date(2023, 5, 1, 0, 0, 0, 0, time.UTC)
	id := w.Capture("team", memory.Capture{ID: "k", Agent: "ann", Text: "one", OccurredAt: &at})[0]
	first := w.Position()
	w.Revise("team", id, 1, memory.Capture{Agent: "bob", Text: "two"})
	w.Capture("team", memory.Capture{Agent: "ann", Text: "own", Scope: memory.ScopeAgent})
	w.Forget("team", id, "ann", events.ScopeTeam)
	read := func(as, from string) (out []memory.Event) {
		t.Helper()
		w.OK(w.svc.Events(ctx, "team", as, from, false, func(e memory.Event) error { out = append(out, e); return nil }))
		return out
	}
	all := read("", "")
	if len(all) != 4 || len(read("ann", "")) != 5 || len(read("", first)) != 2 {
		t.Fatalf("%+v", all)
	}
	e := all[1]
	if e.SpecVersion != "1.0" || e.Type != "io.mneme.memory.captured.v1" || e.Source != "/namespaces/team/agents/ann" || e.Subject != id ||
		!e.Time.Equal(at) || e.Position != first || string(e.Data) != `{"id":"k","agent":"ann","text":"one","kind":"other","scope":"team","occurred_at":"2023-05-01T00:00:00Z"}` {
		t.Errorf("%+v %s", e, e.Data)
	}
	if e := all[3]; e.Type != "io.mneme.memory.forgotten.v1" || string(e.Data) != `{"record_id":"`+id+`"}` {
		t.Errorf("%+v %s", e, e.Data)
	}
	if e := all[0]; e.Type != "io.mneme.namespace.created.v1" || e.Source != "/namespaces/team" {
		t.Errorf("%+v", e)
	}
	stop := errors.New("stop")
	if err := w.svc.Events(ctx, "team", "", "", false, func(memory.Event) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("yield's error became %v", err)
	}
}

// TestFollow reads along while others write: in order, no gaps, no repeats.
func TestFollow(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	const n = 600 // more than one batch
	got, done := make(chan string, n), make(chan error, 1)
	go func() {
		done <- w.svc.Events(ctx, "team", "", w.Position(), true, func(e memory.Event) error { got <- e.Subject; return nil })
	}()
	var want []string
	for i := 0; i < n; i += 50 {
		var batch []memory.Capture
		for j := range 50 {
			batch = append(batch, memory.Capture{Agent: "ann", Text: fmt.Sprint(i + j)})
		}
		want = append(want, w.Capture("team", batch...)...)
		w.Capture("team", memory.Capture{Agent: "ann", Text: "own", Scope: memory.ScopeAgent})
	}
	for i := range want {
		if id := <-got; id != want[i] {
			t.Fatalf("event %d is about %s, want %s", i, id, want[i])
		}
	}
	w.Drop("team")
	if err := <-done; memory.CodeOf(err) != memory.CodeNotFound {
		t.Errorf("after the namespace was deleted: %v", err)
	}
}

func TestFollowEnds(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	none := func(memory.Event) error { return errors.New("nothing was to come") }
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	wantCode(t, w.svc.Events(ctx, "team", "", "", true, none), memory.CodeTimeout)
	wantCode(t, w.svc.Events(ctx, "none", "", "", true, none), memory.CodeNotFound)
	wantCode(t, w.svc.Events(ctx, "team", "", "odd", true, none), memory.CodeInvalid)
	wantCode(t, w.svc.Events(ctx, "team", "", "p0.9.99.0", true, none), memory.CodeStalePosition)
	wantCode(t, w.svc.Events(ctx, "team", "", "p0.9.1.0", true, none), memory.CodeLostPosition)
	w.OK(w.views.Close())
	wantCode(t, w.svc.Events(context.Background(), "team", "", "", true, none), memory.CodeUnavailable)
}

func TestFeedEvents(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	w.Capture("team", memory.Capture{Agent: "ann", Text: "one"}, memory.Capture{Agent: "ann", Text: "own", Scope: memory.ScopeAgent})
	w.Drop("team")
	var got []string
	for _, a := range w.Applied {
		w.OK(w.svc.FeedEvents(a, nil, func(subject string, e memory.Event) error {
			got = append(got, subject)
			if e.Position == "" {
				t.Errorf("%+v has no position", e)
			}
			return nil
		}))
	}
	want := []string{"mem.feed.team.team.created", "mem.feed.team.team.captured", "mem.feed.team.agent.ann.captured", "mem.feed.team.team.deleted"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	stop := errors.New("stop")
	if err := w.svc.FeedEvents(w.Applied[0], nil, func(string, memory.Event) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("yield's error became %v", err)
	}
}

func TestZeroCapabilityOpensNothing(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	v := w.State.View()
	defer v.Close()
	var c views.Capability
	if parts := c.Partitions(v); len(parts) != 0 {
		t.Errorf("%v", parts)
	}
	for _, scope := range []events.Scope{events.ScopeNone, events.ScopeTeam, events.ScopeAgent} {
		if c.Sees(scope, "") {
			t.Errorf("sees scope %d", scope)
		}
	}
	if mayAudit(c, zeroID, &projections.AuditRow{Type: events.TypeLeaderBegan}) {
		t.Error("sees system rows")
	}
}
