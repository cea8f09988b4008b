package ingest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"mneme/internal/eventlog/eventlogtest"
	"mneme/memory"
)

func startWorld(t testing.TB) *world {
	t.Helper()
	w := started(t, eventlogtest.NewFake())
	return w
}

func (w *world) batch(ns string, items ...memory.Capture) memory.CaptureResponse {
	w.t.Helper()
	list := make([]Item, len(items))
	for i, c := range items {
		if c.Agent == "" {
			c.Agent = "agent-1"
		}
		list[i].Capture = c
	}
	resp, err := w.writer.Capture(context.Background(), ns, list, memory.WaitApplied)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp
}

func TestSameIDInOneBatch(t *testing.T) {
	w := startWorld(t)
	before := w.writer.Counters().Events.Load()
	resp := w.batch("team-a",
		memory.Capture{ID: "K/0", Text: "the gate closes at nine"},
		memory.Capture{ID: "K/0", Text: "the gate closes at nine"},
		memory.Capture{ID: "K/0", Text: "the gate closes at ten"},
		memory.Capture{ID: "K/1", Text: "the gate closes at nine"},
	)
	r := resp.Results
	if r[0].Status != memory.StatusCreated || r[3].Status != memory.StatusCreated {
		t.Fatalf("results %+v", r)
	}
	if r[1].Status != memory.StatusDuplicate || r[1].RecordID != r[0].RecordID || r[1].Position != r[0].Position {
		t.Errorf("the repeat is %+v, the first was %+v", r[1], r[0])
	}
	if r[2].Status != memory.StatusConflict || r[2].RecordID != r[0].RecordID || r[2].Error == nil || r[2].Error.Code != memory.CodeConflict {
		t.Errorf("the other body is %+v", r[2])
	}
	if resp.Position != r[3].Position {
		t.Errorf("position of the batch is %s, of its last event %s", resp.Position, r[3].Position)
	}
	if n := w.writer.Counters().Events.Load() - before; n != 2 {
		t.Errorf("%d events were appended, want 2", n)
	}
	if w.writer.Counters().Duplicates.Load() != 1 || w.writer.Counters().Conflicts.Load() != 1 {
		t.Error("duplicates and conflicts are not counted")
	}
}

func TestSameIDFromManyAtOnce(t *testing.T) {
	w := startWorld(t)
	const n = 16
	results := make([]memory.CaptureResult, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			results[i], _ = w.try("team-a", memory.Capture{ID: "once", Text: "we meet on Tuesdays"})
		})
	}
	wg.Wait()
	created := 0
	for _, r := range results {
		switch r.Status {
		case memory.StatusCreated:
			created++
		case memory.StatusDuplicate:
		default:
			t.Fatalf("result %+v", r)
		}
		if r.RecordID != results[0].RecordID || r.Position != results[0].Position {
			t.Errorf("%+v differs from %+v", r, results[0])
		}
	}
	if created != 1 {
		t.Errorf("created %d times", created)
	}
}

func TestIDIsSpentForEver(t *testing.T) {
	w := startWorld(t)
	c := memory.Capture{ID: "k", Text: "the cat is called Ada"}
	first := w.capture("team-a", c)
	other := c
	other.Agent = "agent-2"
	if r := w.capture("team-a", other); r.Status != memory.StatusCreated || r.RecordID == first.RecordID {
		t.Errorf("another agent's id is not independent: %+v", r)
	}
	w.namespace("team-b")
	if r := w.capture("team-b", c); r.Status != memory.StatusCreated {
		t.Errorf("another namespace's id is not independent: %+v", r)
	}
	w.stop()
	w.mustStart()
	if r := w.capture("team-a", c); r.Status != memory.StatusDuplicate || r.RecordID != first.RecordID || r.Position != first.Position {
		t.Errorf("after a restart: %+v, first was %+v", r, first)
	}
	if _, err := w.writer.Forget(context.Background(), "team-a", "agent-1", first.RecordID, 0); err != nil {
		t.Fatal(err)
	}
	if r := w.capture("team-a", c); r.Status != memory.StatusDuplicate || r.RecordID != first.RecordID {
		t.Errorf("after a forget: %+v", r)
	}
	c.Text = "the cat is called Bob"
	r, err := w.try("team-a", c)
	wantCode(t, err, memory.CodeConflict)
	if r.RecordID != first.RecordID {
		t.Errorf("the conflict names %s, not %s", r.RecordID, first.RecordID)
	}
}

// A request whose sources were forgotten since could not be repeated: it was
// refused as invalid instead of being answered as a duplicate.
func TestRepeatAfterSourceWasForgotten(t *testing.T) {
	w := startWorld(t)
	src := w.capture("team-a", memory.Capture{Text: "Ada is ill", Subject: "ada"})
	c := memory.Capture{ID: "d", Text: "somebody is ill", DerivedFrom: []string{src.RecordID}}
	first := w.capture("team-a", c)
	if _, err := w.writer.Forget(context.Background(), "team-a", "agent-1", src.RecordID, 0); err != nil {
		t.Fatal(err)
	}
	if r := w.capture("team-a", c); r.Status != memory.StatusDuplicate || r.RecordID != first.RecordID {
		t.Errorf("repeat: %+v", r)
	}
	c.ID = "d2"
	_, err := w.try("team-a", c)
	wantCode(t, err, memory.CodeInvalid)
	text := "somebody was ill"
	if _, err := w.writer.Revise(context.Background(), "team-a", "agent-1", first.RecordID, memory.Revision{Text: &text}, 0, ""); err != nil {
		t.Errorf("a revision has to find a source that is gone: %v", err)
	}
	w.refold()
}

// An id whose use was erased answers gone.
func TestRepeatAfterErasureIsGone(t *testing.T) {
	w := startWorld(t)
	c := memory.Capture{ID: "e", Text: "Ada lives here", Subject: "ada"}
	w.capture("team-a", c)
	v := w.state.View()
	ns, _ := v.Namespace("team-a")
	v.Close()
	key, err := w.keys.DataKey(ns.ID, "ada")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.keys.Destroy(key.ID()); err != nil {
		t.Fatal(err)
	}
	for _, again := range []memory.Capture{c, {ID: "e", Text: "Somebody lives here"}} {
		_, err = w.try("team-a", again)
		wantCode(t, err, memory.CodeGone)
	}
}

// A revision sent again with its If-Match was answered with a conflict, and
// one sent again after another writer's revision as another request.
func TestRevisionIsIdempotent(t *testing.T) {
	w := startWorld(t)
	ctx := context.Background()
	r := w.capture("team-a", memory.Capture{Text: "one", Tags: []string{"a"}})
	other := w.capture("team-a", memory.Capture{Text: "another"})
	two, three := "two", "three"
	revise := func(id string, rev memory.Revision, ifMatch int, key string) (memory.RevisionResponse, error) {
		return w.writer.Revise(ctx, "team-a", "agent-1", id, rev, ifMatch, key)
	}
	first, err := revise(r.RecordID, memory.Revision{Text: &two}, 1, "rev")
	if err != nil || first.Version != 2 {
		t.Fatalf("%+v %v", first, err)
	}
	tags := []string{"b"}
	if _, err := revise(r.RecordID, memory.Revision{Tags: &tags}, 0, ""); err != nil {
		t.Fatal(err)
	}
	again, err := revise(r.RecordID, memory.Revision{Text: &two}, 1, "rev")
	if err != nil || again != first {
		t.Errorf("repeat gives %+v %v, first was %+v", again, err, first)
	}
	_, err = revise(r.RecordID, memory.Revision{Text: &three}, 0, "rev")
	wantCode(t, err, memory.CodeConflict)
	_, err = revise(other.RecordID, memory.Revision{Text: &two}, 0, "rev")
	wantCode(t, err, memory.CodeConflict)
	w.capture("team-a", memory.Capture{ID: "cap", Text: "one"})
	_, err = revise(r.RecordID, memory.Revision{Text: &three}, 0, "cap")
	wantCode(t, err, memory.CodeConflict)
	if text, version := w.text(r.RecordID); text != "two" || version != 3 {
		t.Errorf("record says %q at version %d", text, version)
	}
	if _, err := w.writer.Forget(ctx, "team-a", "agent-1", r.RecordID, 0); err != nil {
		t.Fatal(err)
	}
	if again, err = revise(r.RecordID, memory.Revision{Text: &two}, 1, "rev"); err != nil || again != first {
		t.Errorf("repeat after a forget gives %+v %v", again, err)
	}
	w.refold()
}

func TestRevisionsWithOneIDAtOnce(t *testing.T) {
	w := startWorld(t)
	r := w.capture("team-a", memory.Capture{Text: "zero"})
	text := "one"
	var wg sync.WaitGroup
	out := make([]memory.RevisionResponse, 8)
	errs := make([]error, 8)
	for i := range out {
		wg.Go(func() {
			out[i], errs[i] = w.writer.Revise(context.Background(), "team-a", "agent-1", r.RecordID, memory.Revision{Text: &text}, 0, "same")
		})
	}
	wg.Wait()
	for i := range out {
		if errs[i] != nil || out[i] != out[0] || out[i].Version != 2 {
			t.Errorf("revision %d: %+v %v", i, out[i], errs[i])
		}
	}
	if got := fmt.Sprint(w.texts(r.RecordID)); got != "[zero one]" {
		t.Errorf("history is %s", got)
	}
}
