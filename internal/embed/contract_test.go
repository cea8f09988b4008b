package embed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"mneme/internal/embed/local/localtest"
)

// TestContract holds every embedder to what the interface promises.
func TestContract(t *testing.T) {
	remote := func(kind string, change func(*Config)) func(*testing.T) Embedder {
		return func(t *testing.T) Embedder {
			cfg := testConfig(newProvider(t, kind))
			if change != nil {
				change(&cfg)
			}
			e, _ := open(t, cfg)
			return e
		}
	}
	builtin := func(t *testing.T) Embedder { e, _ := open(t, Config{}); return e }
	local := func(concurrency int) func(*testing.T) Embedder {
		return func(t *testing.T) Embedder {
			e, _ := open(t, Config{Provider: ProviderLocal, Dir: modelDir(t, "tiny", localtest.Tiny()), Concurrency: concurrency})
			return e
		}
	}
	for name, make := range map[string]func(*testing.T) Embedder{
		"builtin":       builtin,
		"ollama":        remote(ProviderOllama, nil),
		"openai":        remote(ProviderOpenAI, nil),
		"openai/base64": remote(ProviderOpenAI, func(c *Config) { c.Encoding = "base64" }),
		"openai/tiny requests": remote(ProviderOpenAI, func(c *Config) {
			c.MaxItems, c.MaxBytes, c.Concurrency = 3, 60, 2
		}),
		"local":          local(0),
		"local/one lane": local(1),
		"cached local":   func(t *testing.T) Embedder { return Cached(local(0)(t), 1<<20) },
		"gemini":         remote(ProviderGemini, nil),
		"cached builtin": func(t *testing.T) Embedder { return Cached(builtin(t), 1<<20) },
		"cached ollama":  func(t *testing.T) Embedder { return Cached(remote(ProviderOllama, nil)(t), 1<<20) },
		"cached tiny":    func(t *testing.T) Embedder { return Cached(builtin(t), 3000) },
	} {
		t.Run(name, func(t *testing.T) { runContract(t, make) })
	}
}

func runContract(t *testing.T, open func(*testing.T) Embedder) {
	t.Run("unit vectors in order", func(t *testing.T) { contractOrder(t, open(t)) })
	t.Run("no texts", func(t *testing.T) {
		got, err := open(t).Embed(t.Context(), Query, nil)
		if err != nil || got == nil || len(got) != 0 {
			t.Fatalf("got %v, %v", got, err)
		}
	})
	t.Run("blank text", func(t *testing.T) {
		got, err := open(t).Embed(t.Context(), Document, []string{"a", " \n\t"})
		var e *Error
		if got != nil || !errors.As(err, &e) || e.Kind != ErrBadInput || e.Index != 1 {
			t.Fatalf("got %v, %v", got, err)
		}
	})
	t.Run("unknown purpose", func(t *testing.T) {
		if _, err := open(t).Embed(t.Context(), 7, []string{"a"}); !errors.Is(err, ErrBadInput) {
			t.Fatal(err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if got, err := open(t).Embed(ctx, Document, []string{"a"}); got != nil || !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, %v", got, err)
		}
	})
	t.Run("closed", func(t *testing.T) {
		e := open(t)
		for range 2 {
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := e.Embed(t.Context(), Document, []string{"a"}); !errors.Is(err, ErrClosed) {
			t.Fatal(err)
		}
	})
	t.Run("concurrent", func(t *testing.T) {
		e := open(t)
		want, err := e.Embed(t.Context(), Document, []string{"shared", "x 1"})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				got, err := e.Embed(t.Context(), Document, []string{fmt.Sprint("own ", i), "shared"})
				if err != nil || !slices.Equal(got[1], want[0]) {
					t.Errorf("call %d: %v, %v", i, got, err)
				}
			})
		}
		wg.Wait()
	})
}

// contractOrder embeds many texts at once and each alone: the same must come.
func contractOrder(t *testing.T, e Embedder) {
	texts := []string{"one", "two words", "three", "one", "日本語のテキスト", "naïve café <&> \"quoted\"", "\xff broken utf-8"}
	for i := range 80 {
		texts = append(texts, fmt.Sprintf("text number %d about %d", i, i*i))
	}
	all, err := e.Embed(t.Context(), Document, texts)
	if err != nil || len(all) != len(texts) {
		t.Fatalf("%d vectors, %v", len(all), err)
	}
	if s := e.Space(); s.ID() == (Space{}).ID() || s.Dimensions == 0 || !s.Normalised || s.Version < 1 {
		t.Fatalf("space %+v", s)
	}
	for i, v := range all {
		sum := 0.0
		for _, x := range v {
			sum += float64(x) * float64(x)
		}
		if len(v) != e.Space().Dimensions || math.Abs(sum-1) > 1e-5 {
			t.Fatalf("text %d: %d dimensions, length² %v", i, len(v), sum)
		}
	}
	kept := slices.Clone(all[0])
	all[0][0] = 42 // the vectors are ours: nobody else may see that
	for _, i := range []int{0, 1, 4, 5, 86} {
		one, err := e.Embed(t.Context(), Document, texts[i:i+1])
		if err != nil {
			t.Fatal(err)
		}
		want := all[i]
		if i == 0 {
			want = kept
		}
		if !slices.Equal(one[0], want) {
			t.Fatalf("text %d alone gives another vector", i)
		}
	}
	if slices.Equal(all[1], all[2]) {
		t.Fatal("different texts give the same vector")
	}
}

// TestGoldenRequests shows the bytes that each provider gets.
func TestGoldenRequests(t *testing.T) {
	for _, c := range []struct {
		name, kind, model string
		change            func(*Config)
		purpose           Purpose
		path, auth, body  string
	}{
		{"ollama", ProviderOllama, "nomic-embed-text:v1.5", nil, Query, "/api/embed", "Bearer " + testKey,
			`{"model":"nomic-embed-text:v1.5","input":["search_query: a <b>","search_query: c"],"truncate":true}`},
		{"ollama sized", ProviderOllama, "m", func(c *Config) { c.Dimensions = testDims }, Document, "/api/embed", "Bearer " + testKey,
			`{"model":"m","input":["a <b>","c"],"truncate":true,"dimensions":8}`},
		{"openai", ProviderOpenAI, "text-embedding-3-small", nil, Document, "/v1/embeddings", "Bearer " + testKey,
			`{"model":"text-embedding-3-small","input":["a <b>","c"],"encoding_format":"float"}`},
		{"openai base64 sized", ProviderOpenAI, "intfloat/multilingual-e5-base", func(c *Config) { c.Dimensions, c.Encoding = testDims, "base64" }, Document, "/v1/embeddings", "Bearer " + testKey,
			`{"model":"intfloat/multilingual-e5-base","input":["passage: a <b>","passage: c"],"dimensions":8,"encoding_format":"base64"}`},
		{"openai without key", ProviderOpenAI, "m", func(c *Config) { c.APIKey = Secret{} }, Document, "/v1/embeddings", "",
			`{"model":"m","input":["a <b>","c"],"encoding_format":"float"}`},
		{"gemini", ProviderGemini, "gemini-embedding-001", func(c *Config) { c.Dimensions = testDims }, Query, "/v1/models/gemini-embedding-001:batchEmbedContents", testKey,
			`{"requests":[{"model":"models/gemini-embedding-001","content":{"parts":[{"text":"a <b>"}]},"taskType":"RETRIEVAL_QUERY","outputDimensionality":8},{"model":"models/gemini-embedding-001","content":{"parts":[{"text":"c"}]},"taskType":"RETRIEVAL_QUERY","outputDimensionality":8}]}`},
		{"gemini document", ProviderGemini, "models/gemini-embedding-001", nil, Document, "/v1/models/gemini-embedding-001:batchEmbedContents", testKey,
			`{"requests":[{"model":"models/gemini-embedding-001","content":{"parts":[{"text":"a <b>"}]},"taskType":"RETRIEVAL_DOCUMENT"},{"model":"models/gemini-embedding-001","content":{"parts":[{"text":"c"}]},"taskType":"RETRIEVAL_DOCUMENT"}]}`},
		{"gemini 2", ProviderGemini, "gemini-embedding-2", nil, Query, "/v1/models/gemini-embedding-2:batchEmbedContents", testKey,
			`{"requests":[{"model":"models/gemini-embedding-2","content":{"parts":[{"text":"task: search result | query: a <b>"}]}},{"model":"models/gemini-embedding-2","content":{"parts":[{"text":"task: search result | query: c"}]}}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProvider(t, c.kind)
			cfg := Config{Provider: c.kind, Model: c.model, BaseURL: p.server.URL + "/v1/", APIKey: NewSecret(testKey)}
			if c.kind == ProviderOllama {
				cfg.BaseURL = p.server.URL
			}
			if c.change != nil {
				c.change(&cfg)
			}
			e, _ := open(t, cfg)
			if got := e.Space().Dimensions; got != testDims {
				t.Fatalf("space has %d dimensions", got)
			}
			asked := len(p.seen())
			if wantProbe := cfg.Dimensions == 0; wantProbe != (asked == 1) {
				t.Fatalf("open sent %d requests", asked)
			}
			got, err := e.Embed(t.Context(), c.purpose, []string{"a <b>", "c"})
			if err != nil {
				t.Fatal(err)
			}
			s := p.seen()[asked]
			if s.path != c.path || s.body != c.body || s.header.Get("Content-Type") != "application/json" {
				t.Errorf("path %s\nbody %s\nwant %s\n     %s", s.path, s.body, c.path, c.body)
			}
			if auth := s.header.Get("Authorization") + s.header.Get("X-Goog-Api-Key"); auth != c.auth {
				t.Errorf("key header %q, want %q", auth, c.auth)
			}
			for i, text := range s.texts {
				if !near(got[i], unit(reference(text, testDims))) {
					t.Errorf("vector %d is not that of %q", i, text)
				}
			}
		})
	}
}

func TestBatchesStayWithinLimits(t *testing.T) {
	p := newProvider(t, ProviderOpenAI)
	cfg := testConfig(p)
	cfg.MaxItems, cfg.MaxTokens, cfg.MaxBytes = 4, 40, 100
	e, _ := open(t, cfg)
	var texts []string
	for i := range 50 {
		texts = append(texts, strings.Repeat("ab ", i%7+1)+fmt.Sprint(i))
	}
	texts = append(texts, strings.Repeat("long ", 60))
	if _, err := e.Embed(t.Context(), Document, texts); err != nil {
		t.Fatal(err)
	}
	var sent []string
	for _, s := range p.seen() {
		size, tokens := 0, 0
		for _, text := range s.texts {
			size += len(text)
			tokens += estimateTokens(text)
		}
		if len(s.texts) > 1 && (len(s.texts) > 4 || size > 100 || tokens > 40) {
			t.Errorf("request of %d texts, %d bytes, %d tokens", len(s.texts), size, tokens)
		}
		sent = append(sent, s.texts...)
	}
	slices.Sort(sent)
	slices.Sort(texts)
	if !slices.Equal(sent, texts) {
		t.Error("the requests together are not the texts")
	}
}

func TestEstimateTokens(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 1, "abcd": 2, "日本": 2, "é": 1, "\xff\xfe": 2} {
		if got := estimateTokens(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// TestConcurrencyBound lets requests pile up and looks at the pile.
func TestConcurrencyBound(t *testing.T) {
	for kind, bound := range map[string]int{ProviderOllama: 1, ProviderOpenAI: 4, ProviderGemini: 4} {
		t.Run(kind, func(t *testing.T) {
			p := newProvider(t, kind)
			arrived, release := make(chan struct{}, 100), make(chan struct{})
			p.script = func(int, seen, http.ResponseWriter, *http.Request) bool {
				arrived <- struct{}{}
				<-release
				return false
			}
			cfg := testConfig(p)
			cfg.MaxItems = 1
			e, _ := open(t, cfg)
			var wg sync.WaitGroup
			for range 2 { // the bound is over all calls
				wg.Go(func() {
					if _, err := e.Embed(t.Context(), Document, []string{"a", "b", "c", "d", "e", "f"}); err != nil {
						t.Error(err)
					}
				})
			}
			for range bound {
				<-arrived
			}
			close(release)
			wg.Wait()
			if p.peak != bound || len(p.seen()) != 12 {
				t.Fatalf("%d at once of %d, want %d", p.peak, len(p.seen()), bound)
			}
		})
	}
}

func TestCloseEndsCallsInFlight(t *testing.T) {
	p := newProvider(t, ProviderOllama)
	arrived := make(chan struct{})
	p.script = func(_ int, _ seen, _ http.ResponseWriter, r *http.Request) bool {
		close(arrived)
		<-r.Context().Done()
		return true
	}
	e, _ := open(t, testConfig(p))
	failed := make(chan error)
	go func() {
		_, err := e.Embed(t.Context(), Document, []string{"a"})
		failed <- err
	}()
	<-arrived
	closed := make(chan error)
	go func() { closed <- e.Close() }()
	if err := <-failed; !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
}
