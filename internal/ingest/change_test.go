package ingest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"mneme/internal/eventlog/eventlogtest"
	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/settings"
	"mneme/memory"
)

func TestURIs(t *testing.T) {
	w := startWorld(t)
	ctx := context.Background()
	first := w.capture("team-a", memory.Capture{Text: "v1", URI: "notes/door"})
	r, err := w.try("team-a", memory.Capture{Text: "v2", URI: "mem://team-a/notes/door"})
	if e := wantCode(t, err, memory.CodeConflict); e.Hint == "" || r.RecordID != first.RecordID {
		t.Errorf("conflict %+v, hint %q", r, e.Hint)
	}
	_, err = w.try("team-a", memory.Capture{Text: "v2", URI: "mem://team-b/notes/door"})
	wantCode(t, err, memory.CodeInvalid)
	private := w.capture("team-a", memory.Capture{Text: "mine", URI: "notes/door", Scope: memory.ScopeAgent})
	if private.Status != memory.StatusCreated {
		t.Errorf("a private uri collides with the team's: %+v", private)
	}
	in := w.batch("team-a", memory.Capture{Text: "a", URI: "notes/win"}, memory.Capture{Text: "b", URI: "notes/win"}).Results
	if in[0].Status != memory.StatusCreated || in[1].Status != memory.StatusConflict || in[1].RecordID != in[0].RecordID {
		t.Errorf("in one batch: %+v", in)
	}
	uri := "notes/door"
	before := w.writer.Counters().Events.Load()
	_, err = w.writer.Revise(ctx, "team-a", "agent-1", in[0].RecordID, memory.Revision{URI: &uri}, 0, "")
	wantCode(t, err, memory.CodeConflict)
	if w.writer.Counters().Events.Load() != before {
		t.Error("a conflict was appended")
	}
	if _, err := w.writer.Forget(ctx, "team-a", "agent-1", first.RecordID, 0); err != nil {
		t.Fatal(err)
	}
	if _, err = w.writer.Revise(ctx, "team-a", "agent-1", in[0].RecordID, memory.Revision{URI: &uri}, 0, ""); err != nil {
		t.Errorf("a forgotten record's uri is not free: %v", err)
	}
	if r := w.capture("team-a", memory.Capture{Text: "c", URI: "notes/win"}); r.Status != memory.StatusCreated {
		t.Errorf("the uri that a revision left is not free: %+v", r)
	}
	w.refold()
}

// TestCapturesSwitchedOff: a namespace that has switched captures off takes neither them nor
// revisions, and goes on forgetting; other namespaces notice nothing.
func TestCapturesSwitchedOff(t *testing.T) {
	w := startWorld(t)
	ctx := context.Background()
	if _, err := w.writer.CreateNamespace(ctx, "team-b", nil, ""); err != nil {
		t.Fatal(err)
	}
	sent := memory.Capture{ID: "sent-once", Text: "there before"}
	r := w.capture("team-a", sent)
	turn := func(to string) {
		t.Helper()
		if _, err := w.writer.ChangeNamespace(ctx, "team-a", memory.PatchNamespace{Settings: map[string]*string{settings.Captures: &to}}); err != nil {
			t.Fatal(err)
		}
	}
	turn(settings.Off)
	before := w.writer.Counters().Events.Load()
	_, err := w.try("team-a", memory.Capture{Text: "flood"})
	if e := wantCode(t, err, memory.CodeForbidden); !strings.Contains(e.Hint, "who operates the node") {
		t.Errorf("hint %q", e.Hint)
	}
	text := "flood"
	_, err = w.writer.Revise(ctx, "team-a", "agent-1", r.RecordID, memory.Revision{Text: &text}, 0, "")
	wantCode(t, err, memory.CodeForbidden)
	// What is there already is told to whoever sends it again, alone and beside what is refused.
	if again := w.capture("team-a", sent); again.Status != memory.StatusDuplicate || again.RecordID != r.RecordID || again.Position != r.Position {
		t.Errorf("sent again: %+v, first %+v", again, r)
	}
	sent.Agent = "agent-1"
	resp, err := w.writer.Capture(ctx, "team-a", []Item{{Capture: sent}, {Capture: memory.Capture{ID: "never-sent", Agent: "agent-1", Text: "flood"}}}, memory.WaitApplied)
	if err != nil || resp.Results[0].Status != memory.StatusDuplicate || resp.Results[1].Error == nil || resp.Results[1].Error.Code != memory.CodeForbidden {
		t.Errorf("%+v, %v", resp, err)
	}
	if w.writer.Counters().Events.Load() != before {
		t.Error("something was appended")
	}
	if r := w.capture("team-b", memory.Capture{Text: "others go on"}); r.Status != memory.StatusCreated {
		t.Errorf("%+v", r)
	}
	if _, err := w.writer.Forget(ctx, "team-a", "agent-1", r.RecordID, 0); err != nil {
		t.Error(err)
	}
	turn(settings.On)
	if r := w.capture("team-a", memory.Capture{Text: "again"}); r.Status != memory.StatusCreated {
		t.Errorf("%+v", r)
	}
	w.refold()
}

func TestRevisionsAtOnceLoseNothing(t *testing.T) {
	w := startWorld(t)
	r := w.capture("team-a", memory.Capture{Text: "start"})
	const writers, each = 8, 4
	var wg sync.WaitGroup
	var mu sync.Mutex
	made := map[int]string{1: "start"}
	for g := range writers {
		wg.Go(func() {
			for i := range each {
				text := fmt.Sprintf("writer %d revision %d", g, i)
				for {
					resp, err := w.writer.Revise(context.Background(), "team-a", "agent-1", r.RecordID, memory.Revision{Text: &text}, 0, "")
					if memory.CodeOf(err) == memory.CodeConflict && err != nil {
						continue // gave way too often
					}
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					if old, twice := made[resp.Version]; twice {
						t.Errorf("version %d is both %q and %q", resp.Version, old, text)
					}
					made[resp.Version] = text
					mu.Unlock()
					break
				}
			}
		})
	}
	wg.Wait()
	texts := w.texts(r.RecordID)
	if len(texts) != writers*each+1 {
		t.Fatalf("%d versions, want %d", len(texts), writers*each+1)
	}
	for v, text := range made {
		if texts[v-1] != text {
			t.Errorf("version %d is %q, its writer was told of %q", v, texts[v-1], text)
		}
	}
}

func TestIfMatchUnderConcurrency(t *testing.T) {
	w := startWorld(t)
	r := w.capture("team-a", memory.Capture{Text: "start"})
	const writers = 8
	for round := 1; round <= 3; round++ {
		var wg sync.WaitGroup
		won := make([]bool, writers)
		for g := range writers {
			wg.Go(func() {
				text := fmt.Sprintf("round %d writer %d", round, g)
				resp, err := w.writer.Revise(context.Background(), "team-a", "agent-1", r.RecordID, memory.Revision{Text: &text}, round, "")
				won[g] = err == nil
				if err == nil && resp.Version != round+1 || err != nil && memory.CodeOf(err) != memory.CodeConflict {
					t.Errorf("%+v %v", resp, err)
				}
			})
		}
		wg.Wait()
		if n := len(slices.DeleteFunc(won, func(b bool) bool { return !b })); n != 1 {
			t.Errorf("round %d was won by %d", round, n)
		}
	}
}

// A forget with If-Match that was admitted before a revision, and decided after
// it, took the new version with it.
func TestForgetWithIfMatchDoesNotTakeANewerVersion(t *testing.T) {
	g := newGate()
	w := started(t, g)
	r := w.capture("team-a", memory.Capture{Text: "one"})
	entered, let := g.shut()
	text := "two"
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := w.writer.Revise(context.Background(), "team-a", "agent-1", r.RecordID, memory.Revision{Text: &text}, 0, ""); err != nil {
			t.Error(err)
		}
	})
	<-entered
	var err error
	wg.Go(func() {
		_, err = w.writer.Forget(context.Background(), "team-a", "agent-1", r.RecordID, 1)
	})
	// The forget is taken and waits for the revision in flight.
	await(t, "the forget to be taken", func() bool {
		w.writer.queue.mu.Lock()
		defer w.writer.queue.mu.Unlock()
		return w.writer.queue.items == 0 && w.writer.queue.out != nil
	})
	let()
	wg.Wait()
	wantCode(t, err, memory.CodeConflict)
	if got, v := w.text(r.RecordID); got != "two" || v != 2 {
		t.Errorf("the record says %q at version %d", got, v)
	}
	if _, err := w.writer.Forget(context.Background(), "team-a", "agent-1", r.RecordID, 1); memory.CodeOf(err) != memory.CodeConflict {
		t.Errorf("a stale If-Match: %v", err)
	}
	if _, err := w.writer.Forget(context.Background(), "team-a", "agent-1", r.RecordID, 2); err != nil {
		t.Error(err)
	}
}

func TestWhatCannotBeChanged(t *testing.T) {
	w := startWorld(t)
	ctx := context.Background()
	text := "x"
	rev := memory.Revision{Text: &text}
	private := w.capture("team-a", memory.Capture{Agent: "agent-2", Text: "secret", Scope: memory.ScopeAgent})
	team := w.capture("team-a", memory.Capture{Agent: "agent-2", Text: "shared"})
	gone := w.capture("team-a", memory.Capture{Text: "gone"})
	if _, err := w.writer.Forget(ctx, "team-a", "agent-1", gone.RecordID, 0); err != nil {
		t.Fatal(err)
	}
	w.namespace("team-b")
	for _, c := range []struct {
		name, ns, as, id string
		code             memory.Code
	}{
		{"another agent's", "team-a", "agent-1", private.RecordID, memory.CodeNotFound},
		{"another namespace's", "team-b", "agent-2", team.RecordID, memory.CodeNotFound},
		{"a forgotten one", "team-a", "agent-1", gone.RecordID, memory.CodeNotFound},
		{"no id", "team-a", "agent-1", "door", memory.CodeInvalid},
		{"nobody", "team-a", "", team.RecordID, memory.CodeInvalid},
		{"no such namespace", "team-x", "agent-1", team.RecordID, memory.CodeNotFound},
		{"no namespace", "", "agent-1", team.RecordID, memory.CodeInvalid},
	} {
		if _, err := w.writer.Revise(ctx, c.ns, c.as, c.id, rev, 0, ""); memory.CodeOf(err) != c.code {
			t.Errorf("revise %s: %v, want %s", c.name, err, c.code)
		}
		if _, err := w.writer.Forget(ctx, c.ns, c.as, c.id, 0); memory.CodeOf(err) != c.code {
			t.Errorf("forget %s: %v, want %s", c.name, err, c.code)
		}
	}
	if got, _ := w.text(private.RecordID); got != "secret" {
		t.Errorf("the private record says %q", got)
	}
	if _, err := w.writer.Revise(ctx, "team-a", "agent-1", team.RecordID, rev, 0, ""); err != nil {
		t.Errorf("a colleague may revise what is the team's: %v", err)
	}
	empty := ""
	_, err := w.writer.Revise(ctx, "team-a", "agent-1", team.RecordID, memory.Revision{Text: &empty}, 0, "")
	wantCode(t, err, memory.CodeInvalid)
}

func TestRevisionKeepsWhatItDoesNotName(t *testing.T) {
	w := startWorld(t)
	imp := 0.5
	r := w.capture("team-a", memory.Capture{Text: "one", URI: "a/b", Tags: []string{"t"}, Role: "user", Conversation: "c", Subject: "ada", Importance: &imp})
	text, kind, role, conv := "two", memory.KindFact, "assistant", "d"
	if _, err := w.writer.Revise(context.Background(), "team-a", "agent-2", r.RecordID, memory.Revision{Text: &text}, 0, ""); err != nil {
		t.Fatal(err)
	}
	more := 0.9
	if _, err := w.writer.Revise(context.Background(), "team-a", "agent-2", r.RecordID,
		memory.Revision{Kind: &kind, Role: &role, Conversation: &conv, Importance: &more}, 0, ""); err != nil {
		t.Fatal(err)
	}
	v := w.state.View()
	defer v.Close()
	h, _ := w.find(v, r.RecordID)
	doc, _, _ := v.Doc(h.Partition, h.Doc)
	c := w.content(v, doc.At)
	if c.Text != "two" || c.URI != "mem://team-a/a/b" || !slices.Equal(c.Tags, []string{"t"}) || c.Role != role || c.Conversation != conv || c.Subject != "ada" || *c.Importance != more {
		t.Errorf("content is %+v", c)
	}
	first, _ := events.ParseID(r.RecordID)
	p, _ := v.PartitionByID(h.Partition)
	list, _ := v.History(p.Namespace, first)
	for _, e := range list {
		env, _, _ := v.Envelope(e.At)
		a, _, _ := v.Envelope(list[0].At)
		if env.Key != a.Key {
			t.Error("a version is sealed under another key")
		}
	}
}

func TestLineageInheritsKeys(t *testing.T) {
	w := startWorld(t)
	ada := w.capture("team-a", memory.Capture{Text: "Ada is tall", Subject: "ada"})
	bob := w.capture("team-a", memory.Capture{Text: "Bob is small", Subject: "bob"})
	plain := w.capture("team-a", memory.Capture{Text: "nobody is here"})
	header := func(id string) events.Header {
		v := w.state.View()
		defer v.Close()
		h, _ := w.find(v, id)
		doc, _, _ := v.Doc(h.Partition, h.Doc)
		env, _, err := v.Envelope(doc.At)
		if err != nil {
			t.Fatal(err)
		}
		return env.Header
	}
	derived := func(ids ...string) events.Header {
		return header(w.capture("team-a", memory.Capture{Text: "derived", DerivedFrom: ids}).RecordID)
	}
	a, b := header(ada.RecordID), header(bob.RecordID)
	if got := derived(ada.RecordID, plain.RecordID); got.Key != a.Key {
		t.Error("what is derived from one subject is not sealed under its key")
	}
	if got := derived(plain.RecordID); got.Key != header(plain.RecordID).Key {
		t.Error("what is derived from no subject has another key")
	}
	both := derived(ada.RecordID, bob.RecordID)
	want, err := w.keys.Combine([]keyring.KeyID{a.Key, b.Key})
	if err != nil || keyring.KeyID(both.Key) != want.ID() {
		t.Errorf("what is derived from two subjects: %v %v", both.Key, err)
	}
	own := header(w.capture("team-a", memory.Capture{Text: "own", Subject: "bob", DerivedFrom: []string{ada.RecordID}}).RecordID)
	if keyring.KeyID(own.Key) != want.ID() {
		t.Error("naming Bob keeps what is derived from Ada: it is not sealed under both their keys")
	}
	for _, id := range []string{"nonsense", "01ARZ3NDEKTSV4RRFFQ69G5FAV"} {
		_, err := w.try("team-a", memory.Capture{Text: "x", DerivedFrom: []string{id}})
		wantCode(t, err, memory.CodeInvalid)
	}
	hidden := w.capture("team-a", memory.Capture{Agent: "agent-2", Text: "secret", Scope: memory.ScopeAgent})
	_, err = w.try("team-a", memory.Capture{Text: "x", DerivedFrom: []string{hidden.RecordID}})
	wantCode(t, err, memory.CodeInvalid)
	// Erasing one of two takes what is about both.
	if err := w.keys.Destroy(a.Key); err != nil {
		t.Fatal(err)
	}
	if _, err := w.keys.KeyByID(both.Key); !settings.IsErased(err) {
		t.Errorf("the combined key outlives its member: %v", err)
	}
	text := "taller"
	_, err = w.writer.Revise(context.Background(), "team-a", "agent-1", ada.RecordID, memory.Revision{Text: &text}, 0, "")
	wantCode(t, err, memory.CodeGone)
}

// Two requests about a new subject at once: the one that did not make the key
// could get into the log before key.created.
func TestKeyCreatedComesFirst(t *testing.T) {
	w := startWorld(t)
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			if _, err := w.try("team-a", memory.Capture{Text: "about somebody", Subject: fmt.Sprint("s", i%6)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	v := w.state.View()
	defer v.Close()
	told := map[[16]byte]bool{}
	for _, row := range w.audit("team-a") {
		env, _, err := v.Envelope(row.At)
		if err != nil {
			t.Fatal(err)
		}
		switch row.Type {
		case events.TypeKeyCreated:
			if told[env.Key] {
				t.Error("a key was told of twice")
			}
			told[env.Key] = true
		case events.TypeCaptured:
			if !told[env.Key] {
				t.Errorf("%v is sealed under a key that the log has not told of", row.At)
			}
		}
	}
	if len(told) != 6 {
		t.Errorf("%d keys were made", len(told))
	}
}

// A key.created that the log refused was never written: the key was there when
// the subject came again.
func TestKeyCreatedIsMadeUpFor(t *testing.T) {
	f := eventlogtest.NewFake()
	w := started(t, f)
	f.Inject(eventlogtest.FaultRefuse, eventlogtest.FaultRefuse)
	_, err := w.try("team-a", memory.Capture{Text: "about Ada", Subject: "ada"})
	if err == nil { // two frames: the second one was not refused
		t.Log("the capture found a way")
	}
	f.Inject()
	for f.Bit()[eventlogtest.FaultRefuse] < 2 {
		_, _ = w.try("team-a", memory.Capture{Text: "more about Ada", Subject: "ada"})
	}
	if r := w.capture("team-a", memory.Capture{Text: "yet more about Ada", Subject: "ada"}); r.Status != memory.StatusCreated {
		t.Fatalf("%+v", r)
	}
	n := 0
	for _, row := range w.audit("team-a") {
		if row.Type == events.TypeKeyCreated {
			n++
		}
	}
	if n == 0 {
		t.Error("the log never told of the key")
	}
}

func TestNamespaces(t *testing.T) {
	w := newWorld(t, eventlogtest.NewFake())
	w.mustStart()
	ctx := context.Background()
	create := func(name string, set map[string]string) error {
		_, err := w.writer.CreateNamespace(ctx, name, set, "")
		return err
	}
	if err := create("team-a", map[string]string{settings.MinScore: "0.2"}); err != nil {
		t.Fatal(err)
	}
	wantCode(t, create("team-a", nil), memory.CodeConflict)
	wantCode(t, create("Team A!", nil), memory.CodeInvalid)
	wantCode(t, create("team-b", map[string]string{"nonsense": "1"}), memory.CodeInvalid)
	of := func() *settings.Effective {
		v := w.state.View()
		defer v.Close()
		ns, ok := v.Namespace("team-a")
		if !ok {
			t.Fatal("the namespace is gone")
		}
		e, err := w.writer.opt.Settings.Of(v, ns)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	if of().MinScore != 0.2 {
		t.Error("settings of the creation are lost")
	}
	half := "0.5"
	change := func(name string, set map[string]*string) error {
		_, err := w.writer.ChangeNamespace(ctx, name, memory.PatchNamespace{Settings: set})
		return err
	}
	if err := change("team-a", map[string]*string{settings.MinScore: &half}); err != nil || of().MinScore != 0.5 {
		t.Errorf("%v, %v", err, of().MinScore)
	}
	if err := change("team-a", map[string]*string{settings.MinScore: nil}); err != nil || of().MinScore == 0.5 {
		t.Errorf("reset: %v, %v", err, of().MinScore)
	}
	wantCode(t, change("team-a", map[string]*string{"nonsense": &half}), memory.CodeInvalid)
	wantCode(t, change("team-a", map[string]*string{"nonsense": nil}), memory.CodeInvalid)
	wantCode(t, change("team-x", map[string]*string{settings.MinScore: &half}), memory.CodeNotFound)

	w.capture("team-a", memory.Capture{ID: "k", Text: "old"})
	old := w.audit("team-a")
	v := w.state.View()
	ns, _ := v.Namespace("team-a")
	v.Close()
	if _, _, err := w.writer.DeleteNamespace(ctx, "team-a"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.keys.Namespace(ns.ID); !settings.IsErased(err) {
		t.Errorf("the keys of a deleted namespace are there: %v", err)
	}
	_, _, err := w.writer.DeleteNamespace(ctx, "team-a")
	wantCode(t, err, memory.CodeNotFound)
	_, err = w.try("team-a", memory.Capture{Text: "x"})
	if e := wantCode(t, err, memory.CodeNotFound); e.Hint == "" {
		t.Error("no hint how to make the namespace")
	}
	if err := create("team-a", nil); err != nil {
		t.Fatal(err)
	}
	if r := w.capture("team-a", memory.Capture{ID: "k", Text: "new"}); r.Status != memory.StatusCreated {
		t.Errorf("a reused name does not start empty: %+v", r)
	}
	if len(old) == 0 {
		t.Error("no audit")
	}
	w.refold()
}

func TestDestroyEndedMakesACrashGood(t *testing.T) {
	w := startWorld(t)
	w.capture("team-a", memory.Capture{Text: "x"})
	w.namespace("team-b")
	v := w.state.View()
	ns, _ := v.Namespace("team-a")
	other, _ := v.Namespace("team-b")
	v.Close()
	// The event is applied, and then the node is gone.
	res, err := w.writer.submit(context.Background(), newDraft(events.Header{Type: events.TypeNamespaceDeleted, Event: w.writer.ids.New(), Namespace: ns.ID}))
	if err != nil || res.Outcome != projections.OutcomeApplied {
		t.Fatal(res, err)
	}
	w.stop()
	w.mustStart()
	for range 2 {
		if err := w.writer.Erasing().DestroyEnded(); err != nil {
			t.Fatal(err)
		}
		if _, err := w.keys.Namespace(ns.ID); !settings.IsErased(err) {
			t.Errorf("keys are still there: %v", err)
		}
	}
	if _, err := w.keys.Namespace(other.ID); err != nil {
		t.Errorf("another namespace's keys: %v", err)
	}
	w.refold()
}

// Captures that are decided behind the end of their namespace are refused.
func TestCapturesBehindADeletion(t *testing.T) {
	g := newGate()
	w := started(t, g)
	entered, let := g.shut()
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, _, err := w.writer.DeleteNamespace(context.Background(), "team-a"); err != nil {
			t.Error(err)
		}
	})
	<-entered
	for i := range 3 {
		wg.Go(func() {
			_, err := w.try("team-a", memory.Capture{ID: fmt.Sprint(i), Text: "too late"})
			wantCode(t, err, memory.CodeNotFound)
		})
	}
	await(t, "captures to be decided", func() bool { return w.writer.flight.count() > 1 })
	let()
	wg.Wait()
	w.refold()
}
