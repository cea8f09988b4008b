package sim

import (
	"errors"
	"fmt"

	"mneme/internal/keyring"
	"mneme/memory"
)

// What clients of a cluster do beside the others: capture about people, erase those, and
// read at whichever node serves.

// about gives a note a subject, which may be a person who is erased later.
func (s *site) about(n *note) {
	switch s.rng.IntN(6) {
	case 0:
		n.subject, n.client, n.private = fmt.Sprint("person ", s.people), "", true
		s.people++
	case 1, 2, 3:
		n.subject = fmt.Sprint("subject ", s.rng.IntN(6))
	}
}

// act lets a client of the cluster do something; false = it is another's turn.
func (s *site) act() bool {
	switch s.rng.IntN(10) {
	case 0:
		s.erase()
	case 1:
		s.readLocal()
	default:
		return false
	}
	return true
}

// serves reports whether clients may read at a replica's node.
func (r *replica) serves() bool { return !r.down && (r.member == nil || r.member.phase == serving) }

// erase begins to erase a person.
func (s *site) erase() {
	w := s.w
	var list []*note
	for _, n := range w.notes {
		if n.private && n.fate == acked && n.applied && !n.busy && !n.erased {
			list = append(list, n)
		}
	}
	h := w.writer()
	if h == nil || len(list) == 0 {
		return
	}
	n := list[s.rng.IntN(len(list))]
	p, err := h.w.QueueErasure(namespace, n.subject)
	if err != nil {
		if errors.Is(err, keyring.ErrDestroyed) { // an attempt before had its way
			n.erasing = true
			return
		}
		w.know(new(fate), err)
		return
	}
	n.busy, n.erasing = true, true
	w.requests = append(w.requests, &request{host: h, pending: p, note: n, erase: true, wait: memory.WaitApplied})
}

// erased takes what became of an erasure.
func (s *site) erased(q *request) bool {
	res, err, done := q.pending.Result()
	switch {
	case !done:
		return false
	case err != nil:
		s.w.know(new(fate), err)
	default:
		s.w.event("%s is erased", q.note.text)
		q.note.erased, q.note.erasedAt = true, res.Position.Seq
		q.host.r.member.owes = true
	}
	return true
}

// asksLeader is the leader that a node asks where it stands, as package route does.
func (s *site) asksLeader(r *replica) *replica {
	if !r.serves() {
		return nil
	}
	return s.leader(s.w.model, r.member)
}

// readLocal reads at a node that serves: what it shows has its past with it, and can be
// opened there unless it was erased.
func (s *site) readLocal() {
	w := s.w
	r := w.replicas[s.rng.IntN(len(w.replicas))]
	if !r.serves() {
		return
	}
	v := r.state.View()
	defer v.Close()
	at := v.Cursor().Seq
	var want []expectation
	for _, n := range w.notes {
		if n.fate != acked || n.at.Seq > at {
			continue
		}
		e := expectation{note: n, version: 1, lost: n.lost}
		for _, c := range n.changes {
			if c.fate == acked && c.at.Seq <= at {
				e.version, e.gone = max(e.version, c.version), e.gone || c.text == ""
			}
		}
		want = append(want, e)
	}
	w.shows(v, want, "a local read")
	w.reach("local read")
}
