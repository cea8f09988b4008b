package main

import (
	"flag"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"strings"
)

// fitOptions are what fit can be told.
type fitOptions struct {
	remove    int
	corpus    string
	size      int
	dims      int
	smoothing float64
	seed      uint64
	contrast  contrastOptions
}

// defaults are the options of the shipped weights.
func defaults() fitOptions {
	return fitOptions{size: 60000, dims: 192, smoothing: 1e-3, seed: 1,
		contrast: contrastOptions{batch: 256, epochs: 1, temperature: 0.1, rate: 0.1, dropout: 0.1, stretch: 1}}
}

func fitCommand(fs *flag.FlagSet, args []string, out *string) error {
	o := defaults()
	fs.StringVar(&o.corpus, "corpus", "", "corpus file")
	fs.IntVar(&o.size, "size", o.size, "tokens with a vector")
	fs.IntVar(&o.dims, "dims", o.dims, "dimensions, a multiple of 32")
	fs.Float64Var(&o.smoothing, "smoothing", o.smoothing, "a of the weight a/(a+p) that tokens start with")
	fs.IntVar(&o.remove, "remove", o.remove, "common components that are taken out of all rows")
	fs.Uint64Var(&o.seed, "seed", o.seed, "of all random numbers")
	fs.IntVar(&o.contrast.batch, "batch", o.contrast.batch, "pairs in a batch")
	fs.IntVar(&o.contrast.epochs, "epochs", o.contrast.epochs, "passes over the pairs")
	fs.Float64Var(&o.contrast.temperature, "temperature", o.contrast.temperature, "of the contrastive loss")
	fs.Float64Var(&o.contrast.rate, "rate", o.contrast.rate, "learning rate at the start; it falls to a twentieth")
	fs.Float64Var(&o.contrast.dropout, "dropout", o.contrast.dropout, "share of tokens left out of a text")
	fs.IntVar(&o.contrast.stretch, "stretch", o.contrast.stretch, "neighbouring pairs that stay together in a batch")
	fs.Float64Var(&o.contrast.cloze, "cloze", o.contrast.cloze, "share of batches of texts against parts of themselves")
	if err := fs.Parse(args); err != nil {
		return err
	}
	m, err := fit(o)
	if err != nil {
		return err
	}
	return m.write(*out)
}

// model is what was learnt: a row of dims numbers for each word.
type model struct {
	words []string
	dims  int
	rows  []float32
}

func fit(o fitOptions) (*model, error) {
	if o.dims <= 0 || o.dims%32 != 0 {
		return nil, fmt.Errorf("%d dimensions are no multiple of 32", o.dims)
	}
	runs, err := learnRuns(o.corpus)
	if err != nil {
		return nil, err
	}
	log.Printf("runs: %d", len(runs))
	v, err := learnVocabulary(o.corpus, runs, o.size)
	if err != nil {
		return nil, err
	}
	log.Printf("vocabulary: %d tokens, %d of them runs, %d occurrences", len(v.words), len(v.runs), v.total)
	groups, err := readPairs(o.corpus, v)
	if err != nil {
		return nil, err
	}
	rows := start(v, o)
	c := contrast{dims: o.dims, rows: rows, options: o.contrast, r: rand.New(rand.NewPCG(o.seed, 2))}
	c.train(groups, repeat)
	removeCommon(rows, groups, o)
	return &model{words: v.words, dims: o.dims, rows: rows}, nil
}

// repeat says how many times a pass takes a group.
func repeat(group string) float64 {
	_, kind, _ := strings.Cut(group, "/")
	switch kind {
	case "paraphrase":
		return 3
	case "parallel", "heading", "answer":
		return 2
	case "next":
		return 0.5
	}
	return 1
}

func readPairs(path string, v *vocabulary) (map[string][]pair, error) {
	read, err := lines(path, 'p')
	if err != nil {
		return nil, err
	}
	pairs := make([]pair, len(read))
	spread(len(read), func(i int) {
		if len(read[i]) == 3 {
			pairs[i] = pair{v.tokenise(read[i][1]), v.tokenise(read[i][2])}
		}
	})
	groups := map[string][]pair{}
	for i, p := range pairs {
		if len(p.A) > 0 && len(p.B) > 0 {
			groups[read[i][0]] = append(groups[read[i][0]], p)
		}
	}
	return groups, nil
}

// start gives each row a random direction, which tells every word from every other,
// and the length a/(a+p) (smooth inverse frequency, Arora et al. 2017, "A Simple but
// Tough-to-Beat Baseline for Sentence Embeddings").
func start(v *vocabulary, o fitOptions) []float32 {
	r := rand.New(rand.NewPCG(o.seed, 1))
	rows := make([]float32, len(v.words)*o.dims)
	for id, n := range v.counts {
		row := rows[id*o.dims:][:o.dims]
		for k := range row {
			row[k] = r.Float32() - 0.5
		}
		p := float64(n) / float64(v.total)
		w := float32(o.smoothing / (o.smoothing + p) / math.Sqrt(float64(dot(row, row))))
		for k := range row {
			row[k] *= w
		}
	}
	return rows
}
