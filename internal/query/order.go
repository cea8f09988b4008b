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
	s        *search
	contents map[docPlace]*events.Content // what narrow has opened and is not shown yet
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
		content, err := s.content(c.Partition, c.Doc)
		if err != nil {
			return err
		}
		if content != nil {
			o.keep(c, content)
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

// keep keeps a document that narrow has opened, unless it is long.
func (o *order) keep(c *rank.Candidate, content *events.Content) {
	if len(content.Text) > keptBytes {
		return
	}
	if o.contents == nil {
		o.contents = make(map[docPlace]*events.Content, o.s.limit)
	}
	o.contents[docPlace{c.Partition, c.Doc}] = content
}

// opened gives what narrow has opened of a candidate, once; nil = it was not kept.
func (o *order) opened(c *rank.Candidate) *events.Content {
	at := docPlace{c.Partition, c.Doc}
	content := o.contents[at]
	delete(o.contents, at)
	return content
}

// living reads the rows of candidates, drops what is not alive at the
// reader's view, and orders the rest by record id.
func (o *order) living(candidates []rank.Candidate) ([]foundDoc, error) {
	out := make([]foundDoc, 0, len(candidates))
	for i := range candidates {
		c := &candidates[i]
		p := &o.s.places[c.Partition]
		d, ok, err := p.in.view.State.Doc(p.ID, c.Doc)
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
