package projections_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"mneme/internal/events"
	"mneme/internal/index/text"
	"mneme/internal/projections"
	"mneme/internal/settings"
)

// dump gives everything a state holds, but for shapes that depend on batches:
// bitmaps and postings are read through their own packages.
func dump(t testing.TB, s *projections.State) string {
	t.Helper()
	var out strings.Builder
	view(t, s, func(v *projections.View) {
		c := v.Cursor()
		c.RaftIndex, c.RaftTerm, c.Identity = 0, 0, ""
		fmt.Fprintf(&out, "%+v\n", c)
		attrs := map[string]bool{}
		must(t, projections.Rows(v, func(key, value []byte) {
			switch key[0] {
			case 0x00, 0x01, 0x30, text.PrefixPostings, text.PrefixStatistics:
				return
			case projections.PrefixAttrs:
				for _, k := range projections.CutAttrs(value) {
					attrs[string(key[1:5])+string(k)] = true
				}
			}
			fmt.Fprintf(&out, "%x %x\n", key, value)
		}))
		for _, k := range slices.Sorted(maps.Keys(attrs)) {
			bm, err := v.Bitmap(u32([]byte(k)), projections.AttrKey(k[4:]))
			must(t, err)
			fmt.Fprintf(&out, "bitmap %x %v\n", k, bm.ToArray())
		}
		dumpText(t, &out, v)
		checkFacts(t, v)
	})
	return out.String()
}

// dumpText adds counters, the living and the postings of each partition.
func dumpText(t testing.TB, out *strings.Builder, v *projections.View) {
	t.Helper()
	for id := range v.Cursor().Partitions {
		p, ok := v.PartitionByID(id)
		stats, err := text.ReadStats(v.Reader(), id)
		must(t, err)
		live := v.Live(p)
		fmt.Fprintf(out, "partition %d %v %+v %+v %d:", id, ok, p, stats, v.LiveCount(p))
		want := map[text.Term][]uint32{}
		for doc := range p.NextDoc {
			if !live.Contains(doc) {
				continue
			}
			fmt.Fprintf(out, " %d", doc)
			if d, err := text.ReadDoc(v.Reader(), id, doc); err == nil {
				for _, term := range d.Terms {
					term.TF = 0
					want[term] = append(want[term], doc)
				}
			}
		}
		fmt.Fprintln(out)
		for term, docs := range want {
			if got := searchHits(t, v, p, live, term); !slices.Equal(got, docs) {
				t.Errorf("term %q of partition %d finds %v, its rows say %v", term.Text, id, got, docs)
			}
		}
	}
}

var searcher text.Searcher

func searchHits(t testing.TB, v *projections.View, p projections.Partition, live projections.Live, term text.Term) (docs []uint32) {
	t.Helper()
	q := text.Query{K: 1000, Terms: []text.QueryTerm{{Text: term.Text, Weight: 1}}}
	q.FieldWeights[term.Field] = 1
	hits, err := searcher.Search(context.Background(), v.Reader(), []text.Partition{{ID: p.ID, Live: live}}, q)
	must(t, err)
	for _, h := range hits {
		docs = append(docs, h.Doc)
	}
	slices.Sort(docs)
	return docs
}

// eachSeed runs f for some random histories and prints how to repeat one.
func eachSeed(t *testing.T, events int, f func(t *testing.T, h *history, rnd *rand.Rand)) {
	from, to := uint64(1), uint64(*seeds)
	if *oneSeed != 0 {
		from, to = *oneSeed, *oneSeed
	}
	if testing.Short() {
		to = from
	}
	for seed := from; seed <= to; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					name, _, _ := strings.Cut(t.Name(), "/")
					t.Logf("to repeat: go test ./internal/projections -run '^%s$' -seed %d", name, seed)
				}
			})
			f(t, newHistory(t, seed, events), rand.New(rand.NewPCG(seed, 3)))
		})
	}
}

// TestMetamorphic: the same log under other batches, restarts, snapshots and
// rebuilds gives the same state, and the one that maps say.
func TestMetamorphic(t *testing.T) {
	eachSeed(t, 300, func(t *testing.T, h *history, rnd *rand.Rand) {
		ref := openState(t, filepath.Join(t.TempDir(), "ref"))
		results := fold(t, h.keys, ref, h.log, 1)
		want := dump(t, ref)
		checkTwin(t, h, ref, results)
		checkLog(t, h, ref)
		must(t, ref.Close())
		for name, run := range map[string]func(*testing.T, *history, *rand.Rand) (*projections.State, []projections.EventResult){
			"one range": oneRange, "batches": batches, "commands": commands, "restarts": restarts, "snapshots": snapshots, "rebuild": rebuild,
		} {
			t.Run(name, func(t *testing.T) {
				s, got := run(t, h, rnd)
				defer s.Close()
				if d := dump(t, s); d != want {
					t.Errorf("another state: %s", firstDifference(d, want))
				}
				if got != nil && !reflect.DeepEqual(got, results) {
					t.Error("other results")
				}
			})
		}
	})
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d\n got %s\nwant %s", i, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// checkTwin compares results, audit rows and totals with the twin's.
func checkTwin(t *testing.T, h *history, s *projections.State, results []projections.EventResult) {
	t.Helper()
	w := newTwin(h.world, h.bad)
	for _, m := range h.log {
		w.message(m)
	}
	for i, want := range w.results {
		if i >= len(results) || results[i] != want {
			t.Fatalf("event %d: %+v, the twin says %+v", i, results[i], want)
		}
	}
	seen := map[projections.Outcome]int{}
	for _, r := range results {
		seen[r.Outcome]++
	}
	t.Logf("outcomes %v in %d frames", seen, len(h.log))
	for o := projections.OutcomeCreated; o <= projections.OutcomeRejected; o++ {
		if seen[o] == 0 && *oneSeed == 0 {
			t.Errorf("no event came to be %s: the history is too tame", o)
		}
	}
	view(t, s, func(v *projections.View) {
		if v.Cursor().Chain != w.chain || v.Cursor().Epoch != w.epoch {
			t.Error("cursor")
		}
		for ns, want := range w.audit {
			var got []projections.AuditRow
			must(t, v.Audit(ns, projections.Ref{}, func(r projections.AuditRow) (bool, error) { got = append(got, r); return true, nil }))
			if !reflect.DeepEqual(got, want) {
				t.Errorf("audit rows of %s differ: %d rows, the twin has %d", ns, len(got), len(want))
			}
		}
		for id, n := range w.spaceNS {
			info, ok := v.NamespaceByID(id)
			records, pending := w.totals(id)
			if !ok || info.Deleted == n.living || v.NamespaceTotals(id).Records != records || v.NamespaceTotals(id).Pending != pending {
				t.Errorf("namespace %s: %+v, the twin has %d records, %d pending, living %v", n.name, info, records, pending, n.living)
			}
			checkSpaces(t, v, w, id)
			checkGraph(t, v, id, w.graphs[id])
			checkReads(t, v, id, n, w.audit[id])
		}
		for id, r := range w.records {
			head, ok, err := v.Head(r.namespace, id)
			if err != nil || !ok || head.Living != r.living || head.Versions != r.versions || head.URI != r.uri && r.living {
				t.Errorf("record %s: %+v, the twin has %+v", id, head, *r)
			}
			if !r.living || r.uri == "" {
				continue
			}
			if got, ok, err := v.URI(head.Partition, r.uri); err != nil || !ok || got != w.owner(r) {
				t.Errorf("path %q names %s %v %v, in the twin %s", r.uri, got, ok, err, w.owner(r))
			}
		}
	})
}

// checkSpaces compares a namespace's spaces and what is in them with the twin's.
func checkSpaces(t *testing.T, v *projections.View, w *twin, id events.ID) {
	t.Helper()
	n := w.spaceNS[id]
	info, _ := v.NamespaceByID(id)
	if !n.living {
		n = &twinNamespace{}
	}
	var kept []projections.SpaceKey
	for _, k := range info.Kept {
		kept = append(kept, k.Space)
	}
	var wantKept []projections.SpaceKey
	for _, s := range n.kept {
		wantKept = append(wantKept, settings.KeyOf(s))
	}
	if info.Space != settings.KeyOf(n.current) || info.Next != settings.KeyOf(n.next) || !slices.Equal(kept, wantKept) {
		t.Errorf("namespace %s has spaces %x, %x, %x, the twin %+v", id, info.Space, info.Next, kept, n)
	}
	if n.living { // what derivation and queries follow is what the fold says
		set, err := settings.NewCache(w.keys).Of(v, info)
		must(t, err)
		var follows []projections.SpaceKey
		for _, k := range set.Kept {
			follows = append(follows, settings.KeyOf(k.Space))
		}
		if set.SpaceKey() != info.Space || settings.KeyOf(set.Next) != info.Next || !slices.Equal(follows, kept) {
			t.Errorf("namespace %s has spaces %x, %x, %x, its settings say %s, %s, %x", id, info.Space, info.Next, kept, set.Space, set.Next, follows)
		}
	}
	counts, living := w.counts(id), len(w.of(id))
	for _, r := range w.of(id) {
		if !r.living {
			living--
		}
	}
	parts, err := v.Partitions(id)
	must(t, err)
	for _, s := range spacesByName {
		got, err := v.SpaceRecords(id, settings.KeyOf(s))
		if err != nil || got != counts[s] {
			t.Errorf("namespace %s has %d records with vectors in %s, the twin %d, %v", id, got, s, counts[s], err)
		}
		lacking := 0
		for _, p := range parts {
			for at, done := uint32(0), false; !done; {
				var docs []projections.PendingDoc
				docs, at, done, err = v.Lacking(p, settings.KeyOf(s), at, 3)
				must(t, err)
				lacking += len(docs)
			}
		}
		if want := living - int(counts[s]); lacking != want {
			t.Errorf("namespace %s lacks %d in %s, the twin %d", id, lacking, s, want)
		}
	}
}

// checkLog: the state holds every message of the log byte for byte.
func checkLog(t *testing.T, h *history, s *projections.State) {
	t.Helper()
	view(t, s, func(v *projections.View) {
		for i, want := range h.log {
			got, err := v.Frame(uint64(i + 1))
			if err != nil || got == nil || !bytes.Equal(got, want) {
				t.Fatalf("frame %d comes back as %x, %v, want %x", i+1, got, err, want)
			}
		}
		if got, err := v.Frame(h.seq() + 1); got != nil || err != nil {
			t.Errorf("a frame that is not there: %x, %v", got, err)
		}
	})
}

func oneRange(t *testing.T, h *history, _ *rand.Rand) (*projections.State, []projections.EventResult) {
	s := openState(t, t.TempDir())
	return s, fold(t, h.keys, s, h.log, len(h.log))
}

func batches(t *testing.T, h *history, rnd *rand.Rand) (*projections.State, []projections.EventResult) {
	s := openState(t, t.TempDir())
	var out []projections.EventResult
	for s.Cursor().Seq < h.seq() {
		to := min(len(h.log), int(s.Cursor().Seq)+1+rnd.IntN(40))
		out = append(out, fold(t, h.keys, s, h.log[:to], 1+rnd.IntN(20))...)
	}
	return s, out
}

// commands goes the way of Raft: encoded ranges, several in a batch, among
// them ranges that were proposed twice, out of order or by a deposed leader.
func commands(t *testing.T, h *history, rnd *rand.Rand) (*projections.State, []projections.EventResult) {
	s := openState(t, t.TempDir())
	d := deriver(t, h.keys, s)
	var all [][]byte
	c := s.Cursor()
	for part := range slices.Chunk(h.log, 1+rnd.IntN(9)) {
		var r *projections.Range
		r, c = rangeOf(t, d, c, part)
		r.Applied = projections.Mark{} // of a proposer that has just begun
		all = append(all, r.Encode())
	}
	var out []projections.EventResult
	index := uint64(0)
	for next := 0; next < len(all); {
		var batch []projections.Command
		var want []projections.Answer
		for range 1 + rnd.IntN(5) {
			index++
			pick := next
			if rnd.IntN(3) == 0 {
				pick = rnd.IntN(len(all))
			}
			if pick >= len(all) {
				break
			}
			batch = append(batch, projections.Command{Index: index, Term: 3, Data: all[pick]})
			switch {
			case pick < next:
				want = append(want, projections.AnswerBehind)
			case pick > next:
				want = append(want, projections.AnswerAhead)
			default:
				want = append(want, projections.AnswerApplied)
				next++
			}
		}
		again := slices.Clone(batch)
		res, err := s.Apply(batch)
		must(t, err)
		for i, r := range res {
			rr := r.(projections.RangeResult)
			if rr.Answer != want[i] {
				t.Fatalf("command %d: %s, want %s", batch[i].Index, rr.Answer, want[i])
			}
			out = append(out, rr.Events...)
		}
		before := s.Cursor()
		res, err = s.Apply(again) // Raft replays what it applied
		must(t, err)
		for _, r := range res {
			if r != nil {
				t.Fatal("a command was applied twice")
			}
		}
		if len(batch) > 0 && (s.Cursor() != before || before.RaftIndex != batch[len(batch)-1].Index || before.RaftTerm != 3) {
			t.Fatalf("cursor %+v", s.Cursor())
		}
	}
	return s, out
}

func restarts(t *testing.T, h *history, rnd *rand.Rand) (*projections.State, []projections.EventResult) {
	dir := t.TempDir()
	s := openState(t, dir)
	var out []projections.EventResult
	for s.Cursor().Seq < h.seq() {
		before := hashOf(t, s)
		must(t, s.Close())
		s = openState(t, dir)
		if hashOf(t, s) != before {
			t.Fatal("a restart changed the state")
		}
		to := min(len(h.log), int(s.Cursor().Seq)+1+rnd.IntN(40))
		out = append(out, fold(t, h.keys, s, h.log[:to], 1+rnd.IntN(20))...)
	}
	return s, out
}

// snapshots carries the state over to a fresh node now and then.
func snapshots(t *testing.T, h *history, rnd *rand.Rand) (*projections.State, []projections.EventResult) {
	s := openState(t, t.TempDir())
	var out []projections.EventResult
	for s.Cursor().Seq < h.seq() {
		to := min(len(h.log), int(s.Cursor().Seq)+1+rnd.IntN(60))
		out = append(out, fold(t, h.keys, s, h.log[:to], 7)...)
		copied := filepath.Join(t.TempDir(), "checkpoint")
		must(t, s.Checkpoint(copied))
		other := openState(t, t.TempDir())
		fold(t, h.keys, other, h.log[:1+rnd.IntN(to)], 11) // it lags behind, or has gone its own way
		must(t, other.Restore(copied))
		if hashOf(t, other) != hashOf(t, s) || other.Cursor() != s.Cursor() {
			t.Fatal("a snapshot is another state")
		}
		must(t, s.Close())
		s = other
	}
	return s, out
}

// rebuild replays the log beside the state and swaps.
func rebuild(t *testing.T, h *history, rnd *rand.Rand) (*projections.State, []projections.EventResult) {
	s := openState(t, t.TempDir())
	for range 3 {
		to := min(len(h.log), int(s.Cursor().Seq)+1+rnd.IntN(len(h.log)/3))
		fold(t, h.keys, s, h.log[:to], 9)
		beside, err := s.Sibling()
		must(t, err)
		if rnd.IntN(3) == 0 {
			fold(t, h.keys, beside, h.log[:1+rnd.IntN(to)], 3)
			must(t, beside.Discard())
			continue
		}
		fold(t, h.keys, beside, h.log[:to], 1+rnd.IntN(50))
		must(t, beside.SetOrigin(99, 4, events.StreamRef{Epoch: beside.Cursor().Epoch, Identity: "stream"}))
		before := hashOf(t, s)
		must(t, s.Swap(beside))
		if hashOf(t, s) != before {
			t.Fatal("a rebuild gave another state")
		}
		if i, term := s.AppliedIndex(); i != 99 || term != 4 || s.Cursor().Identity != "stream" {
			t.Fatalf("origin %d %d %q", i, term, s.Cursor().Identity)
		}
	}
	fold(t, h.keys, s, h.log, 13)
	return s, nil
}

// TestDeletionLaw: where a namespace was deleted and its keys are gone, a
// replay that cannot open its events comes to the same state hash.
func TestDeletionLaw(t *testing.T) {
	eachSeed(t, 200, func(t *testing.T, h *history, _ *rand.Rand) {
		for _, ns := range h.ns { // end all, so that the law speaks about much
			if ns != h.ns[0] {
				h.frame(h.deleted(ns))
			}
		}
		live := openState(t, t.TempDir())
		defer live.Close()
		fold(t, h.keys, live, h.log, 5)
		for _, ns := range h.ns[1:] {
			must(t, h.keys.DestroyNamespace(ns))
		}
		shredded := openState(t, t.TempDir())
		defer shredded.Close()
		fold(t, h.keys, shredded, h.log, 5)
		compareHashes(t, live, shredded)
		view(t, shredded, func(v *projections.View) {
			checkFacts(t, v)
			if len(v.DeletedNamespaces()) == 0 {
				t.Error("nothing was deleted")
			}
		})
	})
}

func compareHashes(t *testing.T, a, b *projections.State) {
	t.Helper()
	hashes := func(s *projections.State) (out []string) {
		view(t, s, func(v *projections.View) {
			out = append(out, v.Hash().String())
			for _, n := range v.Namespaces() {
				out = append(out, n.Name+" "+v.NamespaceTotals(n.ID).Hash.String())
			}
		})
		return out
	}
	if x, y := hashes(a), hashes(b); !slices.Equal(x, y) {
		t.Errorf("hashes %v\nbut    %v", x, y)
	}
}
