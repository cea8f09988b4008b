package embed

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"mneme/internal/embed/local/localtest"
)

// modelDir writes a model into a directory of that name.
func modelDir(t testing.TB, name string, s localtest.Spec) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := localtest.Write(dir, s.Files()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestLocalSpaceHoldsTheDigest(t *testing.T) {
	s := localtest.Tiny()
	dir := modelDir(t, "e5-tiny", s)
	e, _ := open(t, Config{Provider: "LOCAL", Dir: dir})
	space := e.Space()
	name, digest, _ := strings.Cut(space.Model, "@")
	if space.Provider != ProviderLocal || name != "e5-tiny" || len(digest) != digestDigits || space.Dimensions != 32 ||
		space.DocumentPrefix != "passage: " || space.QueryPrefix != "query: " || IsBuiltin(space.Provider) {
		t.Fatalf("space %s", space)
	}
	other := s
	other.Seed++
	if o, _ := open(t, Config{Provider: ProviderLocal, Dir: modelDir(t, "e5-tiny", other)}); o.Space() == space {
		t.Error("other weights are the same space")
	}
	files := s.Files()
	files["tokenizer.json"] = []byte(strings.Replace(string(files["tokenizer.json"]), `"lowercase":true`, `"lowercase":false`, 1))
	changed := filepath.Join(t.TempDir(), "e5-tiny")
	if err := localtest.Write(changed, files); err != nil {
		t.Fatal(err)
	}
	if o, _ := open(t, Config{Provider: ProviderLocal, Dir: changed}); o.Space() == space {
		t.Error("another tokenizer is the same space")
	}
	if o, _ := open(t, Config{Provider: ProviderLocal, Dir: modelDir(t, "copy", s), Prefixes: &Prefixes{}}); o.Space() == space {
		t.Error("other prefixes are the same space")
	}
}

// TestLocalSpaceReopens: by digest, from wherever the directory is now.
func TestLocalSpaceReopens(t *testing.T) {
	s := localtest.Tiny()
	first, _ := open(t, Config{Provider: ProviderLocal, Dir: modelDir(t, "bge-tiny", s)})
	moved := modelDir(t, "somewhere else", s)
	for _, cfg := range []Config{
		{Provider: ProviderLocal, Dir: moved},
		{Provider: ProviderOllama, BaseURL: "http://127.0.0.1:1", Dir: moved},
	} {
		again, _ := open(t, cfg.ForSpace(first.Space()))
		if again.Space() != first.Space() {
			t.Errorf("reopened as %s", again.Space())
		}
	}
	s.Seed++
	_, err := Open(t.Context(), Config{Provider: ProviderLocal, Dir: modelDir(t, "bge-tiny", s)}.ForSpace(first.Space()), Options{})
	wantLocal(t, err, ErrNoModel, "the model here is bge-tiny@", "start the node with the directory of that model")
	_, err = Open(t.Context(), Config{}.ForSpace(first.Space()), Options{})
	wantLocal(t, err, ErrConfig, "no directory", "--local-model DIR")
}

func wantLocal(t *testing.T, err, kind error, words ...string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Kind != kind || e.Provider != ProviderLocal {
		t.Errorf("error %v", err)
		return
	}
	if _, again := pauseOf(err); again {
		t.Errorf("%v is said to pass", err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}

func TestLocalConfiguration(t *testing.T) {
	dir := modelDir(t, "m", localtest.Tiny())
	for name, c := range map[string]struct {
		cfg   Config
		kind  error
		words string
	}{
		"no directory":  {Config{}, ErrConfig, "no directory"},
		"missing":       {Config{Dir: dir + "x"}, ErrNoModel, "no such directory"},
		"file":          {Config{Dir: filepath.Join(dir, "config.json")}, ErrNoModel, "is a file"},
		"empty":         {Config{Dir: t.TempDir()}, ErrNoModel, "config.json: is missing"},
		"other name":    {Config{Dir: dir, Model: "n"}, ErrNoModel, "not n"},
		"a path":        {Config{Dir: dir, Model: "/etc/passwd"}, ErrNoModel, "not /etc/passwd"},
		"other digest":  {Config{Dir: dir, Model: "m@00"}, ErrNoModel, "not m@00"},
		"dimensions":    {Config{Dir: dir, Dimensions: 31}, ErrConfig, "32 dimensions, not 31"},
		"base URL":      {Config{Dir: dir, BaseURL: "http://127.0.0.1:1"}, ErrConfig, "no base URL"},
		"key":           {Config{Dir: dir, APIKey: NewSecret(testKey)}, ErrConfig, "no API key"},
		"encoding":      {Config{Dir: dir, Encoding: "float"}, ErrConfig, "encoding"},
		"many at once":  {Config{Dir: dir, Concurrency: 65}, ErrConfig, "concurrency"},
		"long prefixes": {Config{Dir: dir, Prefixes: &Prefixes{Query: strings.Repeat("x", 2000)}}, ErrConfig, "prefix"},
	} {
		t.Run(name, func(t *testing.T) {
			c.cfg.Provider = ProviderLocal
			e, err := Open(t.Context(), c.cfg, Options{})
			if e != nil {
				t.Fatal("it opened")
			}
			wantLocal(t, err, c.kind, c.words)
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, Config{Provider: ProviderLocal, Dir: dir}, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestLocalPrefixesCount(t *testing.T) {
	e, _ := open(t, Config{Provider: ProviderLocal, Dir: modelDir(t, "x", localtest.Tiny()), Prefixes: &Prefixes{Query: "the "}})
	q, err := e.Embed(t.Context(), Query, []string{"hello"})
	if err != nil {
		t.Fatal(err)
	}
	d, err := e.Embed(t.Context(), Document, []string{"the hello", "hello"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(q[0], d[0]) || slices.Equal(q[0], d[1]) {
		t.Error("the query's prefix is not what was put before it")
	}
}

func TestLocalNamesTheTextToBlame(t *testing.T) {
	e, _ := open(t, Config{Provider: ProviderLocal, Dir: modelDir(t, "x", localtest.Tiny())})
	texts := slices.Repeat([]string{"hello"}, 50)
	texts[37] = "\u200b" // is not blank, and BERT cleans it away
	_, err := e.Embed(t.Context(), Document, texts)
	wantLocal(t, err, ErrBadInput, "text 37", "nothing to embed")
}

// TestLocalZeroVector: weights that give no direction are the model's fault.
func TestLocalZeroVector(t *testing.T) {
	s := localtest.Tiny()
	tensors := s.Tensors()
	last := "encoder.layer.1.output.LayerNorm."
	clear(tensors[last+"weight"].Data)
	clear(tensors[last+"bias"].Data)
	files := s.Files()
	files["model.safetensors"] = localtest.EncodeTensors(tensors, "F32", "")
	dir := t.TempDir()
	if err := localtest.Write(dir, files); err != nil {
		t.Fatal(err)
	}
	e, _ := open(t, Config{Provider: ProviderLocal, Dir: dir})
	_, err := e.Embed(t.Context(), Document, []string{"hello"})
	wantLocal(t, err, ErrBadAnswer, "text 0", "zero vector")
}

// TestLocalOverflow: finite weights whose sums are not finite give an error and
// no vector.
func TestLocalOverflow(t *testing.T) {
	s := localtest.Tiny()
	tensors := s.Tensors()
	for i := range tensors["encoder.layer.1.output.LayerNorm.bias"].Data {
		tensors["encoder.layer.1.output.LayerNorm.weight"].Data[i] = 3e38
		tensors["encoder.layer.1.output.LayerNorm.bias"].Data[i] = 3e38
	}
	files := s.Files()
	files["model.safetensors"] = localtest.EncodeTensors(tensors, "F32", "")
	dir := t.TempDir()
	if err := localtest.Write(dir, files); err != nil {
		t.Fatal(err)
	}
	e, _ := open(t, Config{Provider: ProviderLocal, Dir: dir})
	_, err := e.Embed(t.Context(), Document, []string{"hello world"})
	wantLocal(t, err, ErrBadAnswer, "not a finite number")
}

// TestLocalFilesMayVanish: a model is read once.
func TestLocalFilesMayVanish(t *testing.T) {
	dir := modelDir(t, "x", localtest.Tiny())
	e, _ := open(t, Config{Provider: ProviderLocal, Dir: dir})
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Embed(t.Context(), Document, []string{"hello"}); err != nil {
		t.Fatal(err)
	}
}

// TestLocalCloseEndsCallsInFlight keeps the only worker, so that no call can end
// by itself.
func TestLocalCloseEndsCallsInFlight(t *testing.T) {
	e, _ := open(t, Config{Provider: ProviderLocal, Dir: modelDir(t, "x", localtest.Tiny()), Concurrency: 1})
	workers := e.(*directory).workers
	worker := <-workers
	failed := make(chan error)
	for range 4 {
		go func() {
			_, err := e.Embed(context.Background(), Document, []string{"hello", "world"})
			failed <- err
		}()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Embed(ctx, Document, []string{"hello"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	closed := make(chan error)
	go func() { closed <- e.Close() }()
	for range 4 {
		if err := <-failed; !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	}
	workers <- worker
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
}

// TestLocalWorkIsBounded: no more runs at once than there are workers.
func TestLocalWorkIsBounded(t *testing.T) {
	e, _ := open(t, Config{Provider: ProviderLocal, Dir: modelDir(t, "x", localtest.Tiny()), Concurrency: 1})
	d := e.(*directory)
	if cap(d.workers) != 1 {
		t.Fatalf("%d workers", cap(d.workers))
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := e.Embed(t.Context(), Document, slices.Repeat([]string{"hello"}, 40)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(d.workers) != 1 {
		t.Errorf("%d workers came back", len(d.workers))
	}
}

func TestPrintableNames(t *testing.T) {
	for in, want := range map[string]string{"all-MiniLM-L6-v2": "all-MiniLM-L6-v2", "a@b\n\xff": "a_b__", strings.Repeat("é", 200): strings.Repeat("é", 111)} {
		if got := printable(in); got != want {
			t.Errorf("%q is %q", in, got)
		}
	}
}
