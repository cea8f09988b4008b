package vector

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"strings"
	"testing"
)

func saved(tb testing.TB, s *Set) []byte {
	tb.Helper()
	var buf bytes.Buffer
	if err := s.Save(&buf); err != nil {
		tb.Fatal(err)
	}
	return buf.Bytes()
}

func smallOptions() Options {
	return Options{ExactBelow: -1, Params: Params{M: 2, EfConstruction: 4, EfSearch: 8}}
}

// squares are vectors whose dot products are exact on every processor.
func squares() [][]float32 {
	return [][]float32{{1, 0}, {0, 1}, {-1, 0}, {0, -1}, {1, 0}, {0, 1}}
}

func smallSet(tb testing.TB) *Set {
	s := mustSet(tb, 2, smallOptions())
	fill(tb, s, 5, squares())
	mustWait(tb, s)
	return s
}

// goldenFile has the header, the IDs, the ground rows, the rows above and the
// checksum.
const goldenFile = `
4d4e5647 02 01 0200 04000000 02000000 06000000 02000000 04000000
05000000 06000000 07000000 08000000 09000000 0a000000
01000080 02000000 03000000 04000000
00000080 02000080 05000000 ffffffff
01000080 00000000 03000080 ffffffff
02000080 00000000 04000080 ffffffff
03000080 00000000 05000080 ffffffff
04000080 01000000 ffffffff ffffffff
02000000 05000000 00000000 05000000 ffffffff ffffffff 00000000 02000000
2d21e81b
`

func TestFileGolden(t *testing.T) {
	want, err := hex.DecodeString(strings.Join(strings.Fields(goldenFile), ""))
	if err != nil {
		t.Fatal(err)
	}
	if got := saved(t, smallSet(t)); !bytes.Equal(got, want) {
		t.Errorf("file changed; raise the version.\ngot %x", got)
	}
}

// idle returns a set with the vectors of smallSet whose builder never starts,
// so that only Load gives it a graph.
func idle(tb testing.TB) *Set {
	opt := smallOptions()
	opt.ExactBelow = 1000
	s := mustSet(tb, 2, opt)
	fill(tb, s, 5, squares())
	return s
}

func TestDamagedFiles(t *testing.T) {
	file := saved(t, smallSet(t))
	s := idle(t)
	for n := range file {
		if err := s.Load(bytes.NewReader(file[:n])); !errors.Is(err, ErrGraphFile) {
			t.Fatalf("first %d bytes: %v", n, err)
		}
	}
	for bit := range 8 * len(file) {
		bad := bytes.Clone(file)
		bad[bit/8] ^= 1 << (bit % 8)
		if err := s.Load(bytes.NewReader(bad)); !errors.Is(err, ErrGraphFile) {
			t.Fatalf("bit %d flipped: %v", bit, err)
		}
	}
	if err := s.Load(bytes.NewReader(append(bytes.Clone(file), 0))); !errors.Is(err, ErrGraphFile) {
		t.Errorf("a byte too many: %v", err)
	}
	if s.Stats().InGraph != 0 {
		t.Errorf("a damaged file left something: %+v", s.Stats())
	}
	if err := s.Load(bytes.NewReader(file)); err != nil || s.Stats().InGraph != 6 {
		t.Errorf("the whole file: %v, %+v", err, s.Stats())
	}
	if !bytes.Equal(saved(t, s), file) {
		t.Error("saved again, the file differs")
	}
}

// A file whose checksum fits but whose graph is unsound is refused as well.
func TestUnsoundFiles(t *testing.T) {
	file := saved(t, smallSet(t))
	s := idle(t)
	refused := 0
	for at := 0; at < len(file)-4; at++ {
		for _, b := range []byte{0, 1, 2, 3, 7, 0xff} {
			bad := bytes.Clone(file[:len(file)-4])
			if bad[at] == b {
				continue
			}
			bad[at] = b
			mustWait(t, s)
			s.gen.Load().graph = newHNSW(s.opt.Params, 1, &s.kern, s.gen.Load().store)
			err := s.Load(bytes.NewReader(binary.LittleEndian.AppendUint32(bad, crc32.Checksum(bad, castagnoli()))))
			if errors.Is(err, ErrGraphFile) {
				refused++
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if g, ok := s.gen.Load().graph.(*hnsw); ok && g.inserted() > 0 {
				if got := reachable(g); got != int(g.inserted()) {
					t.Fatalf("byte %d = %d: %d of %d nodes reachable", at, b, got, g.inserted())
				}
			}
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

func TestLoadIntoGrownAndShrunkSet(t *testing.T) {
	const n, dim = 1500, 24
	data := newClustered(31, dim, 30, 0.8)
	vs := data.take(n)
	opt := Options{ExactBelow: 500, Params: Params{M: 12, EfConstruction: 60}}
	first := mustSet(t, dim, opt)
	fill(t, first, 0, vs)
	mustWait(t, first)
	file := saved(t, first)

	build := func(gone func(int) bool) (*Set, twin) {
		// The builder is kept from running until the file is in.
		s := mustSet(t, dim, opt)
		s.opt.ExactBelow = 1 << 30
		live := twin{}
		for i, v := range vs {
			if !gone(i) {
				if err := s.Add(ID(i), v); err != nil {
					t.Fatal(err)
				}
				live[ID(i)] = v
			}
		}
		extra := data.take(100)
		fill(t, s, n+10, extra)
		for i, v := range extra {
			live[ID(n+10+i)] = v
		}
		s.opt.ExactBelow = opt.ExactBelow
		return s, live
	}
	for name, gone := range map[string]func(int) bool{
		"same":    func(int) bool { return false },
		"holes":   func(i int) bool { return i%5 == 0 },
		"cluster": func(i int) bool { return i < 200 },
		"end":     func(i int) bool { return i > n-150 },
	} {
		t.Run(name, func(t *testing.T) {
			s, live := build(gone)
			if !gone(7) {
				s.Delete(7)
				delete(live, 7)
			}
			if err := s.Load(bytes.NewReader(file)); err != nil {
				t.Fatal(err)
			}
			if st := s.Stats(); st.InGraph < n {
				t.Fatalf("the graph was not taken over: %+v", st)
			}
			mustWait(t, s)
			if st := s.Stats(); st.Guard != GuardOK || st.Tail != 0 || st.Live != len(live) {
				t.Fatalf("%+v", st)
			}
			recall := 0.0
			for _, q := range data.take(50) {
				recall += checkHits(t, live, q, 10, nil, mustSearch(t, s, q, 10, nil)) / 50
			}
			if recall < 0.97 {
				t.Errorf("recall %.3f", recall)
			}
		})
	}
	for name, gone := range map[string]func(int) bool{
		"too many holes": func(i int) bool { return i%2 == 0 },
	} {
		s, _ := build(gone)
		if err := s.Load(bytes.NewReader(file)); !errors.Is(err, ErrGraphFile) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := mustSet(t, dim, Options{ExactBelow: 500, Params: Params{M: 13, EfConstruction: 60}})
	if err := s.Load(bytes.NewReader(file)); !errors.Is(err, ErrGraphFile) {
		t.Errorf("other parameters: %v", err)
	}
	if err := first.Load(bytes.NewReader(file)); err != nil {
		t.Errorf("a file with nothing new: %v", err)
	}
	_ = first.Close()
}

func TestLoadUnknownID(t *testing.T) {
	file := saved(t, smallSet(t))
	opt := smallOptions()
	opt.ExactBelow = 1000
	s := mustSet(t, 2, opt)
	fill(t, s, 4, squares()) // 4 is not in the file
	if err := s.Load(bytes.NewReader(file)); !errors.Is(err, ErrGraphFile) {
		t.Errorf("an id that the file lacks: %v", err)
	}
}

func TestOtherEnginesSaveNoGraph(t *testing.T) {
	own := saved(t, smallSet(t))
	for _, engine := range []Engine{EngineCoder, EngineExact} {
		opt := smallOptions()
		opt.Engine = engine
		s, err := NewSet(2, opt)
		if errors.Is(err, ErrEngineUnavailable) {
			continue
		}
		defer s.Close()
		fill(t, s, 5, squares())
		file := saved(t, s)
		if len(file) != fileHeaderLen+4 {
			t.Errorf("%s: %d bytes", engine, len(file))
		}
		if err := errors.Join(s.Load(bytes.NewReader(file)), s.Load(bytes.NewReader(own))); err != nil {
			t.Errorf("%s: %v", engine, err)
		}
	}
}

// full is a writer that takes so many bytes and no more.
type full struct{ left int }

var errFull = errors.New("no space")

func (f *full) Write(p []byte) (int, error) {
	if len(p) > f.left {
		return 0, errFull
	}
	f.left -= len(p)
	return len(p), nil
}

func TestSaveToFullDisk(t *testing.T) {
	data := newClustered(32, 4, 3, 0.5)
	s := mustSet(t, 4, Options{ExactBelow: -1, Params: Params{M: 2, EfConstruction: 4}})
	fill(t, s, 0, data.take(4000))
	mustWait(t, s)
	for _, room := range []int{0, 70000, len(saved(t, s)) - 1} {
		if err := s.Save(&full{left: room}); !errors.Is(err, errFull) {
			t.Errorf("room for %d bytes: %v", room, err)
		}
	}
}

func FuzzLoad(f *testing.F) {
	file := saved(f, smallSet(f))
	f.Add(file)
	f.Add(file[:len(file)-1])
	f.Add(file[:fileHeaderLen])
	f.Add([]byte(fileMagic))
	huge := bytes.Clone(file)
	binary.LittleEndian.PutUint32(huge[16:], 1<<31-2)
	f.Add(huge)
	f.Fuzz(func(t *testing.T, b []byte) {
		s := idle(t)
		if len(b) >= 4 { // let the fuzzer past the checksum
			binary.LittleEndian.PutUint32(b[len(b)-4:], crc32.Checksum(b[:len(b)-4], castagnoli()))
		}
		err := s.Load(bytes.NewReader(b))
		if err != nil && !errors.Is(err, ErrGraphFile) {
			t.Fatal(err)
		}
		mustWait(t, s) // the guard may look at the loaded graph
		s.opt.ExactBelow = 0
		if err == nil {
			fill(t, s, 100, squares())
			mustWait(t, s)
		}
		if hits := mustSearch(t, s, []float32{1, 0}, 3, nil); len(hits) != 3 || hits[0].ID != 5 {
			t.Fatalf("hits %v", hits)
		}
		_ = s.Close()
	})
}
