package verbs

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"mneme/internal/importer"
	"mneme/memory"
)

// TestExportDoesNotFollowALinkedMonth: what an export writes and removes lies in its folder.
func TestExportDoesNotFollowALinkedMonth(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "2016-07")); err != nil {
		t.Fatal(err)
	}
	e := &folderExport{dir: dir, before: map[string]string{}, now: map[string]string{}}
	err := e.write(memory.Record{RecordID: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Namespace: "lab", Version: 1, Text: "one"})
	if memory.CodeOf(err) != memory.CodeInvalid {
		t.Errorf("%v", err)
	}
	if found, err := os.ReadDir(outside); err != nil || len(found) != 0 {
		t.Errorf("it wrote %v, %v", found, err)
	}
}

// exported writes records as an export of what head says into a folder does.
func exported(t *testing.T, dir string, filter memory.Filter, recs ...memory.Record) folderReport {
	t.Helper()
	e := &folderExport{dir: dir, head: importer.ExportHead{Version: 1, Namespace: "lab", Filter: filter}, now: map[string]string{}}
	same, err := e.read()
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range recs {
		if err := e.write(rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.sweep(same); err != nil {
		t.Fatal(err)
	}
	if err := e.save(); err != nil {
		t.Fatal(err)
	}
	return e.report
}

// TestExportTouchesNothingElse: an export writes over no file that was edited since, removes none,
// and none of memories that it leaves out but the last one did not.
func TestExportTouchesNothingElse(t *testing.T) {
	dir := t.TempDir()
	rec := func(id, text string) memory.Record {
		return memory.Record{RecordID: id, Namespace: "lab", URI: "mem://lab/" + id, Version: 1, Text: text, Agent: "ann"}
	}
	name := func(rec memory.Record) string { return "2016-07/" + rec.RecordID + ".md" }
	a, b, c := rec("01ARZ3NDEKTSV4RRFFQ69G5FA1", "one"), rec("01ARZ3NDEKTSV4RRFFQ69G5FA2", "two"), rec("01ARZ3NDEKTSV4RRFFQ69G5FA3", "three")
	holds := func(rec memory.Record, want string) {
		t.Helper()
		got, err := os.ReadFile(filepath.Join(dir, name(rec)))
		if want == "" && !os.IsNotExist(err) || want != "" && string(got) != want {
			t.Errorf("%s holds %q, %v", name(rec), got, err)
		}
	}
	written := func(rec memory.Record) string {
		b, err := importer.FormatExported(importer.ExportOf(rec))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if r := exported(t, dir, memory.Filter{}, a, b, c); r.Written != 3 {
		t.Fatalf("%+v", r)
	}
	// Of another filter: what it leaves out stays, and is known to the next export.
	facts := memory.Filter{Kinds: []memory.Kind{memory.KindFact}}
	for range 2 {
		r := exported(t, dir, facts, a)
		exported(t, dir, memory.Filter{}, a, b, c)
		if r.Removed != 0 || r.Kept != 2 || r.Unchanged != 1 {
			t.Errorf("%+v", r)
		}
	}
	holds(b, written(b))
	// Edited since: neither written over, though the memory changed, nor removed.
	if err := os.WriteFile(filepath.Join(dir, name(a)), []byte("edited"), 0o600); err != nil {
		t.Fatal(err)
	}
	a.Text, a.Version = "one, changed", 2
	if r := exported(t, dir, memory.Filter{}, a, b); !slices.Equal(r.Edited, []string{name(a)}) || r.Removed != 1 || r.Written != 0 {
		t.Errorf("%+v", r)
	}
	holds(a, "edited")
	holds(c, "")
	if r := exported(t, dir, memory.Filter{}, b); !slices.Equal(r.Edited, []string{name(a)}) || r.Removed != 0 {
		t.Errorf("%+v", r)
	}
	holds(a, "edited")
	// A file that no export is known to have written is not written over, either.
	if err := os.WriteFile(filepath.Join(dir, name(c)), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := exported(t, dir, memory.Filter{}, b, c); !slices.Contains(r.Edited, name(c)) {
		t.Errorf("%+v", r)
	}
	holds(c, "mine")
}

// TestAnImportedEditIsWrittenAnew: a file that was edited, and whose edit was imported, is of the
// version that its memory is now, and is not named as edited for ever.
func TestAnImportedEditIsWrittenAnew(t *testing.T) {
	dir := t.TempDir()
	rec := memory.Record{RecordID: "01ARZ3NDEKTSV4RRFFQ69G5FA1", URI: "mem://lab/01ARZ3NDEKTSV4RRFFQ69G5FA1", Version: 1, Text: "one", Agent: "ann", Kind: memory.KindFact, Scope: memory.ScopeTeam,
		OccurredAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	file := filepath.Join(dir, "2016-07", rec.RecordID+".md")
	edit := func(old, changed string) {
		t.Helper()
		b, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, bytes.Replace(b, []byte(old), []byte(changed), 1), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	exported(t, dir, memory.Filter{}, rec)
	edit("\none\n", "\none, edited\n")
	if r := exported(t, dir, memory.Filter{}, rec); len(r.Edited) != 1 {
		t.Errorf("not imported: %+v", r)
	}
	rec.Version, rec.Text, rec.Agent = 2, "one, edited", "bob" // who imported it
	if r := exported(t, dir, memory.Filter{}, rec); r.Written != 1 || len(r.Edited) != 0 {
		t.Errorf("imported: %+v", r)
	}
	if r := exported(t, dir, memory.Filter{}, rec); r.Unchanged != 1 {
		t.Errorf("and again: %+v", r)
	}
	edit("kind: fact", "kind: fact\nmine: note") // what no memory holds
	rec.Version = 3
	if r := exported(t, dir, memory.Filter{}, rec); len(r.Edited) != 1 {
		t.Errorf("with a note: %+v", r)
	}
}
