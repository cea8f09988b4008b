package words

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
)

// identifiers are random hashes, names made of parts, and letters.
func identifiers(n int) []string {
	rng := rand.New(rand.NewPCG(1, 2))
	parts := []string{"get", "user", "profile", "config", "store", "index", "log", "raft", "node", "query", "score", "text", "vector", "open", "close", "read", "write", "state", "shard", "frame"}
	seen := make(map[string]bool, n)
	out := make([]string, 0, n)
	for len(out) < n {
		var b []byte
		switch rng.IntN(3) {
		case 0:
			for range 8 + rng.IntN(24) {
				b = append(b, "0123456789abcdef"[rng.IntN(16)])
			}
		case 1:
			for range 2 + rng.IntN(3) {
				b = append(b, parts[rng.IntN(len(parts))]...)
			}
			b = fmt.Append(b, rng.IntN(100000))
		default:
			for range 5 + rng.IntN(10) {
				b = append(b, byte('a'+rng.IntN(26)))
			}
		}
		if s := string(b); !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

const many = 1_000_000

var million = sync.OnceValues(func() (*Vocabulary, []string) {
	all := identifiers(many)
	v, err := Build(append([]string(nil), all[:many*7/8]...))
	if err != nil {
		panic(err)
	}
	return v.With(all[many*7/8:]), all
})

// misspelt leaves one letter of each word out.
func misspelt(all []string, n int) (out []string) {
	rng := rand.New(rand.NewPCG(3, 4))
	for len(out) < n {
		w := all[rng.IntN(len(all))]
		at := 1 + rng.IntN(len(w)-1)
		out = append(out, w[:at]+w[at+1:])
	}
	return out
}

func BenchmarkBuild(b *testing.B) {
	all := identifiers(many)
	for b.Loop() {
		v, err := Build(append([]string(nil), all...))
		if err != nil {
			b.Fatal(err)
		}
		_ = v
	}
}

func BenchmarkNear(b *testing.B) {
	v, all := million()
	words := misspelt(all, 1000)
	for edits := 1; edits <= MaxEdits; edits++ {
		b.Run(fmt.Sprint(edits), func(b *testing.B) {
			found, nodes, most := 0, 0, 0
			for i := 0; b.Loop(); i++ {
				work := Work{plenty}
				found += len(near(v, words[i%len(words)], edits, &work))
				nodes += plenty - work.Nodes
				most = max(most, plenty-work.Nodes)
			}
			b.ReportMetric(float64(found)/float64(b.N), "found/op")
			b.ReportMetric(float64(nodes)/float64(b.N), "nodes/op")
			b.ReportMetric(float64(most), "nodes-max")
		})
	}
}

func BenchmarkBeginnings(b *testing.B) {
	v, all := million()
	for i := 0; b.Loop(); i++ {
		w := all[i%len(all)]
		v.Beginnings(nil, w[:max(3, len(w)*6/10)], 256)
		v.Endings(nil, w[len(w)*4/10:], 256)
	}
}

func BenchmarkSplits(b *testing.B) {
	v, all := million()
	for i := 0; b.Loop(); i++ {
		v.Splits(nil, all[i%len(all)], func(half string) string { return half })
	}
}
