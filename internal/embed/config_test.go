package embed

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestAutoIsBuiltin(t *testing.T) {
	for _, name := range []string{"", "auto", "builtin", " Auto "} {
		e, err := Open(t.Context(), Config{Provider: name}, Options{})
		if err != nil || e.Space() != builtinModels()[0].Space || !IsBuiltin(name) {
			t.Errorf("%q: %v, %v", name, e, err)
		}
	}
	for _, name := range append(remoteKinds(), ProviderNone) {
		if IsBuiltin(name) {
			t.Errorf("%s is local", name)
		}
	}
	if e, err := Open(t.Context(), Config{Provider: ProviderNone}, Options{}); e != nil || err != ErrNone {
		t.Errorf("none: %v, %v", e, err)
	}
}

func TestValidate(t *testing.T) {
	key := NewSecret("secret-in-url")
	for _, c := range []struct {
		wrong string // empty: valid
		cfg   Config
	}{
		{"", Config{}},
		{"", Config{Provider: "none", Concurrency: -5}},
		{"", Config{Provider: "openai", APIKey: key}},
		{"", Config{Provider: "openai", BaseURL: "http://127.0.0.1:8080/v1"}},
		{"", Config{Provider: "ollama"}},
		{"", Config{Provider: "builtin", Model: "hash", Dimensions: 384}},
		{"", Config{Provider: "builtin", Model: "static-1"}},
		{"vectors of hash have 384", Config{Provider: "builtin", Model: "hash", Dimensions: 383}},
		{"unknown provider", Config{Provider: "voyage"}},
		{"no API key; set OPENAI_API_KEY", Config{Provider: "openai"}},
		{"no API key", Config{Provider: "openai", BaseURL: openAIURL + "/"}},
		{"set GEMINI_API_KEY", Config{Provider: "gemini"}},
		{"the built-in models are static-1 and hash", Config{Model: "nomic"}},
		{"384 dimensions", Config{Dimensions: 100}},
		{"no prefixes", Config{Prefixes: &Prefixes{Query: "q"}}},
		{"dimensions is -1", Config{Provider: "ollama", Dimensions: -1}},
		{"concurrency is 65", Config{Provider: "ollama", Concurrency: 65}},
		{"max retries", Config{Provider: "ollama", MaxRetries: -2}},
		{"max items", Config{Provider: "ollama", MaxItems: -1}},
		{"duration", Config{Provider: "ollama", Timeout: -1}},
		{"model name", Config{Provider: "ollama", Model: "a\nb"}},
		{"prefix is longer", Config{Provider: "ollama", Prefixes: &Prefixes{Query: strings.Repeat("x", 2000)}}},
		{"only in the OpenAI", Config{Provider: "ollama", Encoding: "base64"}},
		{"neither float", Config{Provider: "openai", APIKey: key, Encoding: "int8"}},
		{"control characters", Config{Provider: "openai", APIKey: NewSecret("a\r\nHost: x")}},
		{"not an http", Config{Provider: "ollama", BaseURL: "localhost:11434"}},
		{"not an http", Config{Provider: "ollama", BaseURL: "http://u:secret-in-url@h:bad port"}},
		{"credentials", Config{Provider: "ollama", BaseURL: "http://u:secret-in-url@h"}},
		{"query", Config{Provider: "ollama", BaseURL: "http://h?key=secret-in-url"}},
	} {
		err := c.cfg.Validate()
		if c.wrong == "" {
			if err != nil {
				t.Errorf("%+v: %v", c.cfg, err)
			}
			continue
		}
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.wrong) || strings.Contains(err.Error(), "secret-in-url") {
			t.Errorf("%+v: %v, want %s", c.cfg, err, c.wrong)
		}
		if e, opened := Open(t.Context(), c.cfg, Options{}); e != nil || opened == nil {
			t.Errorf("%+v can be opened", c.cfg)
		}
	}
}

func TestResolve(t *testing.T) {
	got := Config{Provider: "ollama"}.resolve()
	got.Prefixes = nil
	want := Config{Provider: "ollama", Model: "embeddinggemma", BaseURL: "http://127.0.0.1:11434", Timeout: 2 * time.Minute, MaxRetries: 4, MaxWait: 30 * time.Second,
		Concurrency: 1, MaxItems: 64, MaxTokens: 32768, MaxBytes: 1 << 20, Encoding: "float"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if c := (Config{Provider: "openai", BaseURL: "http://h/v1", MaxRetries: -1}).resolve(); c.MaxItems != 32 || c.MaxRetries != 0 {
		t.Errorf("compatible: %+v", c)
	}
	if c := (Config{Provider: "gemini", Model: "x", MaxItems: 7}).resolve(); c.MaxItems != 7 || c.Concurrency != 4 || *c.Prefixes != (Prefixes{}) {
		t.Errorf("gemini: %+v", c)
	}
}

func TestEnvironment(t *testing.T) {
	env := map[string]string{"OPENAI_API_KEY": "ok ", "OPENAI_BASE_URL": "http://o/v1", "GEMINI_API_KEY": "gk", "OLLAMA_HOST": "0.0.0.0:9"}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	for _, c := range []struct {
		cfg       Config
		base, key string
	}{
		{Config{}, "", ""},
		{Config{Provider: "none"}, "", ""},
		{Config{Provider: "openai"}, "http://o/v1", "ok"},
		{Config{Provider: "openai", BaseURL: "http://mine", APIKey: NewSecret("mine")}, "http://mine", "mine"},
		{Config{Provider: "gemini"}, "", "gk"},
		{Config{Provider: "ollama"}, "http://127.0.0.1:9", ""},
		{Config{Provider: "ollama", BaseURL: "http://mine"}, "http://mine", ""},
	} {
		got := c.cfg.WithEnvironment(lookup)
		if got.BaseURL != c.base || got.APIKey.Reveal() != c.key || got.Provider != c.cfg.Provider {
			t.Errorf("%v: got %s %q", c.cfg, got.BaseURL, got.APIKey.Reveal())
		}
	}
}

func TestOllamaURL(t *testing.T) {
	for host, want := range map[string]string{
		"": "http://127.0.0.1:11434", "0.0.0.0": "http://127.0.0.1:11434", ":1234": "http://127.0.0.1:1234", "[::]:5": "http://[::1]:5",
		"::1": "http://[::1]:11434", "box": "http://box:11434", "box:1": "http://box:1", "http://box": "http://box:80", "https://box/": "https://box:443",
		"https://box:8/ollama/": "https://box:8/ollama", " \"box\" ": "http://box:11434",
	} {
		if got := OllamaURL(host); got != want {
			t.Errorf("%q: %s, want %s", host, got, want)
		}
	}
}

func TestForSpace(t *testing.T) {
	p := newProvider(t, ProviderOllama)
	first, _ := open(t, Config{Provider: ProviderOllama, Model: "nomic-embed-text", BaseURL: p.server.URL})
	space := first.Space()
	if space.Dimensions != testDims || space.QueryPrefix == "" {
		t.Fatal(space)
	}
	// Another configuration of the same provider, and a dead server: the space is known.
	p.server.Close()
	again, _ := open(t, Config{Provider: ProviderOllama, Model: "other", BaseURL: p.server.URL, Dimensions: 4}.ForSpace(space))
	if again.Space() != space {
		t.Fatalf("%v became %v", space, again.Space())
	}
	// Another provider's address and key are not used.
	cfg := Config{Provider: ProviderOpenAI, BaseURL: "http://elsewhere", APIKey: NewSecret("k")}.ForSpace(space)
	if cfg.BaseURL != "" || !cfg.APIKey.IsZero() {
		t.Fatalf("%+v", cfg)
	}
	newer := space
	newer.Version++
	if _, err := Open(t.Context(), Config{}.ForSpace(newer), Options{}); !errors.Is(err, ErrConfig) {
		t.Fatal(err)
	}
	local := builtinModels()[0].Space
	open(t, Config{Provider: ProviderNone}.ForSpace(local))
	local.Version++
	if _, err := Open(t.Context(), Config{}.ForSpace(local), Options{}); !errors.Is(err, ErrConfig) {
		t.Fatal(err)
	}
	short := Config{Provider: ProviderOpenAI}.ForSpace(Space{Provider: ProviderOpenAI, Model: "text-embedding-3-small", Dimensions: 256, Normalised: true, Version: 1})
	full := Config{Provider: ProviderOpenAI}.ForSpace(Space{Provider: ProviderOpenAI, Model: "text-embedding-3-small", Dimensions: 1536, Normalised: true, Version: 1})
	if short.Dimensions != 256 || full.Dimensions != 0 {
		t.Fatalf("asks for %d and %d", short.Dimensions, full.Dimensions)
	}
}

func TestKnownPrefixes(t *testing.T) {
	for model, want := range map[string]Prefixes{
		"nomic-embed-text:latest":                 {"search_document: ", "search_query: "},
		"nomic-ai/nomic-embed-text-v1.5":          {"search_document: ", "search_query: "},
		"intfloat/multilingual-e5-large":          {"passage: ", "query: "},
		"e5-base-v2":                              {"passage: ", "query: "},
		"intfloat/multilingual-e5-large-instruct": {"", webSearchTask + " "},
		"BAAI/bge-large-en-v1.5":                  {"", searchPassages},
		"bge-large-zh-v1.5":                       {"", "为这个句子生成表示以用于检索相关文章："},
		"bge-m3:567m":                             {},
		"Qwen/Qwen3-Embedding-0.6B":               {"", webSearchTask},
		"qwen3-embedding:8b":                      {"", webSearchTask},
		"embeddinggemma:300m":                     {"title: none | text: ", "task: search result | query: "},
		"models/gemini-embedding-2":               {"title: none | text: ", "task: search result | query: "},
		"mxbai-embed-large":                       {"", searchPassages},
		"snowflake-arctic-embed:335m":             {"", searchPassages},
		"snowflake-arctic-embed2":                 {"", "query: "},
		"Snowflake/snowflake-arctic-embed-l-v2.0": {"", "query: "},
	} {
		if got, known := KnownPrefixes(model); got != want || !known {
			t.Errorf("%s: %q, %v", model, got, known)
		}
	}
	for _, model := range []string{"text-embedding-3-small", "all-minilm", "gemini-embedding-001", ""} {
		if got, known := KnownPrefixes(model); known || got != (Prefixes{}) {
			t.Errorf("%s: %q", model, got)
		}
	}
}
