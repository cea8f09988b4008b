package views

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"mneme/internal/events"
	index "mneme/internal/index/text"
	"mneme/internal/index/words"
	"mneme/internal/projections"
)

// vocabularies are the terms of the partitions that searches asked for, in memory
// only. A search that asks reads what is new since the last one. They are dropped
// where terms left, so that an erased word is not kept.
type vocabularies struct {
	state *projections.State
	// inline is how many terms are read by the search that first asks; more are read
	// in the background.
	inline uint32

	mu     sync.Mutex
	parts  map[uint32]*vocabulary
	reads  map[uint32]bool // partitions that are read in the background
	least  uint64          // the sequence below which a view may hold what left since
	closed bool

	ctx  context.Context // ends with close
	stop context.CancelFunc
	wg   sync.WaitGroup
	turn sync.Mutex // one partition is read in the background at a time
}

// inlineTerms are read in less than 0.1 s.
const inlineTerms = 50_000

// vocabulary is what is known of a partition. It is not changed.
type vocabulary struct {
	ns         events.ID
	generation string // of the tables
	erased     uint64 // when rows were last deleted for good

	built   *words.Vocabulary // of the terms whose ids are below from
	from    uint32
	next    uint32 // the id that the next new term gets
	nextDoc uint32
	whole   *words.Vocabulary // built, the terms with ids below next, and those of documents below nextDoc
}

func newVocabularies(state *projections.State) *vocabularies {
	ctx, stop := context.WithCancel(context.Background())
	return &vocabularies{state: state, inline: inlineTerms, parts: map[uint32]*vocabulary{}, reads: map[uint32]bool{}, ctx: ctx, stop: stop}
}

// apply drops what may hold words that have left.
func (s *vocabularies) apply(a *projections.Applied) {
	if a.Erased {
		s.drop(a.Cursor.Seq)
	}
	if len(a.Dropped) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.least = a.Cursor.Seq
	for id, v := range s.parts {
		if slices.Contains(a.Dropped, v.ns) {
			delete(s.parts, id)
		}
	}
}

// drop forgets everything; what is read from views before seq is not kept either.
func (s *vocabularies) drop(seq uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.least = seq
	clear(s.parts)
}

// close ends the reading in the background.
func (s *vocabularies) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.wg.Wait()
}

// Vocabulary is the terms of an open partition, those of removed memories too. It may
// hold terms that are newer than the view, and none that were erased before it. It is
// nil while a large one is read for the first time.
func (v *View) Vocabulary(p *Partition) (*words.Vocabulary, error) {
	out, err := v.words.of(v.State, p.Partition, v.Capability.ns)
	if err != nil {
		return nil, fmt.Errorf("vocabulary of partition %d: %w", p.ID, err)
	}
	return out, nil
}

// Beginnings appends the terms that begin with word and are longer, and that memories of an
// open partition have, as its rows say: for where its vocabulary is not there yet. It appends
// none, and gives false, if there are more than limit.
func (v *View) Beginnings(dst []string, p *Partition, word string, limit int) ([]string, bool, error) {
	from := len(dst)
	for f := range index.Field(index.NumFields) {
		n := 0
		if err := index.Vocabulary(v.State.Reader(), p.ID, f, word, func(term []byte, _ uint64) bool {
			if len(term) > len(word) {
				dst = append(dst, string(term))
				n++
			}
			return n <= limit
		}); err != nil {
			return dst[:from], false, err
		}
	}
	slices.Sort(dst[from:])
	if dst = append(dst[:from], slices.Compact(dst[from:])...); len(dst)-from > limit {
		return dst[:from], false, nil
	}
	return dst, true, nil
}

func (s *vocabularies) of(v *projections.View, p projections.Partition, ns events.ID) (*words.Vocabulary, error) {
	erased, err := v.Erased()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	known := s.parts[p.ID]
	s.mu.Unlock()
	if known != nil && (known.generation != v.Generation() || known.erased != erased) {
		known = nil
	}
	next, err := index.NextTerm(v.Reader(), p.ID)
	if err != nil {
		return nil, err
	}
	if known == nil {
		if next > s.inline {
			s.readLater(p.ID, ns)
			return nil, nil
		}
		if known, err = readVocabulary(context.Background(), v, p, ns); err != nil {
			return nil, err
		}
		s.keep(v, p.ID, known)
	}
	now, err := known.follow(v, p, next)
	if err != nil || now == known {
		return now.whole, err
	}
	if built, fresh := now.whole.Len(); fresh > max(minNewer, built/8) {
		if next > s.inline {
			s.readLater(p.ID, ns)
		} else if now, err = readVocabulary(context.Background(), v, p, ns); err != nil {
			return nil, err
		}
	}
	s.keep(v, p.ID, now)
	return now.whole, nil
}

// minNewer is how many terms may be beside a transducer in any case.
const minNewer = 4096

// keep takes a vocabulary over, unless its view may hold what left since, or another
// search knows more.
func (s *vocabularies) keep(v *projections.View, partition uint32, now *vocabulary) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || v.Cursor().Seq < s.least || now.generation != s.state.Generation() {
		return
	}
	known := s.parts[partition]
	if known == nil || known.generation != now.generation || known.erased < now.erased || known.from < now.from ||
		known.erased == now.erased && known.from == now.from && known.next <= now.next && known.nextDoc <= now.nextDoc {
		s.parts[partition] = now
	}
}

// readLater reads a partition's vocabulary in the background, once at a time.
func (s *vocabularies) readLater(partition uint32, ns events.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.reads[partition] {
		return
	}
	s.reads[partition] = true
	s.wg.Go(func() {
		s.turn.Lock()
		defer s.turn.Unlock()
		// What could not be read is read again when it is next asked for.
		_ = s.read(partition, ns)
		s.mu.Lock()
		delete(s.reads, partition)
		s.mu.Unlock()
	})
}

func (s *vocabularies) read(partition uint32, ns events.ID) error {
	if s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	v := s.state.View()
	defer func() { _ = v.Close() }()
	parts, err := v.Partitions(ns)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if p.ID == partition {
			now, err := readVocabulary(s.ctx, v, p, ns)
			if err != nil {
				return err
			}
			s.keep(v, partition, now)
		}
	}
	return nil
}

// readVocabulary reads all terms of a partition.
func readVocabulary(ctx context.Context, v *projections.View, p projections.Partition, ns events.ID) (*vocabulary, error) {
	erased, err := v.Erased()
	if err != nil {
		return nil, err
	}
	next, err := index.NextTerm(v.Reader(), p.ID)
	if err != nil {
		return nil, err
	}
	var all []string
	err = index.Terms(v.Reader(), p.ID, func(term []byte) error {
		all = append(all, string(term))
		if len(all)%checkEvery == 0 {
			return ctx.Err()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	built, err := words.Build(all)
	if err != nil {
		return nil, err
	}
	out := &vocabulary{ns: ns, generation: v.Generation(), erased: erased, built: built, from: next, next: next}
	return out.follow(v, p, next)
}

// follow brings a vocabulary up to a view: the same if there is nothing new.
func (k *vocabulary) follow(v *projections.View, p projections.Partition, next uint32) (*vocabulary, error) {
	if k.whole != nil && k.next >= next && k.nextDoc >= p.NextDoc {
		return k, nil
	}
	now := *k
	var fresh []string
	add := func(term string) { fresh = append(fresh, strings.Clone(term)) }
	if k.next < next {
		now.next = next
		if err := index.NewTerms(v.Reader(), p.ID, k.next, add); err != nil {
			return nil, err
		}
	}
	// What left the tail since has got ids.
	if err := index.TailTerms(v.Reader(), p.ID, k.nextDoc, func(term []byte) { fresh = append(fresh, string(term)) }); err != nil {
		return nil, err
	}
	if now.whole == nil {
		now.whole = k.built
	}
	now.nextDoc, now.whole = max(p.NextDoc, k.nextDoc), now.whole.With(fresh)
	return &now, nil
}
