package embed

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testKey  = "sk-test-0123456789-secret"
	testDims = 8
)

// reference is what a test provider computes: a function of the text, not of length 1.
func reference(text string, dims int) []float32 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	v := make([]float32, dims)
	for i := range v {
		v[i] = float32(r.Float64()*6 - 3)
	}
	return v
}

// unit is the dumb twin of normalise.
func unit(v []float32) []float32 {
	sum := 0.0
	for _, x := range v {
		sum += math.Pow(float64(x), 2)
	}
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = float32(float64(x) / math.Sqrt(sum))
	}
	return out
}

func near(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Abs(float64(x-y)) < 1e-6 })
}

// seen is a request as the provider saw it.
type seen struct {
	path   string
	header http.Header
	body   string
	texts  []string
}

// provider plays a server. script, if set, may answer a request (true) instead.
type provider struct {
	kind   string
	dims   int
	script func(n int, s seen, w http.ResponseWriter, r *http.Request) bool

	mu       sync.Mutex
	requests []seen
	inFlight int
	peak     int
	server   *httptest.Server
}

func newProvider(t testing.TB, kind string) *provider {
	p := &provider{kind: kind, dims: testDims}
	p.server = httptest.NewServer(p)
	t.Cleanup(p.server.Close)
	return p
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s := seen{path: r.URL.Path, header: r.Header.Clone(), body: string(body), texts: textsOf(p.kind, body)}
	p.mu.Lock()
	p.requests = append(p.requests, s)
	n := len(p.requests)
	p.inFlight++
	p.peak = max(p.peak, p.inFlight)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.inFlight--
		p.mu.Unlock()
	}()
	if p.script != nil && p.script(n, s, w, r) {
		return
	}
	vectors := make([][]float32, len(s.texts))
	for i, text := range s.texts {
		vectors[i] = reference(text, p.dims)
	}
	_, _ = io.WriteString(w, answerOf(p.kind, vectors, strings.Contains(s.body, `"base64"`)))
}

func (p *provider) seen() []seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

func textsOf(kind string, body []byte) []string {
	var plain struct{ Input []string }
	var gemini struct {
		Requests []struct {
			Content struct{ Parts []struct{ Text string } }
		}
	}
	if kind != ProviderGemini {
		_ = json.Unmarshal(body, &plain)
		return plain.Input
	}
	_ = json.Unmarshal(body, &gemini)
	var texts []string
	for _, r := range gemini.Requests {
		texts = append(texts, r.Content.Parts[0].Text)
	}
	return texts
}

// answerOf encodes vectors as that provider does; OpenAI's come in reverse order.
func answerOf(kind string, vectors [][]float32, base64Encoded bool) string {
	var items []string
	for i, v := range vectors {
		numbers, _ := json.Marshal(v)
		switch kind {
		case ProviderOllama:
			items = append(items, string(numbers))
		case ProviderGemini:
			items = append(items, fmt.Sprintf(`{"values":%s}`, numbers))
		default:
			if base64Encoded {
				var raw []byte
				for _, x := range v {
					raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
				}
				numbers, _ = json.Marshal(base64.StdEncoding.EncodeToString(raw))
			}
			items = append(items, fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":%s}`, i, numbers))
		}
	}
	switch kind {
	case ProviderOpenAI:
		slices.Reverse(items)
		return `{"object":"list","data":[` + strings.Join(items, ",") + `],"usage":{"total_tokens":1}}`
	default:
		return `{"embeddings":[` + strings.Join(items, ",") + `]}`
	}
}

// errorOf encodes a message as that provider's error body.
func errorOf(kind, message string) string {
	text, _ := json.Marshal(message)
	if kind == ProviderOllama {
		return `{"error":` + string(text) + `}`
	}
	return `{"error":{"message":` + string(text) + `}}`
}

func reply(w http.ResponseWriter, status int, body string) bool {
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
	return true
}

// stepClock never waits: a sleep moves it forward.
type stepClock struct {
	mu     sync.Mutex
	now    time.Time
	sleeps []time.Duration
}

func newStepClock() *stepClock { return &stepClock{now: time.Now()} }

func (c *stepClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *stepClock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.sleeps = append(c.sleeps, d)
	return ctx.Err()
}

func (c *stepClock) slept() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.sleeps)
}

// testConfig reaches the provider; its size is known, so that Open asks nothing.
func testConfig(p *provider) Config {
	return Config{
		Provider: p.kind, Model: "m", BaseURL: p.server.URL, APIKey: NewSecret(testKey), Prefixes: &Prefixes{},
		space: Space{Provider: p.kind, Model: "m", Dimensions: p.dims, Normalised: true, Version: remoteVersion},
	}
}

// open opens an embedder whose pauses take no time; half is the jitter.
func open(t testing.TB, cfg Config) (Embedder, *stepClock) {
	t.Helper()
	clock := newStepClock()
	e, err := Open(t.Context(), cfg, Options{Clock: clock, Rand: func() float64 { return 0.5 }})
	if err != nil {
		t.Fatalf("open %s: %v", cfg.Provider, err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return e, clock
}

func remoteKinds() []string { return []string{ProviderOllama, ProviderOpenAI, ProviderGemini} }

// waitFor yields until a condition holds that another goroutine brings about.
func waitFor(t testing.TB, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("it never happens")
		}
	}
}
