package projections_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"mneme/internal/events"
	"mneme/internal/index/text"
	"mneme/internal/projections"
)

// purgedWorld is a state of one namespace whose rows lie in tables, each once, with
// a record that was forgotten and has a path.
func purgedWorld(t *testing.T) (s *projections.State, ns, forgotten events.ID, part uint32) {
	t.Helper()
	w := newWorld(t, 12)
	made := w.created("team", builtinSpace)
	w.frame(made)
	ns = made.Namespace
	for i := range 80 { // so many that terms have postings
		e := w.content(events.Header{Namespace: ns, Agent: "ann"},
			events.Content{Text: fmt.Sprint("memory of tea ", i), URI: fmt.Sprint("mem://team/", i), Tags: []string{"tea"}})
		w.frame(e)
		forgotten = e.Record
	}
	w.frame(w.forgotten(events.Header{Namespace: ns, Agent: "ann", Target: forgotten, Scope: events.ScopeTeam}))
	s = openState(t, t.TempDir())
	t.Cleanup(func() { must(t, s.Close()) })
	fold(t, w.keys, s, w.log, 10)
	view(t, s, func(v *projections.View) {
		p, ok := v.Partition(ns, events.ScopeTeam, "")
		if !ok {
			t.Fatal("no partition")
		}
		part = p.ID
	})
	must(t, projections.PartTables(s))
	must(t, s.Purge(t.Context()))
	return s, ns, forgotten, part
}

// tableRows gives how many keys with a prefix the tables hold, and how many rows.
func tableRows(t *testing.T, s *projections.State, prefix []byte) (keys, rows int) {
	t.Helper()
	byKey, err := projections.TableRows(s, prefix...)
	must(t, err)
	for _, n := range byKey {
		rows += n
	}
	return len(byKey), rows
}

// TestFormerHeadStayedInATable: a head whose path was taken out left no deletion, so
// a purge that met no other one in its table left the former head, with the path,
// in the table below. What an erasure deletes lies in tables of its own only in a
// large state; here nothing else is written.
func TestFormerHeadStayedInATable(t *testing.T) {
	s, ns, forgotten, _ := purgedWorld(t)
	head := append(projections.HeadPrefix(ns), forgotten[:]...)
	must(t, projections.ErasePath(s, ns, forgotten))
	must(t, projections.FlushTables(s))
	if _, rows := tableRows(t, s, head); rows < 2 {
		t.Fatalf("the tables hold %d rows of the head, the former one is gone already", rows)
	}
	must(t, s.Purge(t.Context()))
	if _, rows := tableRows(t, s, head); rows != 1 {
		t.Errorf("the tables hold %d rows of the head, one is its present value", rows)
	}
}

// TestFormerSharedRowsStayedInATable: what versions share is written anew without
// the erased one and leaves no deletion. The partitions that a purge is given say
// where such rows are.
func TestFormerSharedRowsStayedInATable(t *testing.T) {
	for prefix, name := range map[byte]string{0x30: "bitmaps", text.PrefixPostings: "postings", text.PrefixStatistics: "statistics", text.PrefixNames: "names of terms"} {
		t.Run(name, func(t *testing.T) {
			s, _, _, part := purgedWorld(t)
			shared := binary.BigEndian.AppendUint32([]byte{prefix}, part)
			keys, rows := tableRows(t, s, shared)
			if keys == 0 || rows != keys {
				t.Fatalf("%d rows under %d keys", rows, keys)
			}
			must(t, projections.WriteAnew(s, shared...))
			must(t, s.Purge(t.Context()))
			if _, rows := tableRows(t, s, shared); rows != 2*keys {
				t.Fatalf("the tables hold %d rows of %d keys: they were found without their partition, so the test shows nothing", rows, keys)
			}
			must(t, s.Purge(t.Context(), part))
			if _, rows := tableRows(t, s, shared); rows != keys {
				t.Errorf("the tables hold %d rows of %d keys", rows, keys)
			}
		})
	}
}
