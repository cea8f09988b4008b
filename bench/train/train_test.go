package main

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKernelsAgainstGo: both give the same bits.
func TestKernelsAgainstGo(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		n := 32 * (1 + r.IntN(12))
		a, b := make([]float32, n), make([]float32, n)
		for i := range a {
			a[i], b[i] = float32(r.NormFloat64()), float32(r.NormFloat64())
		}
		if x, y := dot(a, b), dotGo(a, b); math.Float32bits(x) != math.Float32bits(y) {
			t.Fatalf("seed %d: dot %v, in Go %v", seed, x, y)
		}
		c := append([]float32(nil), b...)
		alpha := float32(r.NormFloat64())
		axpy(alpha, a, b)
		axpyGo(alpha, a, c)
		for i := range b {
			if math.Float32bits(b[i]) != math.Float32bits(c[i]) {
				t.Fatalf("seed %d: axpy %v, in Go %v", seed, b[i], c[i])
			}
		}
	}
}

// tinyCorpus is a corpus of two topics in two languages.
func tinyCorpus(t *testing.T) string {
	t.Helper()
	r := rand.New(rand.NewPCG(7, 7))
	topics := [][]string{
		{"cat dog animal fur tail", "猫 狗 动物 毛皮 尾巴"},
		{"server deploy cluster node container", "服务器 部署 集群 节点 容器"},
	}
	var b strings.Builder
	for range 400 {
		pick := func(words string) string {
			list := strings.Fields(words)
			var out []string
			for range 5 {
				out = append(out, list[r.IntN(len(list))])
			}
			return strings.Join(out, " ")
		}
		topic := topics[r.IntN(2)]
		en, zh := pick(topic[0]), pick(topic[1])
		fmt.Fprintf(&b, "t\t%s\nt\t%s\np\tx/parallel\t%s\t%s\n", en, zh, en, zh)
	}
	b.WriteString("w\t服务器\nw\t动物\nw\t集群\n")
	path := filepath.Join(t.TempDir(), "corpus.txt")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFitIsDeterministicAndLearns: two runs give the same bytes, and words of one
// topic are near each other across languages.
func TestFitIsDeterministicAndLearns(t *testing.T) {
	o := defaults()
	o.corpus, o.dims, o.contrast.epochs, o.contrast.rate = tinyCorpus(t), 32, 8, 0.1
	var first []byte
	for run := range 2 {
		m, err := fit(o)
		if err != nil {
			t.Fatal(err)
		}
		b, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		if run == 0 {
			first = b
			if near, far := m.cosine(t, "cat", "动物"), m.cosine(t, "cat", "集群"); near < far+0.2 {
				t.Errorf("cat is %.2f from 动物 and %.2f from 集群", near, far)
			}
			continue
		}
		if !bytes.Equal(first, b) {
			t.Error("two runs differ")
		}
	}
}

func (m *model) cosine(t *testing.T, a, b string) float64 {
	t.Helper()
	row := func(w string) []float32 {
		for i, x := range m.words {
			if x == w {
				return m.rows[i*m.dims:][:m.dims]
			}
		}
		t.Fatalf("%q is not in the vocabulary", w)
		return nil
	}
	x, y := row(a), row(b)
	return float64(dot(x, y)) / math.Sqrt(float64(dot(x, x))*float64(dot(y, y)))
}
