package embed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const longText = "dear diary, today a colleague told me what nobody else should know"

// TestFailures has one row for each thing that goes wrong. requests counts what
// the provider saw for one Embed of two texts with one retry allowed.
func TestFailures(t *testing.T) {
	status := func(code int, body string) func(string) (int, string) {
		return func(string) (int, string) { return code, body }
	}
	words := func(code int, message string) func(string) (int, string) {
		return func(kind string) (int, string) { return code, errorOf(kind, message) }
	}
	answer := func(vectors ...[]float32) func(string) (int, string) {
		return func(kind string) (int, string) { return 200, answerOf(kind, vectors, false) }
	}
	raw := func(number string) func(string) (int, string) {
		return func(kind string) (int, string) {
			body := answerOf(kind, [][]float32{reference("a", testDims), {77, 1, 1, 1, 1, 1, 1, 1}}, false)
			return 200, strings.Replace(body, "[77,", "["+number+",", 1)
		}
	}
	v := reference("v", testDims)
	for _, c := range []struct {
		name     string
		only     string // provider, all if empty
		answer   func(kind string) (int, string)
		kind     error
		requests int
		index    int
		contains string
	}{
		{"401", "", words(401, "bad key "+testKey), ErrAuth, 1, -1, "bad key [redacted]"},
		{"403", "", words(403, "no"), ErrAuth, 1, -1, ""},
		{"402", "", words(402, "pay"), ErrQuota, 1, -1, "pay"},
		{"quota", ProviderOpenAI, status(429, `{"error":{"message":"You exceeded your quota","type":"insufficient_quota","code":"insufficient_quota"}}`), ErrQuota, 1, -1, "exceeded"},
		{"quota per day", ProviderGemini, status(429, `{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"EmbedContentRequestsPerDayPerProject"}]}]}}`), ErrQuota, 1, -1, ""},
		{"wrong key as 400", ProviderGemini, status(400, `{"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}`), ErrAuth, 1, -1, "check GEMINI_API_KEY"},
		{"wrong key by code", ProviderOpenAI, status(400, `{"error":{"message":"Incorrect API key provided: sk-ab***yz","code":"invalid_api_key"}}`), ErrAuth, 1, -1, "provided: [redacted]"},
		{"no model", ProviderOllama, words(404, `model "m" not found, try pulling it first`), ErrNoModel, 1, -1, `: model "m" not found; run: ollama pull m`},
		{"no model hosted", ProviderOpenAI, status(404, `{"error":{"message":"The thing does not exist","code":"model_not_found"}}`), ErrNoModel, 1, -1, `model "m" not found`},
		{"wrong address", "", status(404, "404 page not found"), ErrNoModel, 1, -1, "check the base URL"},
		{"no embedding model", ProviderOllama, words(400, "this model does not support embeddings"), ErrNoModel, 1, -1, ""},
		{"501", "", words(501, "started without --embedding"), ErrNoModel, 1, -1, "--embedding"},
		{"redirect", "", status(307, ""), ErrConfig, 1, -1, "check the base URL"},
		{"400", "", words(400, "invalid"), ErrBadInput, 2, 0, "text 0: status 400 Bad Request: invalid"},
		{"400 quotes all", "", words(400, "bad value: "+longText), ErrBadInput, 2, 0, "left out"},
		{"400 quotes part", "", words(400, "bad: "+longText[7:50]), ErrBadInput, 2, 0, "left out"},
		{"400 too long", "", words(400, "maximum context length is 8192 tokens"), ErrBadInput, 2, 0, ""},
		{"413", "", words(413, "batch size 2 > maximum allowed batch size 1"), ErrBadInput, 2, 0, ""},
		{"429 larger than a minute", ProviderOpenAI, words(429, "Request too large for m"), ErrBadInput, 2, 0, ""},
		{"500 too large", ProviderOpenAI, status(500, `{"error":{"code":500,"message":"input is too large to process. increase the physical batch size","type":"server_error"}}`), ErrBadInput, 2, 0, ""},
		{"500 NaN", ProviderOllama, words(500, "failed to encode response: json: unsupported value: NaN"), ErrBadAnswer, 2, 0, ""},
		{"408", "", words(408, "slow"), ErrUnavailable, 2, -1, ""},
		{"409", "", words(409, "busy"), ErrUnavailable, 2, -1, ""},
		{"425", "", words(425, "early"), ErrUnavailable, 2, -1, ""},
		{"429", "", words(429, "rate"), ErrUnavailable, 2, -1, "rate"},
		{"500", "", words(500, "oops"), ErrUnavailable, 2, -1, "oops"},
		{"503 html", "", status(503, "<html>\x00\n  down</html>"), ErrUnavailable, 2, -1, "<html> down</html>"},
		{"529 odd", "", status(529, ""), ErrUnavailable, 2, -1, "status 529"},
		{"cut answer", "", func(kind string) (int, string) {
			_, body := answer(v, v)(kind)
			return 200, body[:len(body)/2]
		}, ErrBadAnswer, 2, -1, "cannot read the answer"},
		{"no JSON", "", status(200, "<html>hello</html>"), ErrBadAnswer, 1, -1, ""},
		{"other JSON", "", status(200, `{"hello":1}`), ErrBadAnswer, 1, -1, "2 texts were sent, 0 embeddings came back"},
		{"too few", "", answer(v), ErrBadAnswer, 1, -1, "1 embeddings came back"},
		{"too many", "", answer(v, v, v), ErrBadAnswer, 1, -1, "3 embeddings came back"},
		{"other size", "", answer(v, v[:7]), ErrWrongDimensions, 1, -1, "answered with 7 dimensions, the space has 8"},
		{"empty vector", "", answer(v, []float32{}), ErrWrongDimensions, 1, -1, ""},
		{"zero vector", "", answer(v, make([]float32, testDims)), ErrBadAnswer, 1, 1, "zero vector"},
		{"NaN literal", "", raw("NaN"), ErrBadAnswer, 1, -1, ""},
		{"NaN as null", "", raw("null"), ErrBadAnswer, 1, -1, "number 0 is not a finite number"},
		{"huge", "", raw("1e39"), ErrBadAnswer, 1, -1, "not a finite number"},
		{"string", "", raw(`"1"`), ErrBadAnswer, 1, -1, ""},
		{"index twice", ProviderOpenAI, status(200, `{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`), ErrBadAnswer, 1, -1, "index 0"},
		{"index outside", ProviderOpenAI, status(200, `{"data":[{"index":0,"embedding":[1]},{"index":-1,"embedding":[1]}]}`), ErrBadAnswer, 1, -1, "index -1"},
		{"null vector", ProviderOpenAI, status(200, `{"data":[{"index":0,"embedding":null},{"index":1,"embedding":[1]}]}`), ErrBadAnswer, 1, -1, ""},
		{"no vector", ProviderOpenAI, status(200, `{"data":[{"index":0},{"index":1,"embedding":[1]}]}`), ErrWrongDimensions, 1, -1, ""},
		{"base64 NaN", ProviderOpenAI, status(200, `{"data":[{"embedding":"AADAfwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8="},{"embedding":"AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8="}]}`), ErrBadAnswer, 1, 0, "not a finite number"},
		{"base64 odd", ProviderOpenAI, status(200, `{"data":[{"embedding":"AADA"},{"embedding":"AADA"}]}`), ErrBadAnswer, 1, -1, "multiple of 4"},
		{"base64 broken", ProviderOpenAI, status(200, `{"data":[{"embedding":"!"},{"embedding":"!"}]}`), ErrBadAnswer, 1, -1, "base64"},
		{"endless answer", "", status(200, strings.Repeat(" ", answerSlack+2*testDims*bytesPerValue+1)), ErrBadAnswer, 1, -1, "larger than"},
	} {
		for _, kind := range remoteKinds() {
			if c.only != "" && c.only != kind {
				continue
			}
			t.Run(kind+"/"+c.name, func(t *testing.T) {
				p := newProvider(t, kind)
				p.script = func(_ int, _ seen, w http.ResponseWriter, _ *http.Request) bool {
					if code, body := c.answer(kind); code == 307 {
						w.Header().Set("Location", "/elsewhere")
						return reply(w, code, body)
					} else {
						return reply(w, code, body)
					}
				}
				cfg := testConfig(p)
				cfg.MaxRetries = 1
				e, _ := open(t, cfg)
				got, err := e.Embed(t.Context(), Document, []string{longText, "private text"})
				var typed *Error
				if got != nil || !errors.As(err, &typed) || !errors.Is(err, c.kind) {
					t.Fatalf("got %v, %v; want %v", got, err, c.kind)
				}
				if len(p.seen()) != c.requests || typed.Index != c.index {
					t.Errorf("%d requests, index %d; want %d, %d", len(p.seen()), typed.Index, c.requests, c.index)
				}
				text := err.Error()
				if !strings.HasPrefix(text, kind+" at "+p.server.URL+":") || !strings.Contains(text, c.contains) || strings.ContainsAny(text, "\n\x00") {
					t.Errorf("reads %q, wants %q", text, c.contains)
				}
				if strings.Contains(text, testKey) || strings.Contains(text, "private") || strings.Contains(text, "diary") {
					t.Errorf("gives a secret away: %s", text)
				}
				if wait, again := pauseOf(err); again != (c.kind == ErrUnavailable) || wait < 0 {
					t.Errorf("RetryAfter = %v, %v", wait, again)
				}
			})
		}
	}
}

// TestSplit lets the provider take few or short texts only.
func TestSplit(t *testing.T) {
	for _, kind := range remoteKinds() {
		p := newProvider(t, kind)
		p.script = func(_ int, s seen, w http.ResponseWriter, _ *http.Request) bool {
			if len(s.texts) > 3 {
				return reply(w, 413, errorOf(kind, "too many"))
			}
			if slices.Contains(s.texts, "poison") {
				return reply(w, 400, errorOf(kind, "this one is refused"))
			}
			return false
		}
		cfg := testConfig(p)
		cfg.MaxItems = 30
		e, _ := open(t, cfg)
		var texts []string
		for i := range 41 {
			texts = append(texts, fmt.Sprint("t", i))
		}
		got, err := e.Embed(t.Context(), Document, texts)
		if err != nil {
			t.Fatal(err)
		}
		for i, text := range texts {
			if !near(got[i], unit(reference(text, testDims))) {
				t.Fatalf("%s: vector %d is not that of %q", kind, i, text)
			}
		}
		texts[37] = "poison"
		_, err = e.Embed(t.Context(), Document, texts)
		var typed *Error
		if !errors.As(err, &typed) || typed.Kind != ErrBadInput || typed.Index != 37 {
			t.Fatalf("%s: %v", kind, err)
		}
	}
}

func TestUnreachable(t *testing.T) {
	p := newProvider(t, ProviderOllama)
	p.server.Close()
	e, clock := open(t, testConfig(p))
	_, err := e.Embed(t.Context(), Document, []string{"a"})
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "ollama serve") || strings.Contains(err.Error(), "Post ") {
		t.Fatal(err)
	}
	// Half of 0.5, 1, 2, 4 s; the fifth failure opens the breaker.
	want := []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second}
	if !slices.Equal(clock.slept(), want) {
		t.Fatalf("slept %v", clock.slept())
	}
	_, err = e.Embed(t.Context(), Document, []string{"a"})
	wait, again := pauseOf(err)
	if !again || wait <= 0 || wait > breakerOpen || len(clock.slept()) != 4 {
		t.Fatalf("not cut off: %v", err)
	}
}

func TestOpenNeedsAnAnswerOnlyForAnUnknownSize(t *testing.T) {
	p := newProvider(t, ProviderOpenAI)
	p.script = func(_ int, _ seen, w http.ResponseWriter, _ *http.Request) bool { return reply(w, 401, "") }
	cfg := testConfig(p)
	cfg.space = Space{}
	if e, err := Open(t.Context(), cfg, Options{}); e != nil || !errors.Is(err, ErrAuth) {
		t.Fatalf("%v, %v", e, err)
	}
	cfg = Config{Provider: ProviderOpenAI, APIKey: NewSecret("k")}
	e, _ := open(t, cfg)
	if got := e.Space().String(); got != "openai/text-embedding-3-small 1536d v1" {
		t.Fatal(got)
	}
}

// stalling is a transport whose first two answers stall: before the header, and
// in the middle of the body.
type stalling struct {
	n    int
	then http.RoundTripper
}

func (s *stalling) RoundTrip(r *http.Request) (*http.Response, error) {
	switch s.n++; s.n {
	case 1:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case 2:
		return &http.Response{StatusCode: 200, Body: io.NopCloser(stalledBody{r.Context()})}, nil
	}
	return s.then.RoundTrip(r)
}

type stalledBody struct{ ctx context.Context }

func (b stalledBody) Read([]byte) (int, error) {
	<-b.ctx.Done()
	return 0, b.ctx.Err()
}

// TestAttemptTimesOut plays the time: two attempts of 30 s, two pauses.
func TestAttemptTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{kind: ProviderOpenAI, dims: testDims}
		transport := &stalling{then: handlerTransport{p}}
		e, err := Open(t.Context(), Config{Provider: ProviderOpenAI, BaseURL: "http://test", Dimensions: testDims},
			Options{HTTPClient: &http.Client{Transport: transport}, Rand: func() float64 { return 0.5 }})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		start := time.Now()
		if _, err := e.Embed(t.Context(), Document, []string{"a"}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); transport.n != 3 || took != 60*time.Second+750*time.Millisecond {
			t.Fatalf("%d requests in %v", transport.n, took)
		}
	})
}

// TestAnswerCutOff ends the connection before the announced length.
func TestAnswerCutOff(t *testing.T) {
	p := newProvider(t, ProviderOpenAI)
	p.script = func(n int, _ seen, w http.ResponseWriter, _ *http.Request) bool {
		if n > 1 {
			return false
		}
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte(`{"data":[`))
		return true
	}
	e, clock := open(t, testConfig(p))
	if _, err := e.Embed(t.Context(), Document, []string{"a"}); err != nil || len(clock.slept()) != 1 {
		t.Fatal(err, clock.slept())
	}
}

func TestTimeoutIsNotTheCallers(t *testing.T) {
	p := newProvider(t, ProviderOpenAI)
	p.script = func(_ int, _ seen, _ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	}
	cfg := testConfig(p)
	cfg.Timeout, cfg.MaxRetries = 10*time.Millisecond, -1
	e, _ := open(t, cfg)
	_, err := e.Embed(t.Context(), Document, []string{"a"})
	if !errors.Is(err, ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer within 10ms") {
		t.Fatal(err)
	}
}

func TestCallerGivesUp(t *testing.T) {
	p := newProvider(t, ProviderOpenAI)
	ctx, cancel := context.WithCancel(t.Context())
	p.script = func(_ int, _ seen, _ http.ResponseWriter, r *http.Request) bool {
		cancel()
		<-r.Context().Done()
		return true
	}
	e, _ := open(t, testConfig(p))
	_, err := e.Embed(ctx, Document, []string{"a"})
	var typed *Error
	if !errors.Is(err, context.Canceled) || errors.As(err, &typed) {
		t.Fatal(err)
	}
	// That was no failure of the provider: however often, the breaker stays shut.
	for range 2 * breakerFailures {
		ctx, cancel = context.WithCancel(t.Context())
		_, _ = e.Embed(ctx, Document, []string{"a"})
		cancel()
	}
	p.script = nil
	if _, err := e.Embed(t.Context(), Document, []string{"a"}); err != nil {
		t.Fatal(err)
	}
}

// TestSecretsStayInside prints everything in every way.
func TestSecretsStayInside(t *testing.T) {
	p := newProvider(t, ProviderOpenAI)
	p.script = func(_ int, s seen, w http.ResponseWriter, _ *http.Request) bool {
		return reply(w, 500, s.header.Get("Authorization")+" "+s.body)
	}
	cfg := testConfig(p)
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	e, err := Open(t.Context(), cfg, Options{Clock: newStepClock(), Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	_, failure := e.Embed(t.Context(), Document, []string{"a"})
	logger.Info("all", "config", cfg, "key", cfg.APIKey, "err", failure, "embedder", e)
	out := log.String()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, value := range []any{cfg, &cfg, cfg.APIKey, &cfg.APIKey, failure, e, struct{ hidden Secret }{cfg.APIKey}} {
			out += fmt.Sprintf(verb, value)
		}
	}
	if !strings.Contains(out, redacted) || !strings.Contains(log.String(), "repeated") {
		t.Fatal("nothing was printed")
	}
	if strings.Contains(out, testKey) || strings.Contains(out, fmt.Sprintf("%x", testKey)) {
		t.Fatalf("the key is printed:\n%s", out)
	}
}

func TestKeyInClearIsTold(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	for base, told := range map[string]bool{"http://10.1.2.3/v1": true, "https://10.1.2.3/v1": false, "http://localhost:1/v1": false, "http://[::1]:1/v1": false} {
		log.Reset()
		e, err := Open(t.Context(), Config{Provider: ProviderOpenAI, BaseURL: base, APIKey: NewSecret("k"), Dimensions: 4}, Options{Logger: logger})
		if err != nil {
			t.Fatal(err)
		}
		_ = e.Close()
		if strings.Contains(log.String(), "unencrypted") != told {
			t.Errorf("%s: %q", base, log.String())
		}
	}
}

// TestTextsQuotedAsJSON: a server that gives back the request's JSON quotes texts with escapes.
func TestTextsQuotedAsJSON(t *testing.T) {
	for _, text := range []string{`canary "phrase"`, "canary\nphrase", `c:\canary\phrase`, "canary <phrase>", "a longer canary \"phrase\" of the query, and more of it"} {
		body, err := json.Marshal(map[string]any{"model": "m", "input": []string{text}})
		if err != nil {
			t.Fatal(err)
		}
		if !quotes(string(body), []string{text}) {
			t.Errorf("%s does not quote %q", body, text)
		}
	}
	if quotes(`{"model":"m","error":"down"}`, []string{`canary "phrase"`}) {
		t.Error("what quotes nothing is left out")
	}
}
