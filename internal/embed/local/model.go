package local

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
)

// Model is a loaded model. It is read-only and may be used concurrently, each
// goroutine with a Worker of its own.
type Model struct {
	name      string
	digest    string
	dims      int
	maxTokens int
	pool      pooling
	tokenizer *wordpiece
	bert      *bert
}

// Open loads the model in a directory. Errors about its files are *Error.
func Open(dir string) (*Model, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, &Error{Detail: "the directory has no path", Err: err}
	}
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, wrong("", "there is no such directory")
	case err != nil:
		return nil, &Error{Detail: "the directory cannot be opened", Err: reason(err)}
	case !info.IsDir():
		return nil, &Error{Detail: "is a file, not a directory", Hint: "name the directory that holds " + configFile + " and " + weightsFile}
	}
	return load(os.DirFS(abs), nameOf(abs))
}

// load reads small files first: most of what can be wrong shows before the
// weights are read.
func load(dir fs.FS, name string) (*Model, error) {
	f := &files{dir: dir, read: map[string][sha256.Size]byte{}}
	m := &Model{name: name}
	cfg, err := readConfig(f)
	if err != nil {
		return nil, err
	}
	if m.pool, err = readPooling(f, cfg.Hidden); err != nil {
		return nil, err
	}
	if m.tokenizer, err = readTokenizer(f, cfg.Vocabulary); err != nil {
		return nil, err
	}
	if m.maxTokens, err = readMaxTokens(f, cfg.Positions); err != nil {
		return nil, err
	}
	if m.bert, err = readWeights(f, cfg); err != nil {
		return nil, err
	}
	m.dims, m.digest = cfg.Hidden, f.digest()
	return m, nil
}

// Name is the last part of the directory's path; it says nothing of what is in it.
func (m *Model) Name() string { return m.name }

// Digest is SHA-256 of everything that vectors depend on, 64 hexadecimal digits.
func (m *Model) Digest() string { return m.digest }

// Dimensions is the length of every vector.
func (m *Model) Dimensions() int { return m.dims }

// MaxTokens is how much of a text is read, [CLS] and [SEP] included.
func (m *Model) MaxTokens() int { return m.maxTokens }

// Worker embeds for one goroutine at a time; it keeps its memory between calls.
type Worker struct {
	model *Model
	s     scratch
	alone []int32
}

// NewWorker returns a worker, which needs no closing.
func (m *Model) NewWorker() *Worker { return &Worker{model: m} }

// Batch bounds: tokens that run together, so that weights are read from memory
// once for several short texts.
const batchTokens = 128

// ErrNothing: the text has no token.
var ErrNothing = errors.New("text has nothing to embed")

// Embed returns the vectors of the first texts, each behind prefix, at least one:
// as many as make a good run. Vectors are the caller's, and not normalised; they
// may hold NaN or infinities if sums overflow. ErrNothing is about the first
// text, and about the text itself, not its prefix.
func (w *Worker) Embed(prefix string, texts []string) ([][]float32, error) {
	m, s := w.model, &w.s
	s.tokens, s.spans = s.tokens[:0], s.spans[:0]
	for _, text := range texts {
		from := len(s.tokens)
		if from >= batchTokens {
			break
		}
		s.tokens = m.tokenizer.encode(s.tokens, prefix+text, m.maxTokens)
		if w.isNothing(prefix, text, s.tokens[from:]) || from > 0 && len(s.tokens) > 2*batchTokens {
			s.tokens = s.tokens[:from] // for the next call
			break
		}
		s.spans = append(s.spans, span{from, len(s.tokens)})
	}
	if len(s.spans) == 0 {
		if len(texts) == 0 {
			return nil, nil
		}
		return nil, ErrNothing
	}
	states := m.bert.run(s)
	out := make([][]float32, len(s.spans))
	for i, t := range s.spans {
		out[i] = m.pool.apply(states[t.from*m.dims:t.to*m.dims], m.dims)
	}
	return out, nil
}

// isNothing reports whether text has no token; tokens are those with prefix.
func (w *Worker) isNothing(prefix, text string, tokens []int32) bool {
	if prefix != "" {
		w.alone = w.model.tokenizer.encode(w.alone[:0], text, 3)
		tokens = w.alone
	}
	return len(tokens) <= 2
}

// pooling makes one vector of a text's hidden states.
type pooling int

const (
	poolMean pooling = iota // of all tokens, [CLS] and [SEP] too
	poolCLS                 // the first token's
	poolMax                 // of each dimension
)

func (p pooling) apply(states []float32, dims int) []float32 {
	out := make([]float32, dims)
	rows := len(states) / dims
	switch p {
	case poolCLS:
		copy(out, states)
	case poolMax:
		copy(out, states)
		for i := 1; i < rows; i++ {
			for j, x := range states[i*dims : (i+1)*dims] {
				out[j] = max(out[j], x)
			}
		}
	default:
		for j := range out {
			sum := 0.0
			for i := range rows {
				sum += float64(states[i*dims+j])
			}
			out[j] = float32(sum / float64(rows))
		}
	}
	return out
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func isFinite(v []float32) bool {
	for _, x := range v {
		if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
			return false
		}
	}
	return true
}
