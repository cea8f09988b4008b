package raftmodel

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
)

// truth knows what has ever been decided, and notes the first contradiction.
type truth struct {
	leaders   map[uint64]int       // who led a term
	chains    map[[2]uint64]uint64 // (index, term) → chain: logs that agree there agree before
	committed map[uint64]entry
	last      uint64            // highest committed index
	ends      map[uint64]uint64 // term → highest index that its leader committed
	err       error
}

func newTruth() truth {
	return truth{leaders: map[uint64]int{}, chains: map[[2]uint64]uint64{}, committed: map[uint64]entry{}, ends: map[uint64]uint64{}}
}

func link(prev uint64, e entry) uint64 {
	h := fnv.New64a()
	var b [25]byte
	binary.LittleEndian.PutUint64(b[0:], prev)
	binary.LittleEndian.PutUint64(b[8:], e.index)
	binary.LittleEndian.PutUint64(b[16:], e.term)
	if e.marker {
		b[24] = 1
	}
	h.Write(b[:])
	h.Write(e.data)
	for _, s := range e.members {
		fmt.Fprintf(h, "%+v", s)
	}
	return h.Sum64()
}

func (t *truth) fail(format string, args ...any) {
	if t.err == nil {
		t.err = fmt.Errorf("raft model: "+format, args...)
	}
}

// elected checks that a term has one leader and that it has all that leaders of earlier
// terms have committed. Those of later terms may have committed more: a vote may arrive
// when others have long gone on.
func (t *truth) elected(r *Replica) {
	if other, twice := t.leaders[r.term]; twice {
		t.fail("term %d is led by %d and %d", r.term, other, r.id)
	}
	t.leaders[r.term] = r.id
	var last uint64
	for term, end := range t.ends {
		if term < r.term {
			last = max(last, end)
		}
	}
	if e, ok := r.at(last); last > r.base.index && (!ok || e.chain != t.committed[last].chain) {
		t.fail("leader %d of term %d lacks the committed entry %d", r.id, r.term, last)
	}
}

// stored checks that logs which agree on an entry agree on all before it.
func (t *truth) stored(id int, e entry) {
	at := [2]uint64{e.index, e.term}
	if have, ok := t.chains[at]; ok && have != e.chain {
		t.fail("replica %d has another past before %d/%d", id, e.index, e.term)
	}
	t.chains[at] = e.chain
}

// commit checks that an index is decided once. The leader decides, and so is the first.
func (t *truth) commit(r *Replica, e entry) {
	have, ok := t.committed[e.index]
	if ok && have.chain != e.chain {
		t.fail("replica %d commits another entry at %d: term %d, was %d", r.id, e.index, e.term, have.term)
	}
	if !ok {
		t.ends[r.term] = max(t.ends[r.term], e.index)
	}
	t.committed[e.index] = e
	t.last = max(t.last, e.index)
}

// cut checks that a replica drops nothing that it knows as committed.
func (t *truth) cut(r *Replica, from uint64) {
	if from <= r.commit {
		t.fail("replica %d cuts its log at %d, committed up to %d", r.id, from, r.commit)
	}
}

// replaced checks that a snapshot replaces no log that is committed beyond it.
func (t *truth) replaced(r *Replica, end entry) {
	if end.index < r.commit {
		t.fail("replica %d, committed up to %d, takes a snapshot of %d for another history", r.id, r.commit, end.index)
	}
}

// lose forgets what a loss of power took from a single voter.
func (t *truth) lose(r *Replica, keep uint64) {
	for i := keep + 1; i <= r.last(); i++ {
		e, _ := r.at(i)
		delete(t.committed, i)
		delete(t.chains, [2]uint64{i, e.term})
	}
	t.last = min(t.last, keep)
	for term, end := range t.ends {
		t.ends[term] = min(end, keep)
	}
}

// founded takes a log that begins at the state that all founders have.
func (t *truth) founded(j *journal) {
	t.committed[j.base.index] = j.base
	t.chains[[2]uint64{j.base.index, j.base.term}] = j.base.chain
	t.last = max(t.last, j.base.index)
	t.ends[j.base.term] = max(t.ends[j.base.term], j.base.index)
}

// begun takes a log that begins anew at its state.
func (t *truth) begun(r *Replica) {
	clear(t.committed)
	t.committed[r.base.index] = r.base
	t.chains[[2]uint64{r.base.index, r.base.term}] = r.base.chain
	t.last = r.base.index
	clear(t.ends)
	t.ends[r.base.term] = r.base.index
}
