package text

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/storage"
)

// twin is the index as it should be, in maps.
type twin struct {
	parts map[uint32]*twinPart
}

type twinPart struct {
	docs map[uint32]Doc
	dead map[uint32]bool
	next uint32
}

// plainSet is a Set without bulk access.
type plainSet map[uint32]bool

func (s plainSet) Contains(id uint32) bool { return s[id] }

func newTwin() *twin { return &twin{parts: map[uint32]*twinPart{}} }

func (t *twin) part(id uint32) *twinPart {
	p := t.parts[id]
	if p == nil {
		p = &twinPart{docs: map[uint32]Doc{}, dead: map[uint32]bool{}}
		t.parts[id] = p
	}
	return p
}

func (p *twinPart) living() []uint32 {
	var ids []uint32
	for id := range p.docs {
		if !p.dead[id] {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (t *twin) stats(parts []Partition) (s Stats) {
	for _, pt := range parts {
		p := t.part(pt.ID)
		for _, id := range p.living() {
			s.addDoc(p.docs[id].Lengths)
		}
	}
	return s
}

// docFreqs counts the living documents of each term and field.
func (t *twin) docFreqs(parts []Partition) map[name]float64 {
	n := map[name]float64{}
	for _, pt := range parts {
		p := t.part(pt.ID)
		for _, id := range p.living() {
			for _, t := range p.docs[id].Terms {
				n[name{t.Field, t.Text}]++
			}
		}
	}
	return n
}

// holds reports whether a document has what q.Must asks for.
func (q *Query) holds(d Doc) bool {
	for _, group := range q.Must {
		if !slices.ContainsFunc(group, func(i int) bool {
			return slices.ContainsFunc(d.Terms, func(t Term) bool {
				return q.FieldWeights[t.Field] != 0 && t.Text == q.Terms[i].Text
			})
		}) {
			return false
		}
	}
	return true
}

func (t *twin) search(parts []Partition, q Query) []Hit {
	st, freqs := t.stats(parts), t.docFreqs(parts)
	var asked [][2]uint32 // documents that are alive, allowed and have what must be there
	for _, pt := range parts {
		p := t.part(pt.ID)
		for _, id := range p.living() {
			if (pt.Allow == nil || pt.Allow.Contains(id)) && q.holds(p.docs[id]) {
				asked = append(asked, [2]uint32{pt.ID, id})
			}
		}
	}
	scores := map[[2]uint32]float64{}
	found := map[[2]uint32][]TermScore{}
	read := func(i, f int) bool {
		required := slices.ContainsFunc(q.Must, func(g []int) bool { return slices.Contains(g, i) })
		return q.FieldWeights[f] != 0 && (q.Terms[i].Weight != 0 || required)
	}
	for i, qt := range q.Terms {
		for f, weight := range q.FieldWeights {
			w := qt.Weight * weight
			if !read(i, f) {
				continue
			}
			n := freqs[name{Field(f), qt.Text}]
			for j, other := range q.Terms {
				if qt.Bounded && other.Concept == qt.Concept && read(j, f) {
					n = max(n, freqs[name{Field(f), other.Text}])
				}
			}
			idf := math.Log(1 + (max(float64(st.Docs), 100)-n+0.5)/(n+0.5))
			avg := float64(st.Length[f]) / float64(st.Docs)
			for _, at := range asked {
				d := t.parts[at[0]].docs[at[1]]
				for _, term := range d.Terms {
					if term.Text != qt.Text || term.Field != Field(f) {
						continue
					}
					tf, l := float64(term.TF), float64(d.Lengths[f])
					norm := 1 - q.B
					if avg > 0 {
						norm += q.B * l / avg
					}
					x := w * idf * tf * (q.K1 + 1) / (tf + q.K1*norm)
					scores[at] += x
					found[at] = append(found[at], TermScore{Term: i, Score: x})
				}
			}
		}
	}
	var hits []Hit
	for at, s := range scores {
		hits = append(hits, Hit{Partition: at[0], Doc: at[1], Score: s, Parts: found[at]})
	}
	sort.Slice(hits, func(i, j int) bool { return makeScored(&hits[j]).worse(makeScored(&hits[i])) })
	return hits
}

// sameHits compares with the twin's full ranking. Where scores are closer than the
// tolerance the order may differ, so positions are compared by score and each
// document by its own score.
func sameHits(got, want []Hit, k int) error {
	if len(got) != min(k, len(want)) {
		return fmt.Errorf("%d hits, want %d of %d", len(got), min(k, len(want)), len(want))
	}
	all := map[[2]uint32]Hit{}
	for _, h := range want {
		all[[2]uint32{h.Partition, h.Doc}] = h
	}
	seen := map[[2]uint32]bool{}
	for i, h := range got {
		at := [2]uint32{h.Partition, h.Doc}
		w, ok := all[at]
		switch {
		case !ok || seen[at]:
			return fmt.Errorf("hit %d: %v should not be there", i, h)
		case math.Abs(h.Score-w.Score) > 1e-9 || math.Abs(h.Score-want[i].Score) > 1e-9:
			return fmt.Errorf("hit %d: %v, twin %v, twin's hit here %v", i, h, w, want[i])
		case i > 0 && makeScored(&got[i-1]).worse(makeScored(&got[i])):
			return fmt.Errorf("hit %d out of order", i)
		}
		seen[at] = true
		if h.Parts != nil {
			sum := 0.0
			for _, p := range h.Parts {
				sum += p.Score
			}
			if len(h.Parts) != len(w.Parts) || math.Abs(sum-h.Score) > 1e-9 {
				return fmt.Errorf("hit %d: parts %v do not make %v", i, h.Parts, h.Score)
			}
		}
	}
	return nil
}

// termText makes terms of which some begin another.
func termText(n int) string { return strconv.FormatInt(int64(n)*7919, 2+n%30) }

// vocabulary lists a field's terms that begin with prefix, and how many living
// documents have them.
func (p *twinPart) vocabulary(f Field, prefix string) map[string]uint64 {
	all := map[string]uint64{}
	for _, id := range p.living() {
		for _, t := range p.docs[id].Terms {
			if t.Field == f && strings.HasPrefix(t.Text, prefix) {
				all[t.Text]++
			}
		}
	}
	return all
}

// randomDoc draws terms from a skewed vocabulary.
func randomDoc(rng *rand.Rand, id uint32, vocabulary, size int) Doc {
	d := Doc{ID: id}
	tf := map[Term]uint32{}
	for f := range Field(NumFields) {
		n := rng.IntN(size + 1)
		if f != FieldText {
			n = rng.IntN(3)
		}
		for range n {
			v := int(math.Pow(rng.Float64(), 3) * float64(vocabulary))
			tf[Term{Text: termText(v), Field: f}]++
			d.Lengths[f]++
		}
	}
	for t, n := range tf {
		t.TF = n
		if rng.IntN(50) == 0 {
			t.TF += uint32(rng.IntN(1000))
		}
		d.Terms = append(d.Terms, t)
	}
	return d
}

func randomQuery(rng *rand.Rand, vocabulary int) Query {
	q := Query{K: 1 + rng.IntN(30), K1: 0.5 + rng.Float64(), B: rng.Float64(), Explain: rng.IntN(2) == 0}
	q.FieldWeights = [NumFields]float64{1, 2, float64(rng.IntN(2)), float64(rng.IntN(2)) / 4}
	alternatives := 1 + rng.IntN(3)
	for i := range 1 + rng.IntN(8) {
		t := QueryTerm{Weight: float64(rng.IntN(4)) / 2, Concept: i / alternatives, Bounded: i%alternatives > 0}
		if rng.IntN(8) > 0 {
			t.Text = termText(int(math.Pow(rng.Float64(), 3) * float64(vocabulary)))
		}
		q.Terms = append(q.Terms, t)
	}
	for rng.IntN(2) == 0 && len(q.Must) < 3 {
		group := []int{rng.IntN(len(q.Terms))}
		if rng.IntN(2) == 0 {
			group = append(group, rng.IntN(len(q.Terms)))
		}
		q.Must = append(q.Must, group)
	}
	return q
}

// openPartitions draws partitions with their live sets, bulk or plain, and filters.
func (t *twin) openPartitions(rng *rand.Rand) []Partition {
	var ids []uint32
	for id := range t.parts {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	var parts []Partition
	for _, id := range ids[:rng.IntN(len(ids)+1)] {
		p := Partition{ID: id}
		var live, allow Bits
		plainLive, plainAllow := plainSet{}, plainSet{}
		for _, d := range t.parts[id].living() {
			live.Add(d)
			plainLive[d] = true
			if rng.IntN(3) == 0 {
				allow.Add(d)
				plainAllow[d] = true
			}
		}
		switch rng.IntN(3) {
		case 0:
			p.Live = plainLive
		case 1:
			p.Live = live
		default:
			if p.Live = Set(live); len(t.parts[id].dead) == 0 {
				p.Live = nil
			}
		}
		switch rng.IntN(4) {
		case 0:
			p.Allow = plainAllow
		case 1:
			p.Allow = allow
		}
		parts = append(parts, p)
	}
	return parts
}

// openTestDB opens a database whose cache holds all blocks: with the race detector Pebble
// overwrites each block that leaves it.
func openTestDB(t testing.TB, fs vfs.FS) *storage.DB {
	t.Helper()
	db, err := storage.Open(storage.Options{Dir: "db", FS: fs, Merge: MergeTable(), MemTableBytes: 4 << 20, CacheBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func mustCommit(t testing.TB, db *storage.DB, b *pebble.Batch) {
	t.Helper()
	if err := db.Commit(b, false); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

func compactAll(t testing.TB, db *storage.DB) {
	t.Helper()
	if err := db.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := db.Compact(context.Background(), []byte{0}, []byte{0xFF}, false); err != nil {
		t.Fatal(err)
	}
}
