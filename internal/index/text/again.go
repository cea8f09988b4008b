package text

import (
	"context"
	"fmt"
)

// former is what was read for the query before.
type former struct {
	slots []slot
	order []int // by field and text
	lists []list
	now   []int // by former slot: the one of the query that has its rows, -1 = none
}

// Again is Prepare of another query on what p was prepared of. Rows that p has read are not read
// again: a search that corrects its query asks for nearly the same words several times. Where there are
// several databases, Together comes next. After an error p is closed.
func (p *Prepared) Again(ctx context.Context, q Query) error {
	if err := p.again(ctx, q); err != nil {
		p.Close()
		return fmt.Errorf("text search: %w", err)
	}
	return nil
}

func (p *Prepared) again(ctx context.Context, q Query) error {
	if err := q.validate(); err != nil {
		return err
	}
	s := p.sc
	s.replace(&q)
	if len(s.slots) > 0 && (len(s.unread) > 0 || len(s.tails) == 0) {
		if err := s.read(ctx, p.r, p.parts); err != nil {
			return err
		}
	}
	p.q, p.bound = q, false
	s.begin(&q)
	return ctx.Err()
}

// replace puts the slots of another query in place of the former ones, with what was read for
// those that are in both.
func (s *scratch) replace(q *Query) {
	f := &s.former
	f.slots, f.order, f.lists = append(f.slots[:0], s.slots...), append(f.order[:0], s.order...), append(f.lists[:0], s.lists...)
	f.now = f.now[:0]
	for range f.slots {
		f.now = append(f.now, -1)
	}
	s.slots, s.lists, s.unread = q.slots(s.slots[:0]), s.lists[:0], s.unread[:0]
	s.seekOrder()
	at := 0 // in f.order
	for _, i := range s.order {
		sl := &s.slots[i]
		for at < len(f.order) && f.slots[f.order[at]].compareKey(sl) < 0 {
			at++
		}
		if at == len(f.order) || f.slots[f.order[at]].compareKey(sl) > 0 {
			s.unread = append(s.unread, i)
			continue
		}
		was := f.order[at]
		sl.own = f.slots[was].own
		if f.now[was] < 0 {
			f.now[was] = i
		} else {
			s.copyLists(was, i)
		}
	}
	for _, l := range f.lists {
		if now := f.now[l.slot]; now >= 0 {
			l.slot = now
			s.lists = append(s.lists, l)
		}
	}
}

// copyLists gives a second slot of one term and field chunks of its own, for each has its bounds.
func (s *scratch) copyLists(was, slot int) {
	for _, l := range s.former.lists {
		if l.slot == was {
			from := len(s.chunks)
			s.chunks = append(s.chunks, s.chunks[l.from:l.to]...)
			l.slot, l.from, l.to = slot, from, len(s.chunks)
			s.lists = append(s.lists, l)
		}
	}
}
