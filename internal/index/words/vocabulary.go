package words

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/blevesearch/vellum"
)

// Vocabulary is a set of terms. It is not changed and may be used concurrently.
type Vocabulary struct {
	forward, backward terms
	built, fresh      int
}

// Build makes a vocabulary of terms, which it sorts. Error: the library's, which
// there is none of for terms in order.
func Build(all []string) (*Vocabulary, error) {
	slices.Sort(all)
	all = slices.Compact(all)
	forward, err := build(all)
	if err != nil {
		return nil, err
	}
	back := make([]string, len(all))
	for i, t := range all {
		back[i] = reversed(t)
	}
	slices.Sort(back)
	backward, err := build(back)
	if err != nil {
		return nil, err
	}
	return &Vocabulary{forward: terms{built: forward}, backward: terms{built: backward}, built: len(all)}, nil
}

// With gives the vocabulary of the same transducer with these terms, in any order, beside it
// and what v has there. v is not changed.
func (v *Vocabulary) With(fresh []string) *Vocabulary {
	var list []string
	for _, t := range fresh {
		if !v.Has(t) {
			list = append(list, t)
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	back := make([]string, len(list))
	for i, t := range list {
		back[i] = reversed(t)
	}
	slices.Sort(back)
	return &Vocabulary{forward: terms{v.forward.built, merged(v.forward.fresh, list)}, backward: terms{v.backward.built, merged(v.backward.fresh, back)},
		built: v.built, fresh: v.fresh + len(list)}
}

// merged is two ascending lists as one.
func merged(a, b []string) []string {
	out := make([]string, 0, len(a)+len(b))
	for _, s := range b {
		n, _ := slices.BinarySearch(a, s)
		out = append(append(out, a[:n]...), s)
		a = a[n:]
	}
	return append(out, a...)
}

// Len is the number of terms in the transducer, and beside it.
func (v *Vocabulary) Len() (built, fresh int) { return v.built, v.fresh }

// Has reports whether a term is in the vocabulary.
func (v *Vocabulary) Has(term string) bool {
	if v.forward.has(term) {
		return true
	}
	_, ok := slices.BinarySearch(v.forward.fresh, term)
	return ok
}

// Any reports whether a term begins with prefix.
func (v *Vocabulary) Any(prefix string) bool {
	if v.forward.built != nil && v.forward.path(prefix) {
		return true
	}
	at, _ := slices.BinarySearch(v.forward.fresh, prefix)
	return at < len(v.forward.fresh) && strings.HasPrefix(v.forward.fresh[at], prefix)
}

// Beginnings appends the terms that begin with word and are longer; none, and false, if
// there are more than limit.
func (v *Vocabulary) Beginnings(dst []string, word string, limit int) ([]string, bool) {
	return v.forward.beginnings(dst, word, limit)
}

// Endings appends the terms that end with word and are longer; none, and false, if there
// are more than limit.
func (v *Vocabulary) Endings(dst []string, word string, limit int) ([]string, bool) {
	from := len(dst)
	dst, all := v.backward.beginnings(dst, reversed(word), limit)
	for i := from; i < len(dst); i++ {
		dst[i] = reversed(dst[i])
	}
	slices.Sort(dst[from:])
	return dst, all
}

// terms is a set of strings: those in a transducer, nil = none, and ascending ones
// that are not in it.
type terms struct {
	built *vellum.FST
	fresh []string
}

func build(ascending []string) (*vellum.FST, error) {
	var out bytes.Buffer
	b, err := vellum.New(&out, nil)
	if err != nil {
		return nil, fmt.Errorf("vocabulary: %w", err)
	}
	for _, t := range ascending {
		if err := b.Insert([]byte(t), 0); err != nil {
			return nil, fmt.Errorf("vocabulary: insert %q: %w", t, err)
		}
	}
	if err := b.Close(); err != nil {
		return nil, fmt.Errorf("vocabulary: %w", err)
	}
	f, err := vellum.Load(out.Bytes())
	if err != nil {
		return nil, fmt.Errorf("vocabulary: %w", err)
	}
	return f, nil
}

// has reports whether a string is in the transducer.
func (t terms) has(s string) bool {
	if t.built == nil {
		return false
	}
	ok, err := t.built.Contains([]byte(s))
	return ok && err == nil
}

// beginnings appends what begins with s and is longer, ascending; nothing if it is
// more than limit.
func (t terms) beginnings(dst []string, s string, limit int) (_ []string, all bool) {
	from := len(dst)
	if t.built != nil && t.path(s) {
		it, err := t.built.Iterator([]byte(s), after(s))
		for ; err == nil && len(dst)-from <= limit; err = it.Next() {
			if k, _ := it.Current(); len(k) > len(s) {
				dst = append(dst, string(k))
			}
		}
	}
	at, _ := slices.BinarySearch(t.fresh, s)
	for ; at < len(t.fresh) && len(dst)-from <= limit && len(t.fresh[at]) >= len(s) && t.fresh[at][:len(s)] == s; at++ {
		if len(t.fresh[at]) > len(s) {
			dst = append(dst, t.fresh[at])
		}
	}
	if len(dst)-from > limit {
		return dst[:from], false
	}
	slices.Sort(dst[from:])
	return dst, true
}

// path reports whether a string of the transducer begins with s.
func (t terms) path(s string) bool {
	at := t.built.Start()
	for i := 0; i < len(s) && t.built.CanMatch(at); i++ {
		at = t.built.Accept(at, s[i])
	}
	return t.built.CanMatch(at)
}

// after is the first key behind all that begin with s; nil = there is none.
func after(s string) []byte {
	end := []byte(s)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] < 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return nil
}

func reversed(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}
