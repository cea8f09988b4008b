// Package corpus finds real text on the machine to measure with.
//
// Its job: n distinct texts from Debian's package descriptions, else from the
// documentation comments of Go code, else from a seeded generator, saying how
// many of each; texts of a given size; queries out of the texts' own words.
//
// Invariants: the same machine state and seed give the same corpus; nothing is
// downloaded; every reader is bounded in count and time.
//
// Not its job: sets with judgements (package judged).
package corpus

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Options of Load.
type Options struct {
	Count   int      // texts wanted
	Seed    uint64   // of the order, the generator and what is drawn later
	Sources []string // of Names, "go-std" or paths of files and folders, in order of preference; nil means Names
}

// Names lists the sources in order of preference. "debian" means package
// descriptions of 200 bytes or more, "debian-short" the others: where apt has
// no translations, each package has but one line. "go-std", which is not among
// them, is "go" without the module cache: the same for all who have one Go version.
var Names = []string{"debian", "go", "debian-short", "generated"}

// maxText is where longer texts are cut, in bytes.
const maxText = 4096

// Corpus is a list of distinct texts. It does not change.
type Corpus struct {
	Texts []string
	From  string // for people: which sources gave how many texts, and their mean size
	seed  uint64
}

// Load collects opt.Count texts, or fewer if the sources have no more.
func Load(ctx context.Context, opt Options) (*Corpus, error) {
	if opt.Sources == nil {
		opt.Sources = Names
	}
	c := &Corpus{seed: opt.Seed}
	seen := make(map[string]bool, opt.Count)
	var from []string
	for _, name := range opt.Sources {
		before := len(c.Texts)
		take := func(text string) bool {
			text = clip(strings.TrimSpace(text), maxText)
			if text != "" && !seen[text] && len(c.Texts) < opt.Count {
				seen[text] = true
				c.Texts = append(c.Texts, text)
			}
			return len(c.Texts) < opt.Count
		}
		if before == opt.Count {
			break
		}
		title, err := read(ctx, name, opt, take)
		if err != nil {
			return nil, fmt.Errorf("read texts %s: %w", name, err)
		}
		if n := len(c.Texts) - before; n > 0 {
			from = append(from, fmt.Sprintf("%d %s", n, title))
		}
	}
	if len(c.Texts) == 0 {
		return nil, fmt.Errorf("no text found in %s", strings.Join(opt.Sources, ", "))
	}
	rng := rand.New(rand.NewPCG(opt.Seed, 2))
	rng.Shuffle(len(c.Texts), func(i, j int) { c.Texts[i], c.Texts[j] = c.Texts[j], c.Texts[i] })
	bytes := 0
	for _, t := range c.Texts {
		bytes += len(t)
	}
	c.From = fmt.Sprintf("%s; %d bytes on average", strings.Join(from, " and "), bytes/len(c.Texts))
	return c, nil
}

// read hands the texts of one source to take until it returns false. A source
// that this machine does not have gives none.
func read(ctx context.Context, name string, opt Options, take func(string) bool) (title string, err error) {
	switch name {
	case "debian":
		return "Debian package descriptions", debian(ctx, func(s string) bool { return len(s) < longText || take(s) })
	case "debian-short":
		return "one-line Debian package descriptions", debian(ctx, func(s string) bool { return len(s) >= longText || take(s) })
	case "go":
		return "Go documentation comments", goComments(ctx, true, take)
	case "go-std":
		return "documentation comments of Go's own tree", goComments(ctx, false, take)
	case "generated":
		generate(opt.Seed, 4*opt.Count, take)
		return "generated texts", nil
	}
	if strings.ContainsRune(name, filepath.Separator) {
		return "paragraphs of " + filepath.Base(name), paragraphs(ctx, name, take)
	}
	return "", fmt.Errorf("unknown source; sources are %s, and paths with a %q", strings.Join(Names, ", "), filepath.Separator)
}

// Sized returns a text of exactly size bytes, made of the i-th text and those
// that follow it, cut at a rune and filled up with full stops.
func (c *Corpus) Sized(i, size int) string {
	var b strings.Builder
	for b.Len() < size {
		b.WriteString(c.Texts[i%len(c.Texts)])
		b.WriteByte('\n')
		i++
	}
	s := clip(b.String(), size)
	return s + strings.Repeat(".", size-len(s))
}

// Queries draws n queries of 2 to 6 different words, each out of one text and
// in its order. A text with fewer than two words is passed over.
func (c *Corpus) Queries(n int) []string {
	rng := rand.New(rand.NewPCG(c.seed, 3))
	var out []string
	for tries := 0; len(out) < n && tries < 20*n; tries++ {
		words := Words(c.Texts[rng.IntN(len(c.Texts))])
		if len(words) < 2 {
			continue
		}
		want := min(2+rng.IntN(5), len(words))
		var query []string
		for i, w := range words { // each subset of that size is equally likely
			if rng.IntN(len(words)-i) < want-len(query) {
				query = append(query, w)
			}
		}
		out = append(out, strings.Join(query, " "))
	}
	return out
}

// Questions draws n times so many words that follow each other in one text, as they are
// written there. A text with fewer is passed over. None of the plain ones has what may be an
// operator of a query, a quote, a -word or a word*; each of the others has.
func (c *Corpus) Questions(n, words int, plain bool) []string {
	rng := rand.New(rand.NewPCG(c.seed, 4))
	var out []string
	for tries := 0; len(out) < n && tries < 100*n; tries++ {
		all := strings.Fields(c.Texts[rng.IntN(len(c.Texts))])
		if len(all) < words {
			continue
		}
		from := rng.IntN(len(all) - words + 1)
		if q := strings.Join(all[from:from+words], " "); hasOperator(q) != plain {
			out = append(out, q)
		}
	}
	return out
}

func hasOperator(query string) bool {
	return strings.ContainsAny(query, "\"“„«") || slices.ContainsFunc(strings.Fields(query), func(w string) bool {
		return len(w) > 2 && (w[0] == '-' || w[len(w)-1] == '*')
	})
}

// Words returns the distinct words of three letters or more, lower case, in
// order of their first appearance.
func Words(text string) []string {
	seen := map[string]bool{}
	var out []string
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) }) {
		w = strings.ToLower(w)
		if utf8.RuneCountInString(w) >= 3 && !seen[w] {
			seen[w] = true
			out = append(out, w)
		}
	}
	return out
}

// clip cuts s to at most size bytes, between runes.
func clip(s string, size int) string {
	if len(s) <= size {
		return s
	}
	for size > 0 && !utf8.RuneStart(s[size]) {
		size--
	}
	return s[:size]
}
