package ingest

import (
	"context"
	"fmt"
	"testing"

	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/settings"
	"mneme/memory"
)

// subjectKey finds the key of a subject of team-a.
func (w *world) subjectKey(subject string) (events.ID, keyring.KeyID) {
	w.t.Helper()
	v := w.state.View()
	defer v.Close()
	ns, _ := v.Namespace("team-a")
	d, err := w.keys.DataKey(ns.ID, subject)
	if err != nil {
		w.t.Fatal(err)
	}
	return ns.ID, d.ID()
}

// records counts team-a's living records.
func (w *world) records() uint64 {
	v := w.state.View()
	defer v.Close()
	ns, _ := v.Namespace("team-a")
	return v.NamespaceTotals(ns.ID).Records
}

func TestErase(t *testing.T) {
	w := startWorld(t)
	ada := w.capture("team-a", memory.Capture{ID: "a", Text: "Ada likes tea", Subject: "ada"})
	bob := w.capture("team-a", memory.Capture{ID: "b", Text: "Bob likes tea", Subject: "bob"})
	w.capture("team-a", memory.Capture{Text: "both like tea", Subject: "bob", DerivedFrom: []string{ada.RecordID}})
	ns, key := w.subjectKey("ada")
	_, err := w.writer.Erasing().Erase(context.Background(), "team-a", "nobody")
	wantCode(t, err, memory.CodeNotFound)
	_, err = w.writer.Erasing().Erase(context.Background(), "team-a", "") // the namespace's own key
	wantCode(t, err, memory.CodeNotFound)
	if n := w.records(); n != 3 {
		t.Fatalf("%d records", n)
	}
	for range 2 {
		if _, err := w.writer.Erasing().Erase(context.Background(), "team-a", "ada"); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.records(); n != 1 {
		t.Errorf("%d records are left, Bob's alone should be", n)
	}
	if _, err := w.keys.KeyByID(key); !settings.IsErased(err) {
		t.Errorf("the key lives: %v", err)
	}
	r, err := w.try("team-a", memory.Capture{ID: "a", Text: "Ada likes tea", Subject: "ada"})
	if err == nil || memory.CodeOf(err) != memory.CodeGone {
		t.Errorf("an id that was used for what is erased: %+v %v", r, err)
	}
	text := "more"
	_, err = w.writer.Revise(context.Background(), "team-a", "agent-1", ada.RecordID, memory.Revision{Text: &text}, 0, "")
	wantCode(t, err, memory.CodeGone)
	if r := w.capture("team-a", memory.Capture{ID: "b", Text: "Bob likes tea", Subject: "bob"}); r.Status != memory.StatusDuplicate || r.RecordID != bob.RecordID {
		t.Errorf("Bob's is %+v", r)
	}
	// Who is spoken of again begins anew, under another key.
	w.capture("team-a", memory.Capture{Text: "somebody else of that name", Subject: "ada"})
	if again, now := w.subjectKey("ada"); again != ns || now == key {
		t.Error("the key came back")
	}
	w.refold()
}

// A crash between the event and the destruction, and a keyring that is newer than
// the log.
func TestErasingIsFinished(t *testing.T) {
	w := startWorld(t)
	for i := range 4 {
		w.capture("team-a", memory.Capture{Text: fmt.Sprint("memory ", i), Subject: []string{"ada", "bob"}[i%2]})
	}
	ns, ada := w.subjectKey("ada")
	_, bob := w.subjectKey("bob")
	if _, err := w.writer.Erasing().endKeys(context.Background(), ns, []keyring.KeyID{ada}); err != nil {
		t.Fatal(err)
	}
	if err := w.keys.Destroy(bob); err != nil {
		t.Fatal(err)
	}
	w.stop()
	w.mustStart()
	for range 2 {
		if err := w.writer.Erasing().DestroyEnded(); err != nil {
			t.Fatal(err)
		}
		if err := w.writer.Erasing().TellKeys(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.keys.KeyByID(ada); !settings.IsErased(err) {
		t.Errorf("Ada's key lives: %v", err)
	}
	if n := w.records(); n != 0 {
		t.Errorf("%d records are left", n)
	}
	v := w.state.View()
	told := 0
	if err := v.EndedKeys(func(projections.EndedKey) { told++ }); err != nil || told != 2 {
		t.Errorf("%d keys ended, %v", told, err)
	}
	v.Close()
	w.refold()
}

// A crash between the making of a subject's key and the event that says so left the
// key out of the audit for ever.
func TestKeyMadeBeforeACrashIsTold(t *testing.T) {
	w := startWorld(t)
	w.capture("team-a", memory.Capture{Text: "about Ada", Subject: "ada"})
	ns, ada := w.subjectKey("ada")
	subjects := make([]string, toldAtOnce+1)
	for i := range subjects {
		subjects[i] = fmt.Sprint("subject ", i)
	}
	made, _, err := w.keys.EnsureSubjects(ns, subjects) // and the process dies
	if err != nil {
		t.Fatal(err)
	}
	w.stop()
	w.mustStart()
	told := func(id keyring.KeyID) bool {
		v := w.state.View()
		defer v.Close()
		told, err := v.Told(ns, id)
		if err != nil {
			t.Fatal(err)
		}
		return told
	}
	if !told(ada) || told(made[0]) {
		t.Fatal("Ada's key alone is told of")
	}
	for range 2 {
		if err := w.writer.Erasing().TellKeys(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	for i, id := range made {
		if !told(id) {
			t.Fatalf("key %d is not told of", i)
		}
	}
	rows := 0
	for _, r := range w.audit("team-a") {
		if r.Type == events.TypeKeyCreated {
			rows++
		}
	}
	if want := len(made) + 1; rows != want {
		t.Errorf("%d key.created, want one for each of %d keys", rows, want)
	}
	w.refold()
}

// An older log beside newer keys gave a namespace that could neither be used, deleted
// nor made again.
func TestNamespaceWhoseKeysAreDestroyedIsDeleted(t *testing.T) {
	for name, end := range map[string]func(w *world) error{
		"told": func(w *world) error { return w.writer.Erasing().TellKeys(context.Background()) },
		"deleted": func(w *world) error {
			_, _, err := w.writer.DeleteNamespace(context.Background(), "team-a")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := startWorld(t)
			w.capture("team-a", memory.Capture{Text: "about Ada", Subject: "ada"})
			w.namespace("team-b")
			ns, ada := w.subjectKey("ada")
			if err := w.keys.DestroyNamespace(ns); err != nil {
				t.Fatal(err)
			}
			w.stop()
			w.mustStart()
			_, err := w.try("team-a", memory.Capture{Text: "x"})
			wantCode(t, err, memory.CodeNotFound)
			if err := end(w); err != nil {
				t.Fatal(err)
			}
			last := w.last()
			if err := w.writer.Erasing().TellKeys(context.Background()); err != nil || w.last() != last {
				t.Errorf("told again: %v, the log went from %d to %d", err, last, w.last())
			}
			if n := w.records(); n != 0 {
				t.Errorf("%d records are left", n)
			}
			if _, err := w.keys.KeyByID(ada); !settings.IsErased(err) {
				t.Errorf("Ada's key: %v", err)
			}
			w.namespace("team-a")
			w.capture("team-a", memory.Capture{Text: "the name begins anew"})
			w.capture("team-b", memory.Capture{Text: "another namespace goes on"})
			w.refold()
		})
	}
}
