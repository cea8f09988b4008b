package text

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/storage"
)

// world drives index and twin side by side.
type world struct {
	t    testing.TB
	rng  *rand.Rand
	fs   vfs.FS
	db   *storage.DB
	w    *Writer
	twin *twin
	s    Searcher
}

func newWorld(t testing.TB, seed uint64) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 1)), fs: vfs.NewMem(), twin: newTwin()}
	w.db = openTestDB(t, w.fs)
	w.w = NewWriter(w.db)
	return w
}

const testVocabulary = 60

// add appends n documents; IDs jump, now and then over a block.
func (w *world) add(b *pebble.Batch, partition uint32, n int) {
	p := w.twin.part(partition)
	var docs []Doc
	for range n {
		p.next += 1 + uint32(w.rng.IntN(3))
		if w.rng.IntN(40) == 0 {
			p.next += blockSize
		}
		d := randomDoc(w.rng, p.next, testVocabulary, 20)
		if w.rng.IntN(150) == 0 { // so that tails end by their bytes, too
			d = lengthen(d, uint64(d.ID%2), 1000)
		}
		p.docs[d.ID] = d
		if w.rng.IntN(2) == 0 {
			slices.SortFunc(d.Terms, CompareTerms)
			d.Row = mustEncode(w.t, d)
		}
		docs = append(docs, d)
	}
	if err := w.w.Add(b, partition, docs); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) step() {
	partition := uint32(w.rng.IntN(4))
	p := w.twin.part(partition)
	b := w.db.NewIndexedBatch()
	if w.rng.IntN(2) == 0 {
		_ = b.Close()
		b = w.db.NewBatch()
	}
	if w.rng.IntN(5) == 0 { // a batch that is given up
		was := *p
		p.docs = maps.Clone(p.docs)
		w.add(b, partition, w.rng.IntN(200))
		*p = was
		w.w.Reset()
		_ = b.Close()
		return
	}
	w.add(b, partition, w.rng.IntN(8))
	for ids := p.living(); len(ids) > 0 && b.Indexed() && w.rng.IntN(2) == 0; {
		id := ids[w.rng.IntN(len(ids))]
		if err := w.w.Remove(b, partition, id); err != nil {
			w.t.Fatal(err)
		}
		p.dead[id] = true
	}
	for w.rng.IntN(4) == 0 && b.Indexed() && len(p.docs) > 0 {
		ids := slices.Sorted(maps.Keys(p.docs))
		id := ids[w.rng.IntN(len(ids))]
		if err := w.w.RemovePhysical(b, partition, id); err != nil {
			w.t.Fatal(err)
		}
		delete(p.docs, id)
		delete(p.dead, id)
	}
	mustCommit(w.t, w.db, b)
	w.w.Committed()
	switch w.rng.IntN(25) {
	case 0:
		if err := w.db.Flush(); err != nil {
			w.t.Fatal(err)
		}
	case 1:
		compactAll(w.t, w.db)
	case 2:
		if err := w.db.Close(); err != nil {
			w.t.Fatal(err)
		}
		w.db = openTestDB(w.t, w.fs)
		w.w = NewWriter(w.db)
	}
}

func (w *world) check() error {
	for id, p := range w.twin.parts {
		got, err := ReadStats(w.db, id)
		if err != nil {
			return err
		}
		if want := w.twin.stats([]Partition{{ID: id}}); got != want {
			return fmt.Errorf("statistics of %d: %v, want %v", id, got, want)
		}
		if err := w.checkDictionary(id); err != nil {
			return err
		}
		for doc, d := range p.docs {
			got, err := ReadDoc(w.db, id, doc)
			if err != nil {
				return err
			}
			d.Terms = slices.Clone(d.Terms)
			slices.SortFunc(d.Terms, CompareTerms)
			if len(d.Terms) != len(got.Terms) || (len(d.Terms) > 0 && !reflect.DeepEqual(got, d)) {
				return fmt.Errorf("forward row: %v, want %v", got, d)
			}
			if gone, err := Removed(w.db, id, doc); err != nil || gone != p.dead[doc] {
				return fmt.Errorf("removed %d: %v, %v", doc, gone, err)
			}
		}
	}
	for range 3 {
		q, parts := randomQuery(w.rng, testVocabulary), w.twin.openPartitions(w.rng)
		got, err := w.s.Search(context.Background(), w.db, parts, q)
		if err != nil {
			return err
		}
		want := w.twin.search(parts, q)
		if err := sameHits(got, want, q.K); err != nil {
			return fmt.Errorf("query %+v over %d partitions: %w", q, len(parts), err)
		}
		if err := w.checkPages(parts, q, want); err != nil {
			return fmt.Errorf("query %+v over %d partitions: pages: %w", q, len(parts), err)
		}
		if err := w.checkReads(parts, q); err != nil {
			return fmt.Errorf("query %+v over %d partitions: %w", q, len(parts), err)
		}
		if err := w.checkAgain(parts, q); err != nil {
			return fmt.Errorf("query %+v over %d partitions: %w", q, len(parts), err)
		}
	}
	return nil
}

// checkAgain asks for other queries what was prepared for one: each gives what it gives afresh, to the bit,
// whatever was asked of the one before, and with the same counters.
func (w *world) checkAgain(parts []Partition, q Query) error {
	ctx := context.Background()
	p, err := w.s.Prepare(ctx, w.db, parts, q)
	if err != nil {
		return err
	}
	defer p.Close()
	for range 3 {
		switch w.rng.IntN(3) {
		case 0:
			if _, err := p.Top(ctx, q.K, nil); err != nil {
				return err
			}
		case 1: // what other databases have is not counted for the next query
			other, err := w.s.Prepare(ctx, w.db, parts, q)
			if err != nil {
				return err
			}
			Together([]*Prepared{p, other})
			other.Close()
		}
		next := randomQuery(w.rng, testVocabulary)
		for i := range next.Terms { // words of the query before, one of them maybe twice
			if w.rng.IntN(2) == 0 {
				next.Terms[i].Text = q.Terms[w.rng.IntN(len(q.Terms))].Text
			}
		}
		if err := p.Again(ctx, next); err != nil {
			return err
		}
		fresh, err := w.s.Prepare(ctx, w.db, parts, next)
		if err != nil {
			return err
		}
		defer fresh.Close()
		got, err := p.Top(ctx, next.K, nil)
		if err != nil {
			return err
		}
		want, err := fresh.Top(ctx, next.K, nil)
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(got, want) {
			return fmt.Errorf("asked again for %+v: %+v, afresh %+v", next, got, want)
		}
		if p.Stats() != fresh.Stats() {
			return fmt.Errorf("asked again: %+v, afresh %+v", p.Stats(), fresh.Stats())
		}
		for i := range next.Terms {
			for f := range Field(NumFields) {
				if p.DocFreq(i, f) != fresh.DocFreq(i, f) || p.Known(i) != fresh.Known(i) {
					return fmt.Errorf("asked again for %+v: term %d is in %d documents, afresh in %d", next, i, p.DocFreq(i, f), fresh.DocFreq(i, f))
				}
			}
		}
		q = next
	}
	return nil
}

// checkPages takes all hits in pages, by After and by Each: the same, to the bit,
// as at once.
func (w *world) checkPages(parts []Partition, q Query, want []Hit) error {
	ctx := context.Background()
	q.K, q.Explain = len(want)+1, false
	all, err := w.s.Search(ctx, w.db, parts, q)
	if err != nil {
		return err
	}
	if err := sameHits(all, want, q.K); err != nil {
		return err
	}
	q.K = 1 + w.rng.IntN(20)
	var paged, each []Hit
	for {
		hits, err := w.s.Search(ctx, w.db, parts, q)
		if err != nil {
			return err
		}
		paged = append(paged, hits...)
		if len(hits) < q.K {
			break
		}
		q.After = &hits[len(hits)-1]
	}
	q.After = nil
	p, err := w.s.Prepare(ctx, w.db, parts, q)
	if err != nil {
		return err
	}
	defer p.Close()
	stop := w.rng.IntN(len(all) + 1)
	err = p.Each(ctx, func(h *Hit) bool { each = append(each, *h); return len(each) < stop })
	if err != nil {
		return err
	}
	if !slices.EqualFunc(paged, all, sameHit) {
		return fmt.Errorf("%d hits in pages of %d, %d at once", len(paged), q.K, len(all))
	}
	if n := max(min(stop, len(all)), min(1, len(all))); !slices.EqualFunc(each, all[:n], sameHit) {
		return fmt.Errorf("each gave %d hits, want %d", len(each), n)
	}
	return nil
}

// bestOf is what the best alternative of a concept gives to a hit.
func bestOf(h Hit, concept int, q Query) (best float64) {
	for t := range q.Terms {
		sum := 0.0
		for _, p := range h.Parts {
			if p.Term == t && q.Terms[t].Concept == concept {
				sum += p.Score
			}
		}
		best = max(best, sum)
	}
	return best
}

func sameHit(a, b Hit) bool {
	return a.Partition == b.Partition && a.Doc == b.Doc && a.Score == b.Score
}

// checkReads compares what is read of given documents and terms.
func (w *world) checkReads(parts []Partition, q Query) error {
	open := slices.Clone(parts)
	var refs []Ref
	for i := range open {
		open[i].Allow = nil
		for range 5 {
			refs = append(refs, Ref{open[i].ID, uint32(w.rng.IntN(int(w.twin.part(open[i].ID).next) + 2))})
		}
	}
	w.rng.Shuffle(len(refs), func(i, j int) { refs[i], refs[j] = refs[j], refs[i] })
	plain := q
	plain.Must = nil
	want := map[Ref]Hit{}
	for _, h := range w.twin.search(open, plain) {
		want[Ref{h.Partition, h.Doc}] = h
	}
	p, err := w.s.Prepare(context.Background(), w.db, parts, plain)
	if err != nil {
		return err
	}
	got := make([]Share, len(refs)*len(q.Terms))
	row := func(i int) []Share { return got[i*len(q.Terms) : (i+1)*len(q.Terms)] }
	err = p.Score(context.Background(), refs, row)
	if p.Close(); err != nil {
		return err
	}
	for i, ref := range refs {
		if w.twin.part(ref.Partition).dead[ref.Doc] {
			continue // has postings still
		}
		for c, share := range row(i) {
			if x := bestOf(want[ref], c, q); math.Abs(share.Score-x) > 1e-9 || x > 0 && q.Terms[share.Term].Concept != c {
				return fmt.Errorf("concept %d gives %v to %v, want %v", c, share, ref, x)
			}
		}
	}
	counted := Query{K: 1, FieldWeights: [NumFields]float64{1, 1, 1, 1}, Terms: slices.Clone(q.Terms)}
	for i := range counted.Terms {
		counted.Terms[i].Weight = 1
	}
	counts, err := w.s.Prepare(context.Background(), w.db, parts, counted)
	if err != nil {
		return err
	}
	defer counts.Close()
	freqs := w.twin.docFreqs(parts)
	for i, t := range counted.Terms {
		for f := range Field(NumFields) {
			if n, x := counts.DocFreq(i, f), freqs[name{f, t.Text}]; float64(n) != x {
				return fmt.Errorf("term %q of %s in %d documents, want %v", t.Text, f, n, x)
			}
		}
	}
	return w.checkTerms(refs)
}

// checkDictionary holds the rows of the dictionary to the postings, which tell what
// terms there are, and the vocabulary that is read to the twin's.
func (w *world) checkDictionary(partition uint32) error {
	p := w.twin.part(partition)
	_, c, err := readStats(w.db, partition)
	if err != nil {
		return err
	}
	want := map[name]bool{}
	for id, d := range p.docs {
		if id >= c.start {
			continue
		}
		for _, t := range d.Terms {
			want[name{t.Field, t.Text}] = true
		}
	}
	got := map[name]bool{}
	if err := eachDictionaryRow(w.db, partition, func(n name, id uint32) error {
		got[n] = true
		if id >= c.nextID {
			return fmt.Errorf("id %d of %v, the next is %d", id, n, c.nextID)
		}
		return nil
	}); err != nil {
		return err
	}
	if !maps.Equal(got, want) {
		return fmt.Errorf("dictionary of %d: %d terms, want %d", partition, len(got), len(want))
	}
	if err := w.checkVocabulary(partition, c.nextID, got); err != nil {
		return err
	}
	for f := range Field(NumFields) {
		prefix := termText(w.rng.IntN(testVocabulary))
		prefix = prefix[:w.rng.IntN(len(prefix)+1)]
		found, last := map[string]uint64{}, ""
		err := Vocabulary(w.db, partition, f, prefix, func(term []byte, docs uint64) bool {
			if string(term) <= last {
				found[""] = 1 // out of order
			}
			last = string(term)
			found[last] = docs
			return true
		})
		if want := p.vocabulary(f, prefix); err != nil || !maps.Equal(found, want) {
			return fmt.Errorf("vocabulary of %s in %d from %q: %v, %v, want %v", f, partition, prefix, found, err, want)
		}
	}
	return nil
}

// checkVocabulary compares what is listed for the vocabulary with the dictionary, and with
// what was listed of it at an earlier check.
func (w *world) checkVocabulary(partition, next uint32, dictionary map[name]bool) error {
	if got, err := NextTerm(w.db, partition); err != nil || got != next {
		return fmt.Errorf("next term of %d: %d, %v, want %d", partition, got, err, next)
	}
	want, all := map[string]bool{}, map[string]bool{}
	for n := range dictionary {
		want[n.text] = true
	}
	if err := Terms(w.db, partition, func(term []byte) error { all[string(term)] = true; return nil }); err != nil || !maps.Equal(all, want) {
		return fmt.Errorf("terms of %d: %d, %v, want %d", partition, len(all), err, len(want))
	}
	first := uint32(w.rng.Uint64N(uint64(next) + 2))
	want, all = map[string]bool{}, map[string]bool{}
	err := eachDictionaryRow(w.db, partition, func(n name, id uint32) error {
		if id >= first {
			want[n.text] = true
		}
		return nil
	})
	if err == nil {
		err = NewTerms(w.db, partition, first, func(term string) { all[term] = true })
	}
	if err != nil || !maps.Equal(all, want) {
		return fmt.Errorf("terms of %d from %d of %d on: %d, %v, want %d", partition, first, next, len(all), err, len(want))
	}
	tail := map[string]bool{}
	if err := TailTerms(w.db, partition, 0, func(term []byte) { tail[string(term)] = true }); err != nil {
		return err
	}
	for _, d := range w.twin.parts[partition].docs { // those in the tail and in the dictionary are all
		for _, t := range d.Terms {
			if !dictionary[name{t.Field, t.Text}] && !tail[t.Text] {
				return fmt.Errorf("term %q of %d is neither in the dictionary nor in the tail", t.Text, partition)
			}
		}
	}
	return nil
}

// eachDictionaryRow visits the terms and their ids, and checks that the names say
// the same.
func eachDictionaryRow(r pebble.Reader, partition uint32, visit func(n name, id uint32) error) error {
	prefix := appendPartition(nil, PrefixDictionary, partition)
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: storage.PrefixEnd(prefix)})
	if err != nil {
		return err
	}
	defer it.Close()
	names, err := openNames(r, partition)
	if err != nil {
		return err
	}
	defer names.it.Close()
	terms := 0
	for ok := it.First(); ok; ok = it.Next() {
		_, f, term, err := parseDictionaryKey(it.Key())
		if err != nil {
			return err
		}
		id, err := readID(it.Value())
		if err != nil {
			return err
		}
		n, err := names.name(id)
		if err != nil || n != (name{f, string(term)}) {
			return fmt.Errorf("term %q of %s is %d, which is %v: %w", term, f, id, n, err)
		}
		if err := visit(n, id); err != nil {
			return err
		}
		terms++
	}
	for ok := names.it.First(); ok; ok = names.it.Next() {
		row, err := readNames(nil, names.it.Value())
		if err != nil {
			return err
		}
		for _, n := range row {
			if n.text != "" {
				terms--
			}
		}
	}
	if terms != 0 {
		return fmt.Errorf("%d more terms than names", terms)
	}
	return nil
}

func (w *world) checkTerms(refs []Ref) error {
	for _, ref := range refs {
		doc, err := ReadDoc(w.db, ref.Partition, ref.Doc)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if _, err := ReadDoc(w.db, ref.Partition, 1<<31); !errors.Is(err, ErrNotFound) {
			return fmt.Errorf("a document that is not there: %v", err)
		}
		want := slices.Clone(w.twin.part(ref.Partition).docs[ref.Doc].Terms)
		slices.SortFunc(want, CompareTerms)
		if err == nil && doc.ID != ref.Doc || !slices.Equal(doc.Terms, want) {
			return fmt.Errorf("terms of %v: %v, want %v", ref, doc, want)
		}
	}
	return nil
}

var twinSeeds = flag.Uint64("seeds", 4, "how many random histories of the index are held against the twin")

func TestIndexAgainstTwin(t *testing.T) {
	for seed := range *twinSeeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			w := newWorld(t, seed)
			hits := 0
			for i := range 121 {
				w.step()
				if i%10 != 0 { // a check is dear
					continue
				}
				if err := w.check(); err != nil {
					t.Fatalf("seed %d, step %d: %v", seed, i, err)
				}
				hits += len(w.twin.part(0).docs)
			}
			if hits == 0 {
				t.Fatal("nothing was ever indexed")
			}
			if err := w.db.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// The same documents in ranges of other sizes, before and after compaction and
// reopening, give the same hits, to the bit.
func TestRangeSizeDoesNotMatter(t *testing.T) {
	const seed, docsN = 42, 700
	rng := rand.New(rand.NewPCG(seed, 2))
	var docs []Doc
	for id := uint32(blockSize - 300); len(docs) < docsN; id++ {
		docs = append(docs, randomDoc(rng, id, testVocabulary, 20))
	}
	var queries []Query
	for range 20 {
		queries = append(queries, randomQuery(rng, testVocabulary))
	}
	var live Bits
	for _, d := range docs {
		if d.ID%7 != 0 {
			live.Add(d.ID)
		}
	}
	results := func(db *storage.DB) (all [][]Hit) {
		for _, q := range queries {
			hits, err := new(Searcher).Search(context.Background(), db, []Partition{{ID: 9, Live: live}}, q)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, hits)
		}
		return all
	}
	var want [][]Hit
	for _, size := range []int{docsN, 1, 7, 100} {
		fs := vfs.NewMem()
		db := openTestDB(t, fs)
		w := NewWriter(db)
		for chunk := range slices.Chunk(docs, size) {
			b := db.NewIndexedBatch()
			if err := w.Add(b, 9, chunk); err != nil {
				t.Fatal(err)
			}
			for _, d := range chunk {
				if !live.Contains(d.ID) {
					if err := w.Remove(b, 9, d.ID); err != nil {
						t.Fatal(err)
					}
				}
			}
			mustCommit(t, db, b)
			w.Committed()
		}
		if want == nil {
			want = results(db)
		}
		for stage := range 4 {
			if !reflect.DeepEqual(results(db), want) {
				t.Fatalf("seed %d: ranges of %d, stage %d: other results", seed, size, stage)
			}
			switch stage {
			case 0:
				if err := db.Flush(); err != nil {
					t.Fatal(err)
				}
			case 1:
				compactAll(t, db)
			case 2:
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
				db = openTestDB(t, fs)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// content decodes all rows of a partition; neither ids nor grouping into runs show.
func content(t *testing.T, db *storage.DB, partition uint32) map[string]any {
	t.Helper()
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{PrefixPostings}, UpperBound: []byte{PrefixForward + 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	rows := map[string]any{}
	for ok := it.First(); ok; ok = it.Next() {
		k, v := it.Key(), it.Value()
		var row any
		switch k[0] {
		case PrefixPostings:
			var pk postingKey
			if pk, err = parsePostingKey(k); err == nil {
				rows[fmt.Sprint(pk)], rows[fmt.Sprint(pk, " removed")], err = readRow(nil, v)
			}
		case PrefixStatistics:
			rows[fmt.Sprintf("%x", k)], _, err = decodeStats(v)
		case PrefixForward:
			var id uint32
			var mark bool
			if _, id, mark, err = ParseForwardKey(k); err == nil && !mark {
				row, err = ReadDoc(db, partition, id)
			}
			rows[fmt.Sprintf("%x", k)] = row
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := eachDictionaryRow(db, partition, func(n name, _ uint32) error { rows[fmt.Sprint(n)] = "has an id"; return nil }); err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestRemovePhysicalLeavesNoTrace(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 3))
	var docs, others []Doc
	for id := range uint32(600) {
		docs = append(docs, randomDoc(rng, id, testVocabulary, 20))
	}
	// The last stays: where the tail begins is not taken back.
	gone := func(id uint32) bool { return id%3 == 0 || id > 500 && id < 598 }
	for _, d := range docs {
		if !gone(d.ID) {
			others = append(others, d)
		}
	}
	build := func(docs []Doc) (*storage.DB, *Writer) {
		db := openTestDB(t, vfs.NewMem())
		w := NewWriter(db)
		for chunk := range slices.Chunk(docs, 30) {
			b := db.NewBatch()
			if err := w.Add(b, 1, chunk); err != nil {
				t.Fatal(err)
			}
			mustCommit(t, db, b)
			w.Committed()
		}
		return db, w
	}
	db, w := build(docs)
	defer db.Close()
	b := db.NewIndexedBatch()
	for _, d := range docs {
		if !gone(d.ID) {
			continue
		}
		if d.ID%2 == 0 {
			if err := w.Remove(b, 1, d.ID); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // an erasure may be repeated
			if err := w.RemovePhysical(b, 1, d.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	mustCommit(t, db, b)
	clean, _ := build(others)
	defer clean.Close()
	compactAll(t, db)
	if got, want := content(t, db, 1), content(t, clean, 1); !reflect.DeepEqual(got, want) {
		t.Fatalf("seed %d: %d rows, want %d", seed, len(got), len(want))
	}
	b = db.NewIndexedBatch()
	w.Committed()
	for _, d := range others {
		if err := w.RemovePhysical(b, 1, d.ID); err != nil {
			t.Fatal(err)
		}
	}
	mustCommit(t, db, b)
	if got := content(t, db, 1); len(got) != 1 {
		t.Fatalf("after erasing all: %v", got)
	}
	if st, err := ReadStats(db, 1); err != nil || st != (Stats{}) {
		t.Fatal(st, err)
	}
}

// TestAgainReadsNothingTwice: words that were read are not read again, and an error closes.
func TestAgainReadsNothingTwice(t *testing.T) {
	db := openTestDB(t, vfs.NewMem())
	w := NewWriter(db)
	rng := rand.New(rand.NewPCG(1, 2))
	var docs []Doc
	for id := range uint32(400) {
		docs = append(docs, randomDoc(rng, id, testVocabulary, 20))
	}
	b := db.NewIndexedBatch()
	if err := w.Add(b, 1, docs); err != nil {
		t.Fatal(err)
	}
	mustCommit(t, db, b)
	q := randomQuery(rng, testVocabulary)
	reads := &countingReader{Reader: db}
	p, err := new(Searcher).Prepare(t.Context(), reads, []Partition{{ID: 1}}, q)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for range 3 {
		if err := p.Again(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	if reads.iterators != 1 {
		t.Errorf("rows were read %d times", reads.iterators)
	}
	q.Terms = append(q.Terms, QueryTerm{Text: "other", Weight: 1})
	if err := p.Again(t.Context(), q); err != nil || reads.iterators != 2 {
		t.Errorf("%v; rows were read %d times", err, reads.iterators)
	}
	if q.K = 0; p.Again(t.Context(), q) == nil || p.sc != nil {
		t.Error("it is not closed after an error")
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

type countingReader struct {
	pebble.Reader
	iterators int
}

func (r *countingReader) NewIter(o *pebble.IterOptions) (*pebble.Iterator, error) {
	r.iterators++
	return r.Reader.NewIter(o)
}
