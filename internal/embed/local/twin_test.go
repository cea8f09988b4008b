package local

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"go.uber.org/goleak"

	"mneme/internal/embed/local/localtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// twin is BERT as its papers write it, in float64 and one token at a time.
type twin struct {
	s localtest.Spec
	w map[string]localtest.Tensor
}

func newTwin(s localtest.Spec) twin { return twin{s, s.Tensors()} }

func (m twin) row(name string, i int) []float64 {
	t := m.w[name]
	n := t.Shape[len(t.Shape)-1]
	out := make([]float64, n)
	for j := range out {
		out[j] = float64(t.Data[i*n+j])
	}
	return out
}

func (m twin) linear(name string, x []float64) []float64 {
	out := m.row(name+".bias", 0)
	for i := range out {
		for j, w := range m.row(name+".weight", i) {
			out[i] += w * x[j]
		}
	}
	return out
}

func (m twin) layerNorm(name string, x []float64) []float64 {
	mean, variance := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	weight, bias := m.row(name+".weight", 0), m.row(name+".bias", 0)
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = (v-mean)/math.Sqrt(variance+1e-12)*weight[i] + bias[i]
	}
	return out
}

func plus(a, b []float64) []float64 {
	out := slices.Clone(a)
	for i := range out {
		out[i] += b[i]
	}
	return out
}

func (m twin) activate(x float64) float64 {
	if m.s.Activation == "gelu_new" {
		return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*math.Pow(x, 3))))
	}
	return 0.5 * x * (1 + math.Erf(x/math.Sqrt2))
}

func (m twin) attention(layer string, xs [][]float64) [][]float64 {
	var q, k, v [][]float64
	for _, x := range xs {
		q = append(q, m.linear(layer+"attention.self.query", x))
		k = append(k, m.linear(layer+"attention.self.key", x))
		v = append(v, m.linear(layer+"attention.self.value", x))
	}
	d := m.s.Hidden / m.s.Heads
	out := make([][]float64, len(xs))
	for i := range xs {
		out[i] = make([]float64, m.s.Hidden)
		for h := range m.s.Heads {
			weights, sum := make([]float64, len(xs)), 0.0
			for j := range xs {
				dot := 0.0
				for c := h * d; c < (h+1)*d; c++ {
					dot += q[i][c] * k[j][c]
				}
				weights[j] = math.Exp(dot / math.Sqrt(float64(d)))
				sum += weights[j]
			}
			for j := range xs {
				for c := h * d; c < (h+1)*d; c++ {
					out[i][c] += weights[j] / sum * v[j][c]
				}
			}
		}
	}
	return out
}

func (m twin) states(tokens []int32) [][]float64 {
	var xs [][]float64
	for i, id := range tokens {
		e := plus(m.row("embeddings.word_embeddings.weight", int(id)), m.row("embeddings.position_embeddings.weight", i))
		xs = append(xs, m.layerNorm("embeddings.LayerNorm", plus(e, m.row("embeddings.token_type_embeddings.weight", 0))))
	}
	for l := range m.s.Layers {
		layer := fmt.Sprintf("encoder.layer.%d.", l)
		for i, a := range m.attention(layer, xs) {
			xs[i] = m.layerNorm(layer+"attention.output.LayerNorm", plus(xs[i], m.linear(layer+"attention.output.dense", a)))
		}
		for i, x := range xs {
			inner := m.linear(layer+"intermediate.dense", x)
			for j := range inner {
				inner[j] = m.activate(inner[j])
			}
			xs[i] = m.layerNorm(layer+"output.LayerNorm", plus(x, m.linear(layer+"output.dense", inner)))
		}
	}
	return xs
}

func (m twin) vector(tokens []int32) []float64 {
	xs := m.states(tokens)
	out := slices.Clone(xs[0])
	for _, x := range xs[1:] {
		for j := range out {
			switch m.s.Pooling {
			case "mean":
				out[j] += x[j]
			case "max":
				out[j] = max(out[j], x[j])
			}
		}
	}
	if m.s.Pooling == "mean" {
		for j := range out {
			out[j] /= float64(len(xs))
		}
	}
	return out
}

func mapFS(files map[string][]byte) fstest.MapFS {
	out := fstest.MapFS{}
	for name, b := range files {
		out[name] = &fstest.MapFile{Data: b}
	}
	return out
}

func mustLoad(t testing.TB, s localtest.Spec) *Model {
	t.Helper()
	m, err := load(mapFS(s.Files()), "tiny")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// embedAll embeds texts with one worker, run after run.
func embedAll(t testing.TB, m *Model, texts []string) [][]float32 {
	t.Helper()
	w := m.NewWorker()
	var out [][]float32
	for len(out) < len(texts) {
		got, err := w.Embed("", texts[len(out):])
		if err != nil || len(got) == 0 {
			t.Fatalf("text %d: %d vectors, %v", len(out), len(got), err)
		}
		out = append(out, got...)
	}
	return out
}

func randomText(rng *rand.Rand) string {
	words := []string{"hello", "unaffable", "Café", "日本語", "xyz", "the", "texting", "$5", "!", "zażółć", "number", "42", "q"}
	var b strings.Builder
	for range 1 + rng.IntN(30) {
		b.WriteString(words[rng.IntN(len(words))] + " ")
	}
	return b.String()
}

// TestVectorsAreThoseOfTheTwin: same weights, same tokens, two computations.
func TestVectorsAreThoseOfTheTwin(t *testing.T) {
	variants := map[string]func(*localtest.Spec){
		"mean":    func(*localtest.Spec) {},
		"cls":     func(s *localtest.Spec) { s.Pooling = "cls" },
		"max":     func(s *localtest.Spec) { s.Pooling = "max" },
		"half":    func(s *localtest.Spec) { s.NumberKind = "F16" },
		"bf16":    func(s *localtest.Spec) { s.NumberKind = "BF16" },
		"tanh":    func(s *localtest.Spec) { s.Activation = "gelu_new" },
		"odd":     func(s *localtest.Spec) { s.Hidden, s.Heads, s.Inner = 30, 3, 41 },
		"bare":    func(s *localtest.Spec) { s.NoModules, s.VocabularyFile, s.TensorPrefix = true, true, "bert." },
		"deep":    func(s *localtest.Spec) { s.Layers, s.Seed = 4, 9 },
		"oneHead": func(s *localtest.Spec) { s.Heads = 1 },
	}
	for name, change := range variants {
		t.Run(name, func(t *testing.T) {
			s := localtest.Tiny()
			change(&s)
			m, dumb := mustLoad(t, s), newTwin(s)
			rng := rand.New(rand.NewPCG(s.Seed, 5))
			texts := []string{"hello", "hello world"}
			for range 5 {
				texts = append(texts, randomText(rng))
			}
			var want [][]float64
			for _, text := range texts {
				want = append(want, dumb.vector(m.tokenizer.encode(nil, text, m.MaxTokens())))
			}
			for set, kernels := range kernelSets() {
				m.bert.kernels = kernels
				for i, got := range embedAll(t, m, texts) {
					for j := range got {
						if diff := math.Abs(float64(got[j]) - want[i][j]); !(diff <= 1e-4) {
							t.Fatalf("%s, seed %d, text %d (%q), dimension %d: %v, want %v", set, s.Seed, i, texts[i], j, got[j], want[i][j])
						}
					}
				}
			}
		})
	}
}

// TestTextsDoNotTouchEachOther: a vector is the same bits alone and in any company.
func TestTextsDoNotTouchEachOther(t *testing.T) {
	m := mustLoad(t, localtest.Tiny())
	seed := uint64(11)
	rng := rand.New(rand.NewPCG(seed, 1))
	var texts []string
	for range 60 {
		texts = append(texts, randomText(rng))
	}
	all := embedAll(t, m, texts)
	for i, text := range texts {
		if one := embedAll(t, m, []string{text}); !slices.Equal(one[0], all[i]) {
			t.Fatalf("seed %d: text %d alone gives another vector", seed, i)
		}
	}
}

func TestLongTextsAreCut(t *testing.T) {
	m := mustLoad(t, localtest.Tiny())
	if m.MaxTokens() != 40 || m.Dimensions() != 32 {
		t.Fatalf("%d tokens, %d dimensions", m.MaxTokens(), m.Dimensions())
	}
	short, long := strings.Repeat("hello ", 38), strings.Repeat("hello ", 30000)
	got := embedAll(t, m, []string{short, long, short + "world"})
	if !slices.Equal(got[0], got[1]) || !slices.Equal(got[0], got[2]) {
		t.Error("what is past the limit counts")
	}
	if other := embedAll(t, m, []string{strings.Repeat("hello ", 37)}); slices.Equal(other[0], got[0]) {
		t.Error("what is within the limit does not count")
	}
}

func TestNothingToEmbed(t *testing.T) {
	m := mustLoad(t, localtest.Tiny())
	w := m.NewWorker()
	for _, text := range []string{"", " ", "\u200b\u200d", "\x00", "\u0301"} {
		if got, err := w.Embed("", []string{text, "hello"}); got != nil || err != ErrNothing {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if got, err := w.Embed("the ", []string{"\u200b", "hello"}); got != nil || err != ErrNothing {
		t.Errorf("nothing but a prefix: %v, %v", got, err)
	}
	got, err := w.Embed("", []string{"hello", "\u200b", "world"})
	if err != nil || len(got) != 1 {
		t.Fatalf("%d vectors before one with nothing, %v", len(got), err)
	}
	if got, err := w.Embed("", nil); got != nil || err != nil {
		t.Errorf("no texts: %v, %v", got, err)
	}
}

func TestActivations(t *testing.T) {
	g := newGate("gelu")
	for x := -8.0; x <= 8; x += 0.00137 {
		v := []float32{float32(x)}
		g.apply(v)
		if want := 0.5 * x * (1 + math.Erf(x/math.Sqrt2)); math.Abs(float64(v[0])-want) > 2e-6 {
			t.Fatalf("gelu(%v) = %v, want %v", x, v[0], want)
		}
	}
	nan := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}
	g.apply(nan)
	if nan[0] == nan[0] || !math.IsInf(float64(nan[1]), 1) || nan[2] != 0 {
		t.Errorf("of no number, ∞ and -∞: %v", nan)
	}
	for x := float32(0); x > -100; x -= 0.0037 {
		got, want := float64(exp(x)), math.Exp(max(float64(x), -87))
		if math.Abs(got-want) > 4e-7*want+1e-37 {
			t.Fatalf("exp(%v) = %v, want %v", x, got, want)
		}
	}
	if x := exp(float32(math.NaN())); x == x {
		t.Error("exp of no number is a number")
	}
}

// BenchmarkMiniLM embeds short texts with a model of all-MiniLM-L6-v2's sizes
// on one core.
func BenchmarkMiniLM(b *testing.B) {
	m := mustLoad(b, localtest.MiniLM())
	for _, words := range []int{3, 12, 250} {
		text := strings.TrimSpace(strings.Repeat("hello ", words))
		b.Run(fmt.Sprintf("%d tokens", words+2), func(b *testing.B) {
			w, texts := m.NewWorker(), slices.Repeat([]string{text}, 64)
			done := 0
			for b.Loop() {
				got, err := w.Embed("", texts)
				if err != nil {
					b.Fatal(err)
				}
				done += len(got)
			}
			b.ReportMetric(float64(done)/b.Elapsed().Seconds(), "texts/s")
		})
		b.Run(fmt.Sprintf("%d tokens alone", words+2), func(b *testing.B) {
			w := m.NewWorker()
			for b.Loop() {
				if _, err := w.Embed("", []string{text}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "texts/s")
		})
	}
}
