package projections_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"mneme/internal/embed"
	"mneme/internal/events"
	"mneme/internal/index/text"
	"mneme/internal/projections"
)

const day = int64(24 * 3600 * 1e9)

// TestTimesAndBitmaps compares reads by time, conversation and attribute with
// loops over what was captured, at the borders of days and before 1970.
func TestTimesAndBitmaps(t *testing.T) {
	w := newWorld(t, 3)
	ns := w.created("team", builtinSpace)
	w.frame(ns)
	times := []int64{-2*day - 1, -2 * day, -day - 1, -day, -1, 1, day - 1, day, day + 1, 2*day - 1, 2 * day, 1 << 60, -(1 << 60), 5, 5, 5}
	type doc struct {
		at         int64
		talk, kind int
	}
	var docs []doc
	for i, at := range times {
		d := doc{at, i % 2, 1 + i%3}
		docs = append(docs, d)
		w.frame(w.content(events.Header{Namespace: ns.Namespace, Agent: "ann", Kind: events.Kind(d.kind), OccurredAt: at},
			events.Content{Text: "x", Conversation: fmt.Sprint("talk-", d.talk), OccurredSet: true}))
	}
	s := openState(t, t.TempDir())
	defer s.Close()
	fold(t, w.keys, s, w.log, 4)
	want := func(from, to int64, keep func(doc) bool) (out []uint32) {
		for i, d := range docs {
			if d.at >= from && d.at < to && keep(d) {
				out = append(out, uint32(i))
			}
		}
		slices.SortStableFunc(out, func(a, b uint32) int {
			return int(min(1, max(-1, docs[a].at/2-docs[b].at/2+docs[a].at%2-docs[b].at%2)))
		})
		return out
	}
	view(t, s, func(v *projections.View) {
		p, ok := v.Partition(ns.Namespace, events.ScopeTeam, "whoever")
		if !ok {
			t.Fatal("no partition")
		}
		for _, from := range times {
			for _, to := range times {
				if from >= to {
					continue
				}
				for _, back := range []bool{false, true} {
					got := map[string][]uint32{}
					visit := func(name string) func(at int64, doc uint32) bool {
						return func(at int64, doc uint32) bool {
							if docs[doc].at != at {
								t.Errorf("doc %d at %d", doc, at)
							}
							got[name] = append(got[name], doc)
							return true
						}
					}
					must(t, v.Between(p.ID, from, to, back, visit("all")))
					must(t, v.Conversation(p.ID, projections.Attr(projections.AttrConversation, "talk-1"), from, to, back, visit("talk")))
					for name, keep := range map[string]func(doc) bool{"all": func(doc) bool { return true }, "talk": func(d doc) bool { return d.talk == 1 }} {
						w := want(from, to, keep)
						if back {
							slices.Reverse(w)
						}
						if !slices.Equal(got[name], w) {
							t.Errorf("%s from %d to %d backwards %v: %v, want %v", name, from, to, back, got[name], w)
						}
					}
				}
			}
		}
		for from := int64(-4); from < 4; from++ {
			for to := from; to < 4; to++ {
				got, err := v.Days(p.ID, from, to)
				must(t, err)
				w := want(from*day, (to+1)*day, func(doc) bool { return true })
				slices.Sort(w)
				if !slices.Equal(got.ToArray(), w) && (len(w) > 0 || !got.IsEmpty()) {
					t.Errorf("days %d to %d: %v, want %v", from, to, got.ToArray(), w)
				}
			}
		}
		kind, err := v.Bitmap(p.ID, projections.Attr(projections.AttrKind, string(events.Kind(2).Public())))
		must(t, err)
		w := want(-1<<62, 1<<62, func(d doc) bool { return d.kind == 2 })
		if slices.Sort(w); !slices.Equal(kind.ToArray(), w) {
			t.Errorf("kind: %v, want %v", kind.ToArray(), w)
		}
		stopped := 0
		must(t, v.Between(p.ID, -1<<62, 1<<62, false, func(int64, uint32) bool { stopped++; return stopped < 3 }))
		if stopped != 3 {
			t.Errorf("a visit that stops went on: %d", stopped)
		}
	})
}

// TestBlockBorder: bitmaps are split at 65,536 documents.
func TestBlockBorder(t *testing.T) {
	w := newWorld(t, 4)
	ns := w.created("team", embed.Space{})
	w.frame(ns)
	s := openState(t, t.TempDir())
	defer s.Close()
	var want []uint32
	for _, first := range []uint32{0, 1<<16 - 2, 3<<16 - 1} {
		for i := range uint32(4) {
			w.frame(w.content(events.Header{Namespace: ns.Namespace, Agent: "ann", OccurredAt: 1}, events.Content{Text: "x", Tags: []string{"t"}, OccurredSet: true}))
			want = append(want, first+i)
		}
		if first > 0 {
			projections.SkipDocs(s, 0, first)
		}
		fold(t, w.keys, s, w.log, 3) // the block changes inside a batch
	}
	view(t, s, func(v *projections.View) {
		tagged, err := v.Bitmap(0, projections.Attr(projections.AttrTag, "t"))
		must(t, err)
		days, err := v.Days(0, 0, 0)
		must(t, err)
		if !slices.Equal(tagged.ToArray(), want) || !slices.Equal(days.ToArray(), want) {
			t.Errorf("tagged %v, on the day %v, want %v", tagged.ToArray(), days.ToArray(), want)
		}
	})
}

// TestLiveSet compares the live set with a map, in every kind of window.
func TestLiveSet(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		next := uint32(rnd.IntN(400))
		if rnd.IntN(20) == 0 {
			next += 1<<32 - 1000
		}
		dead := map[uint32]bool{}
		for range rnd.IntN(50) {
			if next > 0 {
				dead[next-1-uint32(rnd.IntN(int(min(next, 500))))] = true
			}
		}
		l := projections.NewLiveSet(next, slices.Collect(maps.Keys(dead))...)
		alive := func(doc uint64) bool { return doc < uint64(next) && !dead[uint32(doc)] }
		base := (max(next, 600) - 600) &^ 63
		words := make([]uint64, 1+rnd.IntN(12))
		for i := range words {
			words[i] = rnd.Uint64() // what was there is overwritten
		}
		first := base + uint32(rnd.IntN(8))*64
		l.(text.WordSet).Words(first, words)
		for i := range uint64(len(words)) * 64 {
			doc := uint64(first) + i
			if got := words[i/64]>>(i%64)&1 == 1; got != alive(doc) && doc < 1<<32 {
				t.Fatalf("next %d: word bit of %d is %v", next, doc, got)
			}
			if doc < 1<<32 && l.Contains(uint32(doc)) != alive(doc) {
				t.Fatalf("next %d: contains %d is %v", next, doc, !alive(doc))
			}
		}
	}
}

// TestReads covers the small reads on a random history against each other.
func TestReads(t *testing.T) {
	h := newHistory(t, 5, 200)
	s := openState(t, t.TempDir())
	defer s.Close()
	fold(t, h.keys, s, h.log, 10)
	w := newTwin(h.world, h.bad)
	for _, m := range h.log {
		w.message(m)
	}
	view(t, s, func(v *projections.View) {
		if c := s.Cursor(); v.Position() != c.Position() {
			t.Error("position")
		}
		list := v.Namespaces()
		if len(list) != len(w.names) || !slices.IsSortedFunc(list, func(a, b projections.NamespaceInfo) int { return slices.Compare([]byte(a.Name), []byte(b.Name)) }) {
			t.Errorf("namespaces %v, want %v", list, w.names)
		}
		var records, pending uint64
		for name, id := range w.names {
			n, ok := v.Namespace(name)
			if !ok || n.ID != id {
				t.Errorf("%s: %+v %v", name, n, ok)
			}
			totals := v.NamespaceTotals(id)
			records, pending = records+totals.Records, pending+totals.Pending
			docs, err := v.Pending(id, n.Space, 1000)
			must(t, err)
			if uint64(len(docs)) != totals.Pending {
				t.Errorf("%s: %d pending, counted %d", name, len(docs), totals.Pending)
			}
			for _, d := range docs {
				if is, err := v.IsPending(id, n.Space, d.Partition, d.Doc); err != nil || !is {
					t.Error("pending", is, err)
				}
			}
			if totals.Pending > 1 {
				if docs, err := v.Pending(id, n.Space, 1); err != nil || len(docs) != 1 {
					t.Error(docs, err)
				}
			}
		}
		if r, p := v.Totals(); r != records || p != pending {
			t.Error(r, p)
		}
		if _, ok := v.Namespace("nobody"); ok {
			t.Error("nobody is there")
		}
		if is, err := v.IsPending(events.ID{}, projections.SpaceKey{}, 0, 0); is || err != nil {
			t.Error(is, err)
		}
		for id, r := range w.records {
			checkRecord(t, v, id, r)
		}
		checkUsedKeys(t, v, w)
		checkPaging(t, v, w)
	})
}

func checkRecord(t *testing.T, v *projections.View, id events.ID, r *twinRecord) {
	t.Helper()
	head, _, err := v.Head(r.namespace, id)
	must(t, err)
	history, err := v.History(r.namespace, id)
	must(t, err)
	versions := uint32(0)
	for i, e := range history {
		if i > 0 && !history[i-1].At.Before(e.At) {
			t.Errorf("history of %s out of order", id)
		}
		env, raw, err := v.Envelope(e.At)
		must(t, err)
		if row, ok := auditAt(t, v, r.namespace, e.At); !ok || row.Event != env.Event || row.Hash != events.HashEnvelope(raw) {
			t.Errorf("audit of %s at %v: %+v %v", id, e.At, row, ok)
		}
		versions = max(versions, e.Version)
	}
	if versions != r.versions || len(history) == 0 {
		t.Errorf("history of %s: %v, want %d versions", id, history, r.versions)
	}
	doc, ok, err := v.Doc(head.Partition, head.Doc)
	if err != nil || !ok || doc.Living() != r.living || doc.Record != id || doc.Version != r.versions {
		t.Errorf("newest version of %s: %+v %v %v", id, doc, ok, err)
	}
	p, ok := v.PartitionByID(head.Partition)
	if !ok || p.Namespace != r.namespace || v.Live(p).Contains(head.Doc) != r.living {
		t.Errorf("partition of %s: %+v %v", id, p, ok)
	}
	if owner, ok, err := v.URI(head.Partition, r.uri); err != nil || ok && owner == id && (!r.living || r.uri == "") {
		t.Errorf("uri of %s: %s %v %v", id, owner, ok, err)
	}
}

// auditAt finds the audit row of one event: the first row at or after it.
func auditAt(t *testing.T, v *projections.View, ns events.ID, at projections.Ref) (row projections.AuditRow, ok bool) {
	t.Helper()
	before := projections.Ref{Seq: at.Seq - 1, Index: math.MaxUint32}
	if at.Index > 0 {
		before = projections.Ref{Seq: at.Seq, Index: at.Index - 1}
	}
	must(t, v.Audit(ns, before, func(r projections.AuditRow) (bool, error) {
		row, ok = r, r.At == at
		return false, nil
	}))
	return row, ok
}

func checkUsedKeys(t *testing.T, v *projections.View, w *twin) {
	t.Helper()
	for seq := uint64(1); seq <= v.Cursor().Seq; seq++ {
		frame, err := v.Frame(seq)
		must(t, err)
		f, err := events.DecodeFrame(frame)
		if err != nil {
			continue
		}
		for _, raw := range f.Events {
			e, err := events.DecodeEnvelope(raw)
			if err != nil || e.ClientID.IsZero() {
				continue
			}
			want, known := w.spent[spentKey(&e)]
			got, ok, err := v.UsedKey(e.Namespace, e.ClientID, e.Agent)
			at := v.PositionOf(got.At)
			if err != nil || ok != known || ok && (got.Record != want.Record || at != want.Position) {
				t.Errorf("id of %s: %+v %v %v, want %+v %v", e.Event, got, ok, err, want, known)
			}
		}
	}
}

// checkPaging: pages of audit rows and of versions join to the whole.
func checkPaging(t *testing.T, v *projections.View, w *twin) {
	t.Helper()
	for ns, want := range w.audit {
		var got []projections.AuditRow
		for after, more := (projections.Ref{}), true; more; {
			n := 0
			must(t, v.Audit(ns, after, func(r projections.AuditRow) (bool, error) {
				n++
				got, after = append(got, r), r.At
				return n < 7, nil
			}))
			more = n == 7
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %s: %d rows, want %d", ns, len(got), len(want))
		}
	}
	stop := fmt.Errorf("stop")
	for id := range v.Cursor().Partitions {
		p, ok := v.PartitionByID(id)
		next := p.NextDoc
		for ok && next > 0 {
			n := 0
			must(t, v.Docs(id, next, func(doc uint32, _ projections.Doc) (bool, error) {
				if doc != next-1 {
					t.Fatalf("partition %d: doc %d after %d", id, doc, next)
				}
				n, next = n+1, doc
				return n < 3, nil
			}))
			if n == 0 {
				t.Fatalf("partition %d ends at %d", id, next)
			}
		}
		if err := v.Docs(id, p.NextDoc, func(uint32, projections.Doc) (bool, error) { return true, stop }); ok && p.NextDoc > 0 && err == nil {
			t.Error("a visitor's error is lost")
		}
	}
}
