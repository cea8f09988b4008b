package static

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"mneme/internal/embed/builtin"
	"mneme/internal/embed/static/tokens"
	"mneme/internal/text"
)

// randomRows returns rows for n words "w0"… and a map twin of the table.
func randomRows(r *rand.Rand, n, dims int) ([]Row, map[string]Row) {
	twin := map[string]Row{}
	var rows []Row
	for i := range n {
		word := fmt.Sprintf("w%d", i)
		row := Row{Hash: Hash(word), Scale: uint16(1 + r.IntN(math.MaxUint16)), Values: make([]int8, dims)}
		for k := range row.Values {
			row.Values[k] = int8(r.IntN(255) - 127)
		}
		rows, twin[word] = append(rows, row), row
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(a.Hash, b.Hash) })
	return rows, twin
}

func TestTableAgainstMap(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for _, n := range []int{0, 1, 2, 1000, 70000} {
		rows, twin := randomRows(r, n, 32)
		b, err := Encode(32, rows)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		table, err := parse(b)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for i := range n + 1000 {
			word := fmt.Sprintf("w%d", i)
			want, known := twin[word]
			at := table.find(Hash(word))
			if (at >= 0) != known {
				t.Fatalf("seed %d: %s is at %d, known %v", seed, word, at, known)
			}
			if !known {
				continue
			}
			for k, x := range table.vector(at) {
				if int8(x) != want.Values[k] {
					t.Fatalf("seed %d: %s has other values", seed, word)
				}
			}
			if table.scale(at) != int64(want.Scale) {
				t.Fatalf("seed %d: %s has another scale", seed, word)
			}
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	a, b := Row{Hash: 1 << 40, Values: make([]int8, 32)}, Row{Hash: 2 << 40, Values: make([]int8, 32)}
	for name, rows := range map[string][]Row{
		"wrong order": {b, a}, "same hash": {a, a}, "short row": {{Hash: 1, Values: make([]int8, 31)}},
	} {
		if _, err := Encode(32, rows); !errors.Is(err, ErrWeights) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	rows, _ := randomRows(rand.New(rand.NewPCG(1, 1)), 3, semantic)
	good, _ := Encode(semantic, rows)
	f.Add(good, "w1")
	f.Add(good[:len(good)-1], "w1")
	f.Add([]byte(magic), "x")
	f.Fuzz(func(t *testing.T, b []byte, s string) {
		m, err := Open(b)
		if err != nil {
			if !errors.Is(err, ErrWeights) {
				t.Errorf("error %v is of another kind", err)
			}
			return
		}
		dst := make([]int8, Dimensions)
		m.Embed(dst, text.NewAnalysis(s)) // whatever the starts say, it stays within the weights
	})
}

// TestDamagedStarts: rows that do not exist are never read.
func TestDamagedStarts(t *testing.T) {
	rows, _ := randomRows(rand.New(rand.NewPCG(1, 1)), 3, semantic)
	b, err := Encode(semantic, rows)
	if err != nil {
		t.Fatal(err)
	}
	for i := header; i < header+4*(buckets+1); i++ {
		b[i] = 0xff
	}
	m, err := Open(b)
	if err != nil {
		t.Fatal(err)
	}
	m.Embed(make([]int8, Dimensions), text.NewAnalysis("w0 w1 w2"))
}

// TestEmbedAgainstFloat compares with the same sums in float arithmetic.
func TestEmbedAgainstFloat(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	rows, twin := randomRows(r, 50, semantic)
	b, err := Encode(semantic, rows)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Open(bytes.Clone(b))
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		s := ""
		for range 1 + r.IntN(12) {
			s += fmt.Sprintf("w%d ", r.IntN(80))
		}
		got := make([]int8, Dimensions)
		m.Embed(got, text.NewAnalysis(s))
		for k, want := range floatEmbed(s, twin) {
			if math.Abs(want-float64(got[k])) > 0.6 {
				t.Fatalf("seed %d, %q: dimension %d is %d, want %.2f", seed, s, k, got[k], want)
			}
		}
	}
}

func floatEmbed(s string, twin map[string]Row) []float64 {
	out := make([]float64, Dimensions)
	tokens.Each(text.NewAnalysis(s), nil, func(t tokens.Token) {
		for k, x := range twin[t.Text].Values {
			out[k] += float64(twin[t.Text].Scale) * float64(x)
		}
	})
	sums := make([]int64, hashed)
	builtin.Sums(sums, text.NewAnalysis(s))
	for k, x := range sums {
		out[semantic+k] = float64(x)
	}
	to := func(v []float64, length float64) {
		sum := 0.0
		for _, x := range v {
			sum += x * x
		}
		for k := range v {
			if sum > 0 {
				v[k] *= length / math.Sqrt(sum)
			}
		}
	}
	to(out[:semantic], semanticShare)
	to(out[semantic:], hashedShare)
	to(out, builtin.Scale)
	return out
}
