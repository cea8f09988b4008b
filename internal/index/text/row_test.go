package text

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// randomPostings draws n ascending postings, dense or sparse.
func randomPostings(rng *rand.Rand, n int) (ps []posting) {
	gap := 1 + rng.IntN(blockSize/n)
	next := uint32(0)
	for range n {
		local := next + uint32(rng.IntN(gap))
		tf, length := uint32(1), uint32(rng.IntN(60))
		if rng.IntN(4) == 0 {
			tf += uint32(rng.IntN(5))
		}
		if rng.IntN(200) == 0 {
			tf, length = 1+uint32(rng.IntN(MaxTF)), uint32(rng.IntN(MaxLength+1))
		}
		ps = append(ps, makePosting(local, tf, length))
		next = local + 1
	}
	return ps
}

// appendPieces writes ps as an index under way does: in runs, chunks and rows of
// any sizes.
func appendPieces(rng *rand.Rand, dst []byte, ps []posting) (_ []byte, removed uint32) {
	for len(ps) > 0 {
		n := 1 + rng.IntN(min(len(ps), 300))
		switch {
		case rng.IntN(3) == 0:
			dst = appendRun(dst, ps[:n])
		case rng.IntN(2) == 0:
			n = min(n, chunkSize)
			dst = appendChunk(dst, ps[:n])
		default:
			m := uint32(rng.IntN(3))
			dst = appendRow(dst, m, ps[:n])
			removed += m
		}
		ps = ps[n:]
	}
	return dst, removed
}

// However postings were put together, a packed row is the same.
func TestPackedRowIsCanonical(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 5))
		ps := randomPostings(rng, 1+rng.IntN(1000))
		pieces, removed := appendPieces(rng, nil, ps)
		got, n, err := readRow(nil, pieces)
		if removed > uint32(len(ps)) {
			continue
		}
		if err != nil || n != removed || !slices.Equal(got, ps) {
			t.Fatalf("seed %d: %d postings, %d removed, %v", seed, len(got), n, err)
		}
		want := appendRow(nil, removed, ps)
		packed, err := packRow(bytes.Clone(pieces))
		if err != nil || !bytes.Equal(packed, want) {
			t.Fatalf("seed %d: packed %x, want %x, %v", seed, packed, want, err)
		}
		if again, err := packRow(bytes.Clone(packed)); err != nil || !bytes.Equal(again, want) {
			t.Fatalf("seed %d: packed again %x, want %x, %v", seed, again, want, err)
		}
	}
}

// Every posting is covered by a pair, and a few pairs are real postings.
func TestPairsCoverPostings(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 6))
		var e extremes
		var all []pair
		tfs := 2 + int(seed%2)*maxPairs // fewer than maxPairs, or more
		for range 1 + rng.IntN(chunkSize) {
			p := pair{1 + uint32(rng.IntN(tfs)), uint32(rng.IntN(30))}
			all = append(all, p)
			e.add(p)
		}
		for _, p := range all {
			if !slices.ContainsFunc(e.pairs[:e.n], func(o pair) bool { return o.covers(p) }) {
				t.Fatalf("seed %d: %v is not covered by %v", seed, p, e.pairs[:e.n])
			}
		}
		for i, p := range e.pairs[:e.n] {
			if tfs < maxPairs && !slices.Contains(all, p) {
				t.Fatalf("seed %d: %v is no posting", seed, p)
			}
			if i > 0 && (e.pairs[i-1].tf <= p.tf || e.pairs[i-1].length <= p.length) {
				t.Fatalf("seed %d: pairs %v", seed, e.pairs[:e.n])
			}
		}
	}
}

// seek agrees with looking at every posting.
func TestChunkSeek(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for range 50 {
		ps := randomPostings(rng, 1+rng.IntN(chunkSize))
		v := appendChunk(nil, ps)
		c, err := readChunk(v, 1)
		if err != nil {
			t.Fatal(err)
		}
		for range 200 {
			local := uint32(rng.IntN(blockSize))
			want := slices.IndexFunc(ps, func(p posting) bool { return p.local() >= local })
			if want < 0 {
				want = len(ps)
			}
			if got := c.seek(v, local); got != want {
				t.Fatalf("seek %d: %d, want %d", local, got, want)
			}
		}
	}
}

func FuzzRow(f *testing.F) {
	f.Add([]byte{1, 1, 0, 5})
	f.Add(unhex(f, "01030005"+"0505ac02"+"010000"+"010290037f"+"edfc07fdff3fffffff7f"))
	f.Add([]byte{1, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F})
	f.Add([]byte{1, 1, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01})
	rng := rand.New(rand.NewPCG(1, 7))
	for range 8 {
		v, _ := appendPieces(rng, nil, randomPostings(rng, 1+rng.IntN(400)))
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v []byte) {
		ps, removed, err := readRow(nil, v)
		s := &scratch{}
		n, errLoad := s.loadRow(v)
		if errLoad == nil { // what a search does with it must not panic, right or wrong
			s.slots = []slot{{boost: 1, kA: 1}}
			s.lists = []list{{to: len(s.chunks)}}
			s.boundAll()
			s.top.k = 3
			for range 2 {
				s.scoreGroup(&Partition{Allow: Bits{0: 5, blockSize / 64: 1}}, group{to: 1}, &Query{Must: [][]int{{0}}})
				s.scoreGroup(&Partition{}, group{to: 1}, &Query{})
			}
		}
		packed, errPack := packRow(bytes.Clone(v))
		count, errCount := countRow(v)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) || errPack != nil && !errors.Is(errPack, ErrCorrupt) || errLoad != nil && !errors.Is(errLoad, ErrCorrupt) || errCount != nil && !errors.Is(errCount, ErrCorrupt) {
				t.Fatal(err, errPack, errLoad, errCount)
			}
			return
		}
		if errCount != nil || count != n {
			t.Fatalf("counted %d documents, %v, want %d", count, errCount, n)
		}
		if errLoad != nil || n != uint64(len(ps))-uint64(removed) {
			t.Fatalf("%d documents, %v, want %d less %d", n, errLoad, len(ps), removed)
		}
		if !slices.IsSorted(ps) || len(ps) > blockSize {
			t.Fatalf("%d postings out of order", len(ps))
		}
		again, m, err := readRow(nil, packed)
		if errPack != nil || err != nil || m != removed || !slices.Equal(again, ps) {
			t.Fatal(errPack, err, m)
		}
	})
}
