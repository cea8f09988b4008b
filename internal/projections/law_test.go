package projections_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"mneme/internal/embed"
	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/settings"
	"mneme/memory"
)

// lawWorld is a world with subjects, memories about several of them, and keys that
// end.
type lawWorld struct {
	*world
	rnd     *rand.Rand
	ns      []events.ID
	present map[events.ID]lawRecord // living records
	order   []events.ID             // … in the order in which they were made
	ended   map[keyring.KeyID]bool
	about   []string // subjects whose keys ended
	late    int      // events under keys that had ended
	things  map[events.ID][]events.GraphRef
}

type lawRecord struct {
	ns      events.ID
	version uint32
	key     *keyring.DataKey
}

var lawSubjects = []string{"adalovelace", "bobbernerslee", "evegalois", "joannoether", "kimturing"}

// under seals content that is about any number of subjects.
func (w *lawWorld) under(h events.Header, key *keyring.DataKey, c events.Content) events.Envelope {
	names, err := w.keys.Namespace(h.Namespace)
	must(w.t, err)
	h.Event, h.Scope, h.Kind, h.Agent = w.ids.New(), events.ScopeTeam, 9, "ann"
	if h.Type == events.TypeCaptured {
		h.Record = events.RecordID(h.Event)
	}
	h.Key = key.ID()
	w.uris[h.Event] = memory.URIPath(c.URI)
	if c.ClientID != "" {
		h.ClientID = events.TruncateMAC(names.MAC(events.LabelClient, []byte(c.ClientID)))
		h.Body = events.TruncateMAC(key.MAC(events.LabelBody, c.Body(&h)))
	}
	return w.seal(h, key, c.Encode())
}

// key draws whose data an event is about: nobody's, one's, several subjects'.
func (w *lawWorld) key(ns events.ID) (*keyring.DataKey, []string) {
	var subjects []string
	var ids []keyring.KeyID
	for _, s := range lawSubjects {
		if w.rnd.IntN(4) != 0 {
			continue
		}
		key := w.dataKey(ns, s)
		switch {
		case !w.ended[key.ID()]:
			ids, subjects = append(ids, key.ID()), append(subjects, s)
		case w.rnd.IntN(8) == 0: // sealed just before, written just behind the end
			return key, []string{s}
		}
	}
	if len(ids) == 0 {
		return w.dataKey(ns, ""), nil
	}
	key, err := w.keys.Combine(ids)
	must(w.t, err)
	return key, subjects
}

func (w *lawWorld) content(n int, subjects []string) events.Content {
	c := events.Content{Text: fmt.Sprintf("memory %d speaks of %s and others", n, strings.Join(subjects, " and "))}
	for _, s := range subjects {
		c.Tags = append(c.Tags, "tag"+s)
		c.Conversation = "talk" + s
		if w.rnd.IntN(2) == 0 {
			c.URI = fmt.Sprintf("mem://team/%s/%d", s, w.rnd.IntN(5))
		}
	}
	if len(subjects) > 0 {
		c.Subject = subjects[0]
	}
	if w.rnd.IntN(2) == 0 {
		c.ClientID = fmt.Sprint("id-", w.rnd.IntN(60))
	}
	return c
}

// madeOf says that a subject's key was made.
func (w *world) madeOf(ns events.ID, subject string) events.Envelope {
	return w.seal(events.Header{Type: events.TypeKeyCreated, Namespace: ns, Key: w.dataKey(ns, subject).ID()}, nil, nil)
}

// endOf says that a subject's key ends.
func (w *world) endOf(ns events.ID, subject string) events.Envelope {
	e := w.seal(events.Header{Type: events.TypeKeyDestroyed, Namespace: ns}, nil, nil)
	e.Payload = events.EncodeKeys([][16]byte{w.dataKey(ns, subject).ID()})
	return e
}

// end writes that the keys of some subjects end, and with them the combined ones.
func (w *lawWorld) end(ns events.ID) {
	var ids []keyring.KeyID
	for range 1 + w.rnd.IntN(2) {
		s := lawSubjects[w.rnd.IntN(len(lawSubjects)-1)] // the last one stays
		if id := w.dataKey(ns, s).ID(); !slices.Contains(ids, id) {
			ids = append(ids, id)
			w.about = append(w.about, ns.String()+s)
		}
	}
	ending, err := w.keys.Ending(ns, ids...)
	must(w.t, err)
	var raw [][16]byte
	for _, id := range ending {
		w.ended[id] = true
		raw = append(raw, id)
	}
	e := w.seal(events.Header{Type: events.TypeKeyDestroyed, Namespace: ns}, nil, nil)
	e.Payload = events.EncodeKeys(raw)
	w.frame(e)
	for id, r := range w.present {
		if w.ended[r.key.ID()] {
			delete(w.present, id)
		}
	}
}

func (w *lawWorld) pick() (events.ID, lawRecord, bool) {
	for range 20 {
		if len(w.order) == 0 {
			break
		}
		id := w.order[w.rnd.IntN(len(w.order))]
		if r, ok := w.present[id]; ok {
			return id, r, true
		}
	}
	return events.ID{}, lawRecord{}, false
}

func (w *lawWorld) step(n int) {
	ns := w.ns[w.rnd.IntN(len(w.ns))]
	id, r, some := w.pick()
	switch at := w.rnd.IntN(26); {
	case at == 0 && n > 20:
		w.end(ns)
	case at >= 20:
		w.graph(n, ns)
	case at == 19:
		w.frame(w.reading(events.Header{Namespace: ns, Scope: events.ScopeTeam, Agent: "ann"}, events.Given{Record: id, Version: 1}))
	case at < 4 && some:
		h := events.Header{Type: events.TypeForgotten, Namespace: r.ns, Agent: "ann", Scope: events.ScopeTeam, Target: id, BaseVersion: r.version}
		w.frame(w.seal(h, nil, nil))
		delete(w.present, id)
	case at < 8 && some:
		key, subjects := r.key, []string(nil)
		if w.rnd.IntN(2) == 0 {
			key, subjects = w.key(r.ns)
		}
		w.frame(w.under(events.Header{Type: events.TypeRevised, Namespace: r.ns, Target: id, BaseVersion: r.version}, key, w.content(n, subjects)))
		w.made(id, lawRecord{r.ns, r.version + 1, key})
	case at < 11 && some && w.spaces[r.ns] == externalSpace:
		h := events.Header{Namespace: r.ns, Agent: "ann", Scope: events.ScopeTeam, Target: id, BaseVersion: r.version}
		w.frame(w.attached(h, externalSpace, r.key.ID(), [][]float32{{1, 0, 0, float32(n)}}))
	default:
		key, subjects := w.key(ns)
		e := w.under(events.Header{Type: events.TypeCaptured, Namespace: ns}, key, w.content(n, subjects))
		w.frame(e)
		w.made(e.Record, lawRecord{ns, 1, key})
	}
}

// graph changes a graph under the key of some subjects, whose names it speaks of; nothing is
// deleted under another key than the namespace's own.
func (w *lawWorld) graph(n int, ns events.ID) {
	key, subjects := w.key(ns)
	word := func() string {
		if len(subjects) == 0 {
			return fmt.Sprint("thing ", w.rnd.IntN(20))
		}
		return fmt.Sprintf("%s %d", subjects[w.rnd.IntN(len(subjects))], n)
	}
	steps, made := drawGraph(w.rnd, w.things[ns], word, len(subjects) == 0)
	id := ""
	if w.rnd.IntN(4) == 0 {
		id = fmt.Sprint("id-", w.rnd.IntN(60))
	}
	w.frame(w.graphUnder(events.Header{Namespace: ns, Agent: "ann"}, key, steps, id))
	if w.ended[key.ID()] {
		w.late++
	}
	for i := range made {
		w.things[ns] = append(w.things[ns], events.GraphRef{Seq: w.seq(), N: i})
	}
}

// graphRows are the rows of graphs and of audited reads, whether they are facts or not.
func graphRows(t *testing.T, s *projections.State) string {
	var out strings.Builder
	view(t, s, func(v *projections.View) {
		must(t, projections.Rows(v, func(key, value []byte) {
			if key[0] >= projections.PrefixGraphEntity && key[0] <= projections.PrefixGraphTotals || key[0] == projections.PrefixRead {
				fmt.Fprintf(&out, "%x %x\n", key, value)
			}
		}))
	})
	return out.String()
}

// made notes a version that may have come to be: the fold may see it otherwise.
func (w *lawWorld) made(id events.ID, r lawRecord) {
	if w.ended[r.key.ID()] {
		w.late++
		return
	}
	if _, ok := w.present[id]; !ok {
		w.order = append(w.order, id)
	}
	w.present[id] = r
}

// TestErasureLaw: the fold of a log whose keys are gone gives the state after the
// erasure: for one subject and for several, for memories about several of them,
// before and after revisions and forgets, with vectors that came as events. And no
// word about the erased is in any row.
func TestErasureLaw(t *testing.T) {
	eachSeed(t, 0, func(t *testing.T, h *history, rnd *rand.Rand) {
		w := &lawWorld{world: newWorld(t, byte(rnd.Uint32())), rnd: rnd, present: map[events.ID]lawRecord{}, ended: map[keyring.KeyID]bool{},
			things: map[events.ID][]events.GraphRef{}}
		for _, space := range []embed.Space{builtinSpace, externalSpace} {
			e := w.created("team-"+space.Provider, space)
			w.frame(e)
			w.ns = append(w.ns, e.Namespace)
		}
		for n := range 400 {
			w.step(n)
		}
		for _, ns := range w.ns {
			w.end(ns)
		}
		live, shredded := openState(t, t.TempDir()), openState(t, t.TempDir())
		defer live.Close()
		defer shredded.Close()
		was := fold(t, w.keys, live, w.log, 1+rnd.IntN(30))
		var ids []keyring.KeyID
		for id := range w.ended {
			if d, err := w.keys.KeyByID(id); err == nil && !d.Combined() {
				ids = append(ids, id)
			}
		}
		must(t, w.keys.Destroy(ids...))
		for id := range w.ended {
			if _, err := w.keys.KeyByID(id); !settings.IsErased(err) {
				t.Fatalf("key %s lives: %v", id, err)
			}
		}
		is := fold(t, w.keys, shredded, w.log, 1+rnd.IntN(30))
		seen := map[projections.Outcome]int{}
		for i := range was {
			seen[was[i].Outcome]++
			if was[i] != is[i] && is[i].Outcome != projections.OutcomeRejected { // vectors that cannot be opened
				t.Errorf("event %d is %+v, in the shredded log %+v", i, was[i], is[i])
			}
		}
		t.Logf("outcomes %v, %d keys ended, %d late events", seen, len(w.ended), w.late)
		for name, state := range map[string]*projections.State{"live": live, "shredded": shredded} {
			v := state.View()
			must(t, v.SealingKeys(func(_ events.ID, key [16]byte) {
				if w.ended[key] {
					t.Errorf("the %s state tells again of key %x, which has ended", name, key)
				}
			}))
			must(t, v.Close())
		}
		if seen[projections.OutcomeErased] == 0 && w.late > 0 || seen[projections.OutcomeDuplicate]+seen[projections.OutcomeConflict] == 0 {
			t.Error("the history is too tame")
		}
		compareHashes(t, live, shredded)
		if got, want := graphRows(t, shredded), graphRows(t, live); got != want || want == "" {
			t.Errorf("graphs of the shredded log: %s", firstDifference(got, want))
		}
		for name, s := range map[string]*projections.State{"live": live, "shredded": shredded} {
			view(t, s, func(v *projections.View) {
				checkFacts(t, v)
				dumpText(t, new(strings.Builder), v)
				w.check(name, v)
			})
		}
	})
}

// check looks for words about the erased, and counts records.
func (w *lawWorld) check(name string, v *projections.View) {
	gone := map[string]int{}
	for _, ns := range w.ns {
		for _, s := range lawSubjects {
			if slices.Contains(w.about, ns.String()+s) {
				gone[s]++
			}
		}
	}
	found := map[string]bool{}
	must(w.t, projections.Rows(v, func(key, value []byte) {
		for _, s := range lawSubjects {
			if bytes.Contains(key, []byte(s)) || bytes.Contains(value, []byte(s)) {
				found[s] = true
			}
		}
	}))
	for _, s := range lawSubjects {
		if gone[s] == len(w.ns) && found[s] {
			w.t.Errorf("%s: a word about %s is left in a row", name, s)
		}
	}
	if last := lawSubjects[len(lawSubjects)-1]; !found[last] {
		w.t.Errorf("%s: nothing is left about %s, whose key lives", name, last)
	}
	for _, ns := range w.ns {
		counted, living := v.NamespaceTotals(ns).Records, uint64(0)
		must(w.t, projections.Rows(v, func(key, value []byte) {
			if key[0] == projections.PrefixHead && bytes.Equal(key[1:17], ns[:]) && value[12] == 1 {
				living++
			}
		}))
		if counted != living {
			w.t.Errorf("%s: %d records are counted, %d live", name, counted, living)
		}
	}
}
