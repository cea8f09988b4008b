package embed

import (
	"encoding/json"
	"math"
	"testing"
)

func TestNormalise(t *testing.T) {
	v := []float32{3, 0, -4}
	if err := normalise(v); err != nil || v[0] != 0.6 || v[1] != 0 || v[2] != -0.8 {
		t.Fatal(v, err)
	}
	huge := []float32{math.MaxFloat32, math.MaxFloat32}
	tiny := []float32{math.SmallestNonzeroFloat32, 0}
	for _, v := range [][]float32{huge, tiny} {
		if err := normalise(v); err != nil || math.Abs(math.Hypot(float64(v[0]), float64(v[1]))-1) > 1e-6 {
			t.Fatal(v, err)
		}
	}
	for _, v := range [][]float32{{}, {0, 0}, {1, float32(math.NaN())}, {float32(math.Inf(-1))}} {
		if normalise(v) == nil {
			t.Errorf("%v has a direction", v)
		}
	}
}

// FuzzVector compares with encoding/json where that is not too lenient.
func FuzzVector(f *testing.F) {
	for _, seed := range []string{`[]`, `[1,-2.5e-3, 4]`, `[null]`, `null`, `[1e39]`, `"AACAPw=="`, `"AA"`, `"%"`, `[[1]]`, `{}`, `3`, `["1"]`, `[1,]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var got vector
		if json.Unmarshal(b, &got) != nil {
			return
		}
		if len(got) > len(b) {
			t.Fatalf("%d numbers out of %d bytes", len(got), len(b))
		}
		var twin []float32
		if err := json.Unmarshal(b, &twin); err == nil && len(twin) != len(got) {
			t.Fatalf("%v, encoding/json reads %v", got, twin)
		}
		for i := range twin {
			if twin[i] != got[i] {
				t.Fatalf("%v, encoding/json reads %v", got, twin)
			}
		}
	})
}

// FuzzAnswer feeds every protocol with bytes: no panic, and no vector that is
// not finite, of length 1 and of the right size.
func FuzzAnswer(f *testing.F) {
	for _, kind := range remoteKinds() {
		body := answerOf(kind, [][]float32{reference("a", 4), reference("b", 4)}, false)
		f.Add([]byte(body), 2, 4)
		f.Add([]byte(body[:20]), 2, 0)
		f.Add([]byte(errorOf(kind, "message")), 1, 0)
	}
	f.Add([]byte(`{"data":[{"index":1,"embedding":[1]},{"embedding":null}],"error":3,"detail":{"a":1},"embeddings":[null,{"values":null}]}`), 2, 1)
	f.Add([]byte(`{"error":{"details":[{"@type":"RetryInfo","retryDelay":"-1s"}],"code":5}}`), 1, 1)
	f.Fuzz(func(t *testing.T, body []byte, texts, expect int) {
		if texts < 0 || texts > 100 || expect < 0 || expect > 100 {
			return
		}
		for _, kind := range remoteKinds() {
			cfg := Config{Provider: kind, APIKey: NewSecret(testKey)}.resolve()
			l := newLink(cfg, newWire(cfg), Options{}.withDefaults())
			if d := l.wire.failure(body).retryAfter; d < 0 {
				t.Fatalf("%s: retry after %v", kind, d)
			}
			vectors, err := l.accept(body, texts, expect)
			if err != nil {
				continue
			}
			if len(vectors) != texts {
				t.Fatalf("%s: %d vectors for %d texts", kind, len(vectors), texts)
			}
			for _, v := range vectors {
				sum := 0.0
				for _, x := range v {
					sum += float64(x) * float64(x)
				}
				if !(math.Abs(sum-1) < 1e-5) || expect != 0 && len(v) != expect {
					t.Fatalf("%s: %v", kind, v)
				}
			}
		}
	})
}

func FuzzOllamaURL(f *testing.F) {
	for _, seed := range []string{"", "[::]", "http://a:b@c", "://", "a:b:c", "0.0.0.0:1/x/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, host string) {
		_ = Config{Provider: ProviderOllama, BaseURL: OllamaURL(host)}.Validate()
	})
}
