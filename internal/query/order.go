package query

import (
	"cmp"
	"slices"

	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/query/rank"
)

// order gives the candidates of a search best first, as far as they are asked for.
type order struct {
	s      *search
	opened map[docPlace]opened // what narrow has opened and is not shown yet
}

// opened is what was read of a document.
type opened struct {
	doc     projections.Doc
	content *events.Content // nil = it was erased, or is too long to be kept
}

// docPlace is a document of one of the places.
type docPlace struct {
	place int
	doc   uint32
}

type foundDoc struct {
	c   *rank.Candidate
	doc projections.Doc
}

// all yields the candidates that are alive at the reader's view, best first, and of those of
// one sum first what preferNewer put in front, then by record id.
func (o *order) all(yield func(foundDoc, error) bool) {
	all := o.s.ranking.Candidates()
	for from := 0; from < len(all); {
		to, err := from, error(nil)
		for to < len(all) && (to == from || all[to].Sum == all[from].Sum) && err == nil {
			if all[to].Narrowed() {
				to++
				continue
			}
			err = o.narrow(all[from:], to-from)
		}
		var found []foundDoc
		if err == nil {
			found, err = o.living(all[from:to])
		}
		if err != nil {
			yield(foundDoc{}, err)
			return
		}
		for _, f := range found {
			if !yield(f, nil) {
				return
			}
		}
		from = to
	}
}

// narrow looks at the text of a candidate, the one at `at` of those that are left, and puts it
// behind those that have more than it has then. Once the budget of the search is spent, a text
// counts as it is.
func (o *order) narrow(left []rank.Candidate, at int) error {
	s, c := o.s, &left[at]
	what := ""
	if s.left.forReading() && s.ranking.Scatters(c) {
		doc, content, err := s.read(c.Partition, c.Doc)
		if err != nil {
			return err
		}
		if content != nil {
			o.keep(c, opened{doc, content})
			if rank.IsLong(content.Text) {
				s.left.open(content.Text)
				what = content.Text
			}
		}
	}
	if !s.ranking.Narrow(c, what) {
		return nil
	}
	moved := *c
	to := at + 1
	for ; to < len(left) && left[to].Sum > moved.Sum; to++ {
		left[to-1] = left[to]
	}
	left[to-1] = moved
	return nil
}

// keptBytes bounds the texts that are kept from narrow until they are shown.
const keptBytes = 16 << 10

// keep keeps a document that narrow has opened, without its text if that is long.
func (o *order) keep(c *rank.Candidate, what opened) {
	if len(what.content.Text) > keptBytes {
		what.content = nil
	}
	if o.opened == nil {
		o.opened = make(map[docPlace]opened, o.s.limit)
	}
	o.opened[docPlace{c.Partition, c.Doc}] = what
}

// take gives the text of a candidate that narrow has opened, once; nil = it was not kept.
func (o *order) take(c *rank.Candidate) *events.Content {
	at := docPlace{c.Partition, c.Doc}
	content := o.opened[at].content
	delete(o.opened, at)
	return content
}

// row reads the row of a candidate, unless narrow has.
func (o *order) row(c *rank.Candidate) (projections.Doc, bool, error) {
	if known, ok := o.opened[docPlace{c.Partition, c.Doc}]; ok {
		return known.doc, true, nil
	}
	p := &o.s.places[c.Partition]
	return p.in.view.State.Doc(p.ID, c.Doc)
}

// living reads the rows of candidates, drops what is not alive at the
// reader's view, and orders the rest by record id.
func (o *order) living(candidates []rank.Candidate) ([]foundDoc, error) {
	out := make([]foundDoc, 0, len(candidates))
	for i := range candidates {
		c := &candidates[i]
		d, ok, err := o.row(c)
		if err != nil {
			return nil, err
		}
		if ok && d.Living() {
			out = append(out, foundDoc{c, d})
		}
	}
	slices.SortFunc(out, func(a, b foundDoc) int {
		return cmp.Or(o.s.moved.compare(a.c, b.c), slices.Compare(a.doc.Record[:], b.doc.Record[:]), cmp.Compare(a.c.Partition, b.c.Partition))
	})
	return out, nil
}
