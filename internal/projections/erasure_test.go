package projections_test

import (
	"fmt"
	"reflect"
	"testing"

	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/internal/projections"
)

// TestVerdictsOutliveKeys: what becomes of an event never depends on the payload
// of another one, whose key may be destroyed before the next replay. It once
// did: a uri that an erased memory had held was taken in one fold and free in
// the other.
func TestVerdictsOutliveKeys(t *testing.T) {
	w := newWorld(t, 9)
	ns := w.created("team", builtinSpace)
	w.frame(ns)
	capture := func(subject, uri, id string) events.Envelope {
		e := w.content(events.Header{Namespace: ns.Namespace, Agent: "ann"},
			events.Content{Text: "about " + subject, Subject: subject, URI: uri, ClientID: id, Conversation: "c", Tags: []string{"t"}})
		w.frame(e)
		return e
	}
	const uri = "mem://team/a"
	bob := capture("bob", uri, "id-1")
	capture("ada", uri, "id-2")  // two leaders raced: the later one has the uri
	capture("bob", uri, "id-2")  // Ada's idempotency key stays used
	eve := capture("", "", "id") // revised under a subject's uri
	w.frame(w.content(events.Header{Type: events.TypeRevised, Namespace: ns.Namespace, Agent: "ann", Target: eve.Record, BaseVersion: 1},
		events.Content{Text: "more", URI: "mem://team/b"}))
	ada := w.dataKey(ns.Namespace, "ada")
	named := func(s *projections.State) (out string) {
		view(t, s, func(v *projections.View) {
			for _, path := range []string{"a", "b"} {
				id, ok, err := v.URI(0, path)
				must(t, err)
				out += fmt.Sprintln(path, id, ok)
			}
		})
		return out
	}
	whole, shredded := openState(t, t.TempDir()), openState(t, t.TempDir())
	defer whole.Close()
	defer shredded.Close()
	want := fold(t, w.keys, whole, w.log, 3)
	must(t, w.keys.Destroy(keyring.KeyID(ada.ID())))
	got := fold(t, w.keys, shredded, w.log, 3)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("without Ada's key other verdicts\n got %+v\nwant %+v", got, want)
	}
	if got, want := named(shredded), fmt.Sprintln("a", bob.Record, true)+fmt.Sprintln("b", eve.Record, true); got != want {
		t.Errorf("without Ada's key\n%snames are, want\n%s", got, want)
	}
	if named(whole) == named(shredded) {
		t.Error("the later record does not have the uri")
	}
}

// TestSwitchMovesNoRows: the versions that wait for vectors in the space being
// built are the ones that wait once it is current, under the same keys. A switch
// once wrote each of them anew inside one Apply.
func TestSwitchMovesNoRows(t *testing.T) {
	w := newWorld(t, 10)
	ns := w.created("team", externalSpace)
	w.frame(ns)
	add := func(n int) {
		for i := range n {
			w.frame(w.content(events.Header{Namespace: ns.Namespace, Agent: "ann"}, events.Content{Text: fmt.Sprint("memory ", i)}))
		}
	}
	add(3)
	w.frame(w.spaceEvent(events.TypeSpaceBuilding, ns.Namespace, anotherSpace))
	add(4)
	s := openState(t, t.TempDir())
	defer s.Close()
	fold(t, w.keys, s, w.log, 1)
	waiting := func() (rows []string, pending uint64) {
		view(t, s, func(v *projections.View) {
			must(t, projections.Rows(v, func(key, _ []byte) {
				if key[0] == projections.PrefixPending {
					rows = append(rows, fmt.Sprintf("%x", key))
				}
			}))
			pending = v.NamespaceTotals(ns.Namespace).Pending
		})
		return rows, pending
	}
	before, pending := waiting()
	if len(before) != 7+4 || pending != 7 {
		t.Fatalf("%d rows, %d pending", len(before), pending)
	}
	w.frame(w.spaceEvent(events.TypeSpaceSwitched, ns.Namespace, anotherSpace))
	fold(t, w.keys, s, w.log, 1)
	after, pending := waiting()
	if len(after) != 4 || pending != 4 {
		t.Errorf("%d rows, %d pending", len(after), pending)
	}
	had := map[string]bool{}
	for _, key := range before {
		had[key] = true
	}
	for _, key := range after {
		if !had[key] {
			t.Errorf("the switch wrote row %s", key)
		}
	}
}
