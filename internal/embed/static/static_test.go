package static

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"mneme/internal/embed/builtin"
	"mneme/internal/text"
)

var rewrite = flag.Bool("rewrite", false, "write the golden file anew")

// goldenTexts have their vectors' fingerprints in testdata/golden.txt, the first 16
// hexadecimal digits of SHA-256. They must be the same on every processor: run
// with GOARCH=386 and arm64 too. If they change, Version must change.
var goldenTexts = []string{
	"",
	"deploys happen on Tuesdays",
	"When do we deploy?",
	"Caroline: I went to a LGBTQ support group yesterday and it was so powerful.",
	"The the the of and",
	"我将要参加金融科技精英论坛。",
	"容器组是可以部署的最小单元",
	"東京タワーへ行きたい",
	"한국어를 공부합니다",
	"see https://example.com/foo_bar?x=1 and HTTPServer2 in internal/text/chunk.go",
	"2023-05-08 at 10:30, 1,000 users, 3.14",
	"great 👍🏽 ❤️ 👩‍💻 🇩🇪",
	"Café naïve Straße ΑΘΉΝΑ Привет мир हिन्दी สวัสดี",
	strings.Repeat("many words make one long text about memory, ", 400),
	"invalid \xff\xfe bytes \x00",
}

func fingerprint(v []int8) string {
	b := make([]byte, len(v))
	for i, x := range v {
		b[i] = byte(x)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

func embed(s string) []int8 {
	v := make([]int8, Dimensions)
	Embed(v, text.NewAnalysis(s))
	return v
}

func TestGoldenVectors(t *testing.T) {
	var got bytes.Buffer
	for _, s := range goldenTexts {
		fmt.Fprintf(&got, "%s %.40q\n", fingerprint(embed(s)), s)
	}
	path := filepath.Join("testdata", "golden.txt")
	if *rewrite {
		if err := os.WriteFile(path, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("vectors changed:\n%s\nwant\n%s", got.String(), want)
	}
}

// TestWeightsFit: the shipped weights open and stay below 20 MB.
func TestWeightsFit(t *testing.T) {
	if len(weights) > 20<<20 {
		t.Errorf("weights have %d bytes", len(weights))
	}
	m, err := Open(weights)
	if err != nil {
		t.Fatal(err)
	}
	if m.table.rows < 30000 || m.table.dims != semantic {
		t.Errorf("%d rows of %d dimensions", m.table.rows, m.table.dims)
	}
}

func cosine(a, b string) float64 {
	x, y := make([]float32, Dimensions), make([]float32, Dimensions)
	builtin.Float(x, embed(a))
	builtin.Float(y, embed(b))
	sum := 0.0
	for i := range x {
		sum += float64(x[i]) * float64(y[i])
	}
	return sum
}

// TestMeaning: texts without a common word are near if they are about one thing.
func TestMeaning(t *testing.T) {
	for _, test := range []struct{ text, near, far string }{
		{"deploys happen on Tuesdays", "when do we deploy?", "the cat sleeps on the sofa"},
		{"kubernetes pods", "containers in a cluster", "a cup of coffee with milk"},
		{"she is a doctor at the hospital", "the nurse takes care of patients", "the compiler reports an error"},
		{"the function throws an exception", "an error is raised", "a horse runs in a field"},
		{"我想吃饭", "推荐一家餐厅", "编译器报告错误"},
		{"语法错误", "syntax error", "apple pie with sugar"},
		{"misspeled recieve", "misspelled receive", "telephone number"},
		{"HTTPServer2 in chunk.go", "chunk.go", "docker compose"},
	} {
		if near, far := cosine(test.text, test.near), cosine(test.text, test.far); near < far+0.05 {
			t.Errorf("%q: %.2f to %q, %.2f to %q", test.text, near, test.near, far, test.far)
		}
	}
}

func TestLength(t *testing.T) {
	for _, s := range append(goldenTexts, " \n", "--- !?", "\xff\xff") {
		sum := 0.0
		for _, x := range embed(s) {
			sum += float64(x) * float64(x)
		}
		if length := math.Sqrt(sum); length != 0 && math.Abs(length-builtin.Scale) > 6 {
			t.Errorf("%.40q: length %.1f", s, length)
		}
	}
	for _, s := range []string{"", " \n", "--- !?", "\xff\xff"} {
		v := embed("left from before")
		if Embed(v, text.NewAnalysis(s)); fingerprint(v) != fingerprint(make([]int8, Dimensions)) {
			t.Errorf("%q has a vector", s)
		}
	}
}

func TestWrongLengthPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Embed took a vector of a wrong length")
		}
	}()
	Embed(make([]int8, 3), text.NewAnalysis("x"))
}

func TestConcurrentUse(t *testing.T) {
	var wg sync.WaitGroup
	want := fingerprint(embed(goldenTexts[3]))
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if got := fingerprint(embed(goldenTexts[3])); got != want {
					t.Errorf("%s, want %s", got, want)
				}
			}
		})
	}
	wg.Wait()
}

func FuzzEmbed(f *testing.F) {
	for _, s := range goldenTexts {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v := embed(s)
		sum := 0
		for _, x := range v {
			sum += int(x) * int(x)
		}
		const low, high = builtin.Scale - 8, builtin.Scale + 8
		if sum != 0 && (sum < low*low || sum > high*high) {
			t.Errorf("%q: length² %d", s, sum)
		}
		if fingerprint(embed(s)) != fingerprint(v) {
			t.Errorf("%q: two vectors", s)
		}
	})
}

func BenchmarkEmbedShort(b *testing.B) {
	benchmark(b, "Caroline: I went to a LGBTQ support group yesterday and it was so powerful.")
}

func BenchmarkEmbedChinese(b *testing.B) {
	benchmark(b, "金融科技精英论坛的主要内容是探讨金融科技发展趋势。")
}

func BenchmarkEmbed500(b *testing.B) {
	benchmark(b, strings.Repeat("Melanie painted a sunrise last year; her kids love camping in the mountains. ", 7)[:500])
}

func benchmark(b *testing.B, s string) {
	v := make([]int8, Dimensions)
	b.ReportAllocs()
	for b.Loop() {
		Embed(v, text.NewAnalysis(s))
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "texts/s")
}

// BenchmarkOpen is what a program pays at start.
func BenchmarkOpen(b *testing.B) {
	for b.Loop() {
		if _, err := Open(weights); err != nil {
			b.Fatal(err)
		}
	}
}

// TestTextsInPartsAreOneText: a memory and who said it are analysed apart.
func TestTextsInPartsAreOneText(t *testing.T) {
	parts := []string{"ann:", "the deploy of billing-api failed at 3 pm", "三点 部署失败了，见 main.go:42", "3", "个部署", "", " \n", "naïve café 🙂 中"}
	for _, a := range parts {
		for _, b := range parts {
			want, got := make([]int8, Dimensions), make([]int8, Dimensions)
			Embed(want, text.NewAnalysis(a+" "+b))
			Embed(got, text.NewAnalysis(a), text.NewAnalysis(b))
			if fingerprint(got) != fingerprint(want) {
				t.Errorf("%q and %q have another vector than both in one", a, b)
			}
		}
	}
}

// TestKnownWordsAreOrdinary: a misspelt word is not among those that have vectors.
func TestKnownWordsAreOrdinary(t *testing.T) {
	for token, want := range map[string]bool{"mango": true, "mongo": true, "typescript": true, "kube": true, "auth": true,
		"typsecript": false, "eror": false, "postgress": false, "migraton": false, "": false} {
		if Known(token) != want {
			t.Errorf("%q: known %v", token, !want)
		}
	}
}
