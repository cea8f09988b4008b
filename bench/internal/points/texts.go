package points

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"mneme/bench/internal/corpus"
	"mneme/internal/embed/builtin"
	"mneme/internal/embed/static"
	"mneme/internal/text"
)

// ErrTooFew is returned where this machine has no such vectors of texts, or too few.
var ErrTooFew = errors.New("this machine has texts")

// queryWords is how many words of a text ask for others.
const queryWords = 12

// ofTexts embeds texts of the corpus with the built-in model. A vector is of a whole
// text; a query is of words in the middle of a text of which there is no vector.
func ofTexts(ctx context.Context, opt Options) (*Source, error) {
	if opt.Dim != static.Dimensions {
		return nil, fmt.Errorf("vectors of %d dimensions are wanted: %w of %d", opt.Dim, ErrTooFew, static.Dimensions)
	}
	want := opt.Count + opt.Queries
	all, err := corpus.Load(ctx, corpus.Options{Count: want + want/50, Seed: opt.Seed, Sources: opt.Texts}) // a text in many has no vector
	if err != nil {
		return nil, err
	}
	cut := min(opt.Queries+opt.Queries/50, len(all.Texts))
	queries := embedded(all.Texts[:cut], middle)
	rows := embedded(all.Texts[cut:], strings.TrimSpace)
	if len(queries) < opt.Queries || len(rows) < opt.Count {
		return nil, fmt.Errorf("%d vectors and %d queries are wanted: %w for %d and %d (%s)", opt.Count, opt.Queries, ErrTooFew, len(rows), len(queries), all.From)
	}
	about := fmt.Sprintf("vectors by %s of texts (%s); queries are %d words of others", static.Name, all.From, queryWords)
	return &Source{About: about, next: each(rows), query: each(queries)}, nil
}

// embedded gives the vectors of a part of each text that has any.
func embedded(texts []string, part func(string) string) (rows [][]float32) {
	small := make([]int8, static.Dimensions)
	for _, t := range texts {
		static.Embed(small, text.NewAnalysis(part(t)))
		if slices.ContainsFunc(small, func(x int8) bool { return x != 0 }) {
			row := make([]float32, len(small))
			builtin.Float(row, small)
			rows = append(rows, unit(row))
		}
	}
	return rows
}

// middle is the words in the middle of a text.
func middle(s string) string {
	words := strings.Fields(s)
	if len(words) <= queryWords {
		return s
	}
	from := (len(words) - queryWords) / 2
	return strings.Join(words[from:from+queryWords], " ")
}

// each gives rows one after the other; beyond the last it panics.
func each(rows [][]float32) func() []float32 {
	return func() []float32 {
		row := rows[0]
		rows = rows[1:]
		return row
	}
}

// Bytes gives vectors of texts, one after the other, as the model gave them.
func Bytes(vectors [][]float32) []int8 {
	var out []int8
	for _, v := range vectors {
		for _, x := range v {
			out = append(out, int8(math.Round(float64(x)*builtin.Scale)))
		}
	}
	return out
}
