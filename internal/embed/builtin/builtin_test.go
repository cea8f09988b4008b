package builtin

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"mneme/internal/text"
)

// golden holds the first 16 hexadecimal digits of the SHA-256 of each text's vector.
// They must be the same on every processor: run with GOARCH=386 and arm64 too.
// If they change, Version must change.
var golden = []struct{ text, sum string }{
	{"", "a1a4f5721c1c4610"},
	{"deploys happen on Tuesdays", "eed09d7d50d3f179"},
	{"When do we deploy?", "ae4da8118f0fdfa7"},
	{"Caroline: I went to a LGBTQ support group yesterday and it was so powerful.", "39353dc4ab59da81"},
	{"The the the of and", "089990b9e26bf943"},
	{"我将要参加金融科技精英论坛。", "99ff1c5b37113750"},
	{"東京タワーへ行きたい", "5d3324ea6a21a456"},
	{"한국어를 공부합니다", "6aaecd8e2b22300d"},
	{"see https://example.com/foo_bar?x=1 and HTTPServer2 in internal/text/chunk.go", "318d19b418ab212d"},
	{"2023-05-08 at 10:30, 1,000 users, 3.14", "152bfd806f9b38b2"},
	{"great 👍🏽 ❤️ 👩‍💻 🇩🇪", "4b201dd22112b674"},
	{"Café naïve Straße ΑΘΉΝΑ Привет мир हिन्दी สวัสดี", "8ec53ff4cbe94e56"},
	{strings.Repeat("many words make one long text about memory, ", 400), "98ae8a1852acdf01"},
	{"invalid \xff\xfe bytes \x00", "d232718ffb0e3e0b"},
}

func embed(s string) []int8 {
	v := make([]int8, Dimensions)
	Embed(v, text.NewAnalysis(s))
	return v
}

func fingerprint(v []int8) string {
	b := make([]byte, len(v))
	for i, x := range v {
		b[i] = byte(x)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

func TestGoldenVectors(t *testing.T) {
	for _, g := range golden {
		if got := fingerprint(embed(g.text)); got != g.sum {
			t.Errorf("%.40q: vector %s, want %s", g.text, got, g.sum)
		}
	}
}

// TestGoldenBytes shows one vector in full.
func TestGoldenBytes(t *testing.T) {
	const want = "" +
		"00000000000000000000000000000000000000000000000000000000000000000000000000002b000000000000000000" +
		"000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000" +
		"00000000000000000000004f000000000000000000000000000000000000000000000000000000000000000000000000" +
		"00000000000000000000000000000000000000000000000000000000000000002b000000000000000000000000000000" +
		"0000000000000000000000000000000000000000000000000000000000b1000000000000000000000000000000000000" +
		"000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000" +
		"000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000" +
		"000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
	b := make([]byte, Dimensions)
	for i, x := range embed("猫") {
		b[i] = byte(x)
	}
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("got %s", got)
	}
}

func cosine(a, b string) float64 {
	x, y := make([]float32, Dimensions), make([]float32, Dimensions)
	Float(x, embed(a))
	Float(y, embed(b))
	sum := 0.0
	for i := range x {
		sum += float64(x[i]) * float64(y[i])
	}
	return sum
}

func TestNearTextsAreNear(t *testing.T) {
	tests := []struct{ text, near, far string }{
		{"deploys happen on Tuesdays", "when do we deploy?", "the cat sleeps on the sofa"},
		{"a man is riding a horse", "the man rides horses", "a woman is slicing onions"},
		{"Kubernetes autoscaling", "kubernetes autoscaler settings", "grandmother's apple pie"},
		{"我的猫喜欢吃鱼", "猫爱吃什么鱼", "明天早上开会"},
		{"猫", "我的猫很可爱", "我的狗很可爱"},
		{"東京タワーに行った", "東京タワーへ行く", "大阪で寿司を食べた"},
		{"한국어 공부", "한국어를 공부합니다", "내일 회의가 있다"},
		{"misspeled recieve", "misspelled receive", "telephone number"},
		{"great 👍", "👍", "👎"},
	}
	for _, test := range tests {
		if near, far := cosine(test.text, test.near), cosine(test.text, test.far); near < far+0.1 {
			t.Errorf("%q: %.2f to %q, %.2f to %q", test.text, near, test.near, far, test.far)
		}
	}
}

func TestLength(t *testing.T) {
	for _, g := range golden {
		v := embed(g.text)
		sum := 0.0
		for _, x := range v {
			sum += float64(x) * float64(x)
		}
		length := math.Sqrt(sum)
		if g.text == "" {
			if length != 0 {
				t.Errorf("the empty text has length %v", length)
			}
			continue
		}
		if length < Scale-6 || length > Scale+6 {
			t.Errorf("%.40q: length %.1f", g.text, length)
		}
		f := make([]float32, Dimensions)
		Float(f, v)
		unit := 0.0
		for _, x := range f {
			unit += float64(x) * float64(x)
		}
		if math.Abs(unit-1) > 1e-5 {
			t.Errorf("%.40q: float view has length² %v", g.text, unit)
		}
	}
}

func TestTextWithoutWordsIsZero(t *testing.T) {
	for _, s := range []string{"", " \n", "--- !?", "\xff\xff"} {
		v := embed("left from before")
		Embed(v, text.NewAnalysis(s))
		f := []float32{5: 1, Dimensions - 1: 7}
		Float(f, v)
		for i := range v {
			if v[i] != 0 || f[i] != 0 {
				t.Fatalf("%q: dimension %d is %d, %v", s, i, v[i], f[i])
			}
		}
	}
}

// TestOrderDoesNotMatter: the vector is of a bag of words.
func TestOrderDoesNotMatter(t *testing.T) {
	if embedString("alpha beta gamma") != embedString("gamma beta alpha") {
		t.Error("order of words changes the vector")
	}
}

func embedString(s string) string { return fingerprint(embed(s)) }

// TestTableAgainstMap compares with a map, with the dimensions of each hash taken
// by long multiplication.
func TestTableAgainstMap(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 100 {
		var e embedder
		e.table.init()
		counts, heaviest := map[uint64]int{}, map[uint64]feature{}
		distinct := 1 + r.IntN(2000)
		for range r.IntN(3000) {
			f := feature{hash: mix(uint64(r.IntN(distinct))), weight: int64(1 + r.IntN(2000)), dims: int32(1 + r.IntN(4))}
			e.table.add(f)
			counts[f.hash]++
			old := heaviest[f.hash]
			heaviest[f.hash] = feature{weight: max(old.weight, f.weight), dims: max(old.dims, f.dims)}
		}
		var want [Dimensions]int64
		for hash, n := range counts {
			f := heaviest[hash]
			for range f.dims {
				sign := int64(1)
				if hash%2 == 1 {
					sign = -1
				}
				high, low := hash>>32, hash&(1<<32-1)
				want[(high*Dimensions+low*Dimensions>>32)>>32] += sign * f.weight * frequencies[min(n, len(frequencies)-1)]
				hash = mix(hash + 0x9e3779b97f4a7c15)
			}
		}
		e.sums = make([]int64, Dimensions)
		e.accumulate()
		if !slices.Equal(e.sums, want[:]) {
			t.Fatalf("seed %d: sums differ", seed)
		}
	}
}

// TestQuantiseAgainstFloat compares with float arithmetic; they may differ by the
// rounding of the integer root.
func TestQuantiseAgainstFloat(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for _, size := range []int64{1 << 12, 1 << 20, 1 << 40, 1 << 61} {
		sums := make([]int64, Dimensions)
		sum := 0.0
		for i := range sums {
			sums[i] = r.Int64N(2*size) - size
			sum += float64(sums[i]) * float64(sums[i])
		}
		got := make([]int8, Dimensions)
		Quantise(got, sums)
		for i, x := range got {
			if want := float64(sums[i]) / math.Sqrt(sum) * Scale; math.Abs(float64(x)-want) > 0.51 {
				t.Errorf("seed %d size %d: dimension %d is %d, want %.3f", seed, size, i, x, want)
			}
		}
	}
}

func TestIsqrt(t *testing.T) {
	for _, x := range []uint64{0, 1, 2, 3, 4, 8, 9, 15, 16, 1 << 40, 1<<40 - 1, 1<<62 + 12345, math.MaxUint64} {
		r := Root(x)
		if r*r > x || r < 1<<32-1 && (r+1)*(r+1) <= x {
			t.Errorf("Root(%d) = %d", x, r)
		}
	}
}

func TestWrongLengthPanics(t *testing.T) {
	for name, f := range map[string]func(){
		"Embed": func() { Embed(make([]int8, 3), text.NewAnalysis("x")) },
		"Float": func() { Float(make([]float32, 3), make([]int8, 4)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s took a vector of a wrong length", name)
				}
			}()
			f()
		}()
	}
}

func TestConcurrentUse(t *testing.T) {
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				for _, g := range golden[:8] {
					if got := embedString(g.text); got != g.sum {
						t.Errorf("%q: %s, want %s", g.text, got, g.sum)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

func FuzzEmbed(f *testing.F) {
	for _, g := range golden {
		f.Add(g.text)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v := embed(s)
		sum := 0
		for _, x := range v {
			sum += int(x) * int(x)
		}
		if sum != 0 && (sum < (Scale-8)*(Scale-8) || sum > (Scale+8)*(Scale+8)) {
			t.Errorf("%q: length² %d", s, sum)
		}
		if embedString(s) != fingerprint(v) {
			t.Errorf("%q: two vectors", s)
		}
	})
}

const short = "Caroline: I went to a LGBTQ support group yesterday and it was so powerful."

func BenchmarkEmbedShort(b *testing.B) { benchmark(b, short) }
func BenchmarkEmbed500(b *testing.B)   { benchmark(b, strings.Repeat(varied, 3)[:500]) }
func BenchmarkEmbedChinese(b *testing.B) {
	benchmark(b, strings.Repeat("金融科技精英论坛的主要内容是探讨金融科技发展趋势。", 4))
}

const varied = "Melanie painted a sunrise last year; her kids love camping in the mountains. They've registered for a " +
	"pottery workshop near the park, and the adoption agency will call back on Tuesday afternoon. Deployment "

func benchmark(b *testing.B, s string) {
	v := make([]int8, Dimensions)
	b.ReportAllocs()
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		Embed(v, text.NewAnalysis(s))
	}
}
