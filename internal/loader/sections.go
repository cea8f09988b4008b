package loader

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"mneme/internal/importer"
	"mneme/memory"
)

// file is what is known of the file that is being read.
type file struct {
	known            *known
	namespace, group string
	before           map[string]*part   // what was imported of it, by uri
	gone             *forgotten         // of the namespace
	twins            map[string][]*twin // of its sections, by the uri of their headings
	held             []*twin            // of which it is not known what they are
	holds            int                // bytes of their texts
	ids              map[string]bool    // clients' ids that it has; nil before anybody asks
	uris             addresses          // that it has, as ids
}

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
func (f *file) section(ctx context.Context, item importer.Item) (bool, error) {
	if len(f.before)+len(f.gone.groups[item.Group]) == 0 {
		return false, nil
	}
	t := &twin{}
	headings, _ := importer.HeadingsOf(item.Capture.URI)
	f.twins[headings] = append(f.twins[headings], t)
	if p := f.before[item.Capture.URI]; p != nil && !p.there && p.own == item.Provenance.Own() {
		t.become(p)
		return true, f.is(ctx, item, p)
	}
	t.item = &item
	f.held = append(f.held, t)
	if f.holds += bytesOf(&item); f.holds > f.known.room {
		return true, f.makeRoom(ctx)
	}
	return true, nil
}

func (t *twin) become(p *part) { t.part, p.there = p, true }

// is settles an item that is known to be a part.
func (f *file) is(ctx context.Context, item importer.Item, p *part) error {
	f.known.keep(item.Namespace, p.record)
	counts := f.known.load.settle(item)
	switch {
	case p.scope == memory.ScopeTeam && item.Capture.Scope == memory.ScopeAgent:
		f.known.load.left(item, forTheTeam)
		counts.Duplicates++
		return nil
	case p.hash == item.Provenance.Hash && p.uri == item.Capture.URI && !p.taken && !f.known.moves(item, p):
		counts.Duplicates++
		return nil
	}
	if err := f.known.revise(ctx, item, p.record); err != nil {
		return err
	}
	p.hash, p.own, p.folder, p.taken = item.Provenance.Hash, item.Provenance.Own(), item.Provenance.Folder, false // for when the file is read again
	return nil
}

// leave ends a file. What is no longer in it is counted.
func (f *file) leave(ctx context.Context) error {
	if err := f.match(ctx, true); err != nil {
		return err
	}
	if err := f.place(ctx, f.held); err != nil {
		return err
	}
	f.held, f.holds = nil, 0
	for _, p := range f.before {
		if !p.there {
			f.known.load.counts(f.namespace).Gone++
		}
	}
	*f = file{known: f.known}
	return nil
}

// makeRoom settles what is held before the end of a file.
func (f *file) makeRoom(ctx context.Context) error {
	if err := f.match(ctx, false); err != nil {
		return err
	}
	held := f.held
	f.held, f.holds = nil, 0
	return f.place(ctx, held)
}

// place settles sections: they were found among what is there, or are new.
func (f *file) place(ctx context.Context, twins []*twin) error {
	if f.ids == nil {
		f.ids, f.uris = map[string]bool{}, addresses{taken: map[string]bool{}, next: map[string]int{}}
		for uri, p := range f.before {
			f.ids[p.id], f.uris.taken[uri] = true, true
		}
	}
	lost := f.lost()
	for _, t := range twins {
		if own := t.item.Provenance.Own(); t.part == nil && len(lost[own]) > 0 { // it stands below other headings now
			t.become(lost[own][0])
			lost[own] = lost[own][1:]
			t.item.Capture.URI = f.uris.free(t.item.Capture.URI)
		} else if t.part != nil {
			t.item.Capture.URI = t.part.uri
		}
		err := error(nil)
		if t.part != nil {
			err = f.is(ctx, *t.item, t.part)
		} else {
			t.part = &part{there: true}
			t.part.uri, err = f.unknown(ctx, *t.item)
		}
		if err != nil {
			return err
		}
		t.item = nil
	}
	return nil
}

// unknown settles a section that is none of what is there, and returns its uri: it was forgotten,
// or is new.
func (f *file) unknown(ctx context.Context, item importer.Item) (uri string, err error) {
	if was := f.gone.section(item); was != nil {
		was.claimed = true
		if !was.taken && !f.known.load.opt.Again {
			f.known.load.settle(item).Forgotten++
			return item.Capture.URI, nil
		}
	}
	item.Capture.URI = f.uris.free(item.Capture.URI)
	for id, n := item.Capture.ID, 2; f.ids[item.Capture.ID] || f.gone.ids[idOf(item.Capture.Agent, item.Capture.ID)] != nil; n++ { // of a section that was here, and is elsewhere now
		item.Capture.ID = fmt.Sprintf("%s.%d", id, n)
	}
	f.ids[item.Capture.ID] = true
	return item.Capture.URI, f.known.load.fresh(ctx, item)
}

// lost are the parts that are not in the file so far, by what they say, oldest first.
func (f *file) lost() map[string][]*part {
	lost := map[string][]*part{}
	for _, p := range f.before {
		if !p.there {
			lost[p.own] = append(lost[p.own], p)
		}
	}
	for _, parts := range lost {
		slices.SortFunc(parts, func(a, b *part) int { return strings.Compare(a.record, b.record) })
	}
	return lost
}

// match finds what the sections that are held were imported as below the same headings. Before
// the whole of a file was read, what may be of those to come is left to them.
func (f *file) match(ctx context.Context, whole bool) error {
	if len(f.held) == 0 {
		return nil
	}
	parts := map[string][]*part{} // by headings, in the order of their uris
	for uri, p := range f.before {
		headings, _ := importer.HeadingsOf(uri)
		parts[headings] = append(parts[headings], p)
	}
	for headings, all := range parts {
		slices.SortFunc(all, func(a, b *part) int { return a.nth() - b.nth() })
		if err := f.matchTexts(ctx, f.twins[headings], all); err != nil {
			return err
		}
	}
	lost := f.lost()
	for headings, twins := range f.twins {
		f.matchOrder(twins, parts[headings], lost, whole)
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
func (f *file) matchTexts(ctx context.Context, twins []*twin, parts []*part) error {
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
		rec, err := f.known.get(ctx, *twins[left].item, p.record, 0)
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
func (f *file) matchOrder(twins []*twin, parts []*part, lost map[string][]*part, whole bool) {
	itself := func(t *twin) bool { // forgotten, or taken
		return len(twins) > 1 && len(lost[t.item.Provenance.Own()]) == 0 && f.gone.section(*t.item) != nil
	}
	if !slices.ContainsFunc(twins, func(t *twin) bool { return t.part != nil }) {
		for _, t := range twins {
			if p := f.before[t.item.Capture.URI]; p != nil && !p.there && !itself(t) {
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
	if whole {
		end(1 << 30)
		pair(left, open(parts))
	}
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
	taken map[string]bool
	next  map[string]int // the number to try next, by headings
}

func (a *addresses) free(uri string) string {
	headings, _ := importer.HeadingsOf(uri)
	for a.taken[uri] {
		a.next[headings] = max(a.next[headings], 1) + 1
		uri = importer.SectionURI(headings, a.next[headings])
	}
	a.taken[uri] = true
	return uri
}
