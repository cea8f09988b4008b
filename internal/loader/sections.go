package loader

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"mneme/internal/importer"
	"mneme/memory"
)

// twin is one of the sections of a file that stand below the same headings. They are told apart
// by what they say, and where that has changed by their order; each keeps the uri that it got
// when it came. So a section that is put before another one is one more memory, and the other
// one stays what it is.
type twin struct {
	item *importer.Item // nil where it is settled
	part *part          // what it was imported as; nil where that is not known
}

// section settles a section of a file that says what the record at its uri says. Any other is
// held to the end of the file, which shows what it is.
func (k *known) section(ctx context.Context, item importer.Item) (bool, error) {
	if len(k.before)+len(k.gone.groups[item.Group]) == 0 {
		return false, nil
	}
	t := &twin{}
	headings, _ := importer.HeadingsOf(item.Capture.URI)
	k.twins[headings] = append(k.twins[headings], t)
	if p := k.before[item.Capture.URI]; p != nil && !p.there && p.own == item.Provenance.Own() {
		t.become(p)
		return true, k.is(ctx, item, p)
	}
	t.item = &item
	k.held = append(k.held, t)
	return true, nil
}

func (t *twin) become(p *part) { t.part, p.there = p, true }

// is settles an item that is known to be a part.
func (k *known) is(ctx context.Context, item importer.Item, p *part) error {
	k.keep(item.Namespace, p.record)
	counts := k.load.settle(item)
	switch {
	case p.scope == memory.ScopeTeam && item.Capture.Scope == memory.ScopeAgent:
		k.load.left(item, forTheTeam)
		counts.Duplicates++
		return nil
	case p.hash == item.Provenance.Hash && p.uri == item.Capture.URI && !p.taken:
		counts.Duplicates++
		return nil
	}
	if err := k.revise(ctx, item, p.record); err != nil {
		return err
	}
	p.hash, p.own, p.taken = item.Provenance.Hash, item.Provenance.Own(), false // for when the file is read again
	return nil
}

// leave ends a file: what was held is found among what is there, or is new. What is no longer in
// the file is counted.
func (k *known) leave(ctx context.Context) error {
	if err := k.match(ctx); err != nil {
		return err
	}
	lost, ids := k.lost(), map[string]bool{} // ids that are taken
	for _, p := range k.before {
		ids[p.id] = true
	}
	uris := addresses{before: k.before, next: map[string]int{}}
	for _, t := range k.held {
		if own := t.item.Provenance.Own(); t.part == nil && len(lost[own]) > 0 { // it stands below other headings now
			t.become(lost[own][0])
			lost[own] = lost[own][1:]
			t.item.Capture.URI = uris.free(t.item.Capture.URI)
		} else if t.part != nil {
			t.item.Capture.URI = t.part.uri
		}
		err := error(nil)
		if t.part != nil {
			err = k.is(ctx, *t.item, t.part)
		} else {
			err = k.unknown(ctx, *t.item, &uris, ids)
		}
		if err != nil {
			return err
		}
	}
	for _, p := range k.before {
		if !p.there {
			k.load.counts(k.namespace).Gone++
		}
	}
	k.namespace, k.group, k.before, k.twins, k.held = "", "", nil, nil, nil
	return nil
}

// unknown settles a section that is none of what is there: it was forgotten, or is new.
func (k *known) unknown(ctx context.Context, item importer.Item, uris *addresses, ids map[string]bool) error {
	if was := k.gone.section(item); was != nil && !was.taken && !k.load.opt.Again {
		was.claimed = true
		k.load.settle(item).Forgotten++
		return nil
	}
	item.Capture.URI = uris.free(item.Capture.URI)
	for id, n := item.Capture.ID, 2; ids[item.Capture.ID] || k.gone.ids[idOf(item.Capture.Agent, item.Capture.ID)] != nil; n++ { // of a section that was here, and is elsewhere now
		item.Capture.ID = fmt.Sprintf("%s.%d", id, n)
	}
	ids[item.Capture.ID] = true
	return k.load.fresh(ctx, item)
}

// lost are the parts that are not in the file so far, by what they say, oldest first.
func (k *known) lost() map[string][]*part {
	lost := map[string][]*part{}
	for _, p := range k.before {
		if !p.there {
			lost[p.own] = append(lost[p.own], p)
		}
	}
	for _, parts := range lost {
		slices.SortFunc(parts, func(a, b *part) int { return strings.Compare(a.record, b.record) })
	}
	return lost
}

// match finds what the sections that are held were imported as below the same headings.
func (k *known) match(ctx context.Context) error {
	if len(k.held) == 0 {
		return nil
	}
	parts := map[string][]*part{} // by headings, in the order of their uris
	for uri, p := range k.before {
		headings, _ := importer.HeadingsOf(uri)
		parts[headings] = append(parts[headings], p)
	}
	for headings, all := range parts {
		slices.SortFunc(all, func(a, b *part) int { return a.nth() - b.nth() })
		if err := k.matchTexts(ctx, k.twins[headings], all); err != nil {
			return err
		}
	}
	lost := k.lost()
	for headings, twins := range k.twins {
		k.matchOrder(twins, parts[headings], lost)
	}
	return nil
}

// nth is which of the sections below its headings a part is, by its uri.
func (p *part) nth() int {
	_, n := importer.HeadingsOf(p.uri)
	return n
}

// matchTexts finds twins by what they say: as it was imported, and where several are left, since
// front matter has changed too, as the records say it.
func (k *known) matchTexts(ctx context.Context, twins []*twin, parts []*part) error {
	match := func(of map[string][]*part, says func(*importer.Item) string) {
		for _, t := range twins {
			if t.part == nil && len(of[says(t.item)]) > 0 {
				t.become(of[says(t.item)][0])
				of[says(t.item)] = of[says(t.item)][1:]
			}
		}
	}
	own := map[string][]*part{}
	for _, p := range open(parts) {
		own[p.own] = append(own[p.own], p)
	}
	match(own, func(item *importer.Item) string { return item.Provenance.Own() })
	parts = open(parts)
	left := slices.IndexFunc(twins, func(t *twin) bool { return t.part == nil })
	if len(parts) == 0 || left < 0 || len(parts) == 1 && len(twins) == 1 {
		return nil
	}
	texts := map[string][]*part{}
	for _, p := range parts {
		rec, err := k.get(ctx, *twins[left].item, p.record, 0)
		switch memory.CodeOf(err) {
		case memory.CodeNotFound, memory.CodeGone: // since it was listed
			continue
		}
		if err != nil {
			return err
		}
		texts[rec.Text] = append(texts[rec.Text], p)
	}
	match(texts, func(item *importer.Item) string { return item.Capture.Text })
	return nil
}

// open are the parts that are not in the file so far.
func open(parts []*part) []*part {
	return slices.DeleteFunc(slices.Clone(parts), func(p *part) bool { return p.there })
}

// matchOrder finds twins whose texts have changed: where all have, by their uris; then by where they
// stand between those that were found, and then in order. One that was forgotten is no other one,
// and neither is one that was elsewhere in the file.
func (k *known) matchOrder(twins []*twin, parts []*part, lost map[string][]*part) {
	itself := func(t *twin) bool { // forgotten, or taken
		return len(twins) > 1 && len(lost[t.item.Provenance.Own()]) == 0 && k.gone.section(*t.item) != nil
	}
	if !slices.ContainsFunc(twins, func(t *twin) bool { return t.part != nil }) {
		for _, t := range twins {
			if p := k.before[t.item.Capture.URI]; p != nil && !p.there && !itself(t) {
				t.become(p)
			}
		}
	}
	var gap, left []*twin
	from := 0 // the number of the twin before the gap
	end := func(to int) {
		if len(gap) > 0 {
			pair(gap, slices.DeleteFunc(open(parts), func(p *part) bool { return p.nth() <= from || p.nth() >= to }))
		}
		gap, from = nil, to
	}
	for _, t := range twins {
		switch {
		case t.part != nil:
			end(t.part.nth())
		case len(lost[t.item.Provenance.Own()]) == 0 && !itself(t):
			gap, left = append(gap, t), append(left, t)
		}
	}
	end(1 << 30)
	pair(left, open(parts))
}

// pair gives twins parts, in the order of both.
func pair(twins []*twin, parts []*part) {
	for _, t := range twins {
		if len(parts) == 0 {
			return
		}
		if t.part == nil {
			t.become(parts[0])
			parts = parts[1:]
		}
	}
}

// addresses gives sections uris that nothing else in their file has.
type addresses struct {
	before map[string]*part
	next   map[string]int // the number to try next, by headings
	given  map[string]bool
}

func (a *addresses) free(uri string) string {
	if a.given == nil {
		a.given = map[string]bool{}
	}
	headings, _ := importer.HeadingsOf(uri)
	for a.before[uri] != nil || a.given[uri] {
		a.next[headings] = max(a.next[headings], 1) + 1
		uri = importer.SectionURI(headings, a.next[headings])
	}
	a.given[uri] = true
	return uri
}
