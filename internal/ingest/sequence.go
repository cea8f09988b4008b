package ingest

import (
	"errors"
	"log/slog"

	"mneme/internal/derive"
	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/settings"
)

// frame is a set of decided and sealed drafts on its way into the log.
type frame struct {
	drafts   []*draft // nil for a control event
	encoded  [][]byte
	contents []*events.Content
	derived  []*projections.Contribution // nil until it was derived
	done     bool                        // derived is there
}

// sequencer takes drafts in turn, answers those that are duplicates or
// conflicts, and seals the others into frames. One goroutine drives it.
type sequencer struct {
	shard     uint16
	state     *projections.State
	directory *projections.State // of the first shard; nil = state holds it
	keys      *keyring.Keyring
	queue     *queue
	flight    *inFlight
	refusals  *refusals
	times     *times
	counters  *Counters
	log       *slog.Logger
	maxBytes  int

	waiting []*draft // taken; the first depends on what is in flight
}

// ready reports whether next has something to do.
func (s *sequencer) ready() bool {
	if len(s.waiting) > 0 {
		return s.flight.count() == 0
	}
	return s.queue.available()
}

// next decides what comes next and returns a frame of what is to be written, or
// nil if nothing is.
func (s *sequencer) next() *frame {
	if len(s.waiting) == 0 {
		if s.waiting = s.queue.tryTake(s.maxBytes, maxFrameItems); s.waiting == nil {
			return nil
		}
	}
	n := s.flight.independent(s.waiting)
	if n == 0 {
		return nil // until nothing is in flight
	}
	drafts := s.waiting[:n]
	if s.waiting = s.waiting[n:]; len(s.waiting) == 0 {
		s.waiting = nil
	}
	f := s.sequence(drafts)
	if s.waiting == nil {
		s.queue.decided()
	}
	return f
}

// giveBack puts what was taken or decided, and is not in the log, into its
// place in the queue again. In this order: who waits for what is in flight finds
// it in the queue.
func (s *sequencer) giveBack(f *frame) {
	if s.waiting != nil {
		s.queue.giveBack(s.waiting)
		s.waiting = nil
		s.queue.decided()
	}
	if f != nil {
		s.queue.giveBack(f.drafts)
		s.flight.end(f.drafts)
	}
}

// drop refuses everything that waits.
func (s *sequencer) drop(err error) {
	s.giveBack(nil)
	finishAll(s.queue.drop(), err)
}

func (s *sequencer) sequence(drafts []*draft) *frame {
	if err := s.refusals.now(); err != nil {
		finishAll(drafts, err)
		return nil
	}
	v := s.state.View()
	used := v.UsedKeys()
	known := namespaces{view: v, living: map[events.ID]bool{}}
	if s.directory != nil {
		known.directory = s.directory.View()
	}
	fresh := make([]*draft, 0, len(drafts))
	for _, d := range drafts {
		res, decided, err := s.decide(v, used, &known, d)
		switch {
		case err != nil:
			d.decided(projections.EventResult{}, err)
		case decided:
			s.counters.count(res.Outcome)
			d.decided(res, nil)
		default:
			fresh = append(fresh, d)
		}
	}
	at, cursor := known.directoryAt(), v.Cursor()
	if err := errors.Join(used.Close(), known.close(), v.Close()); err != nil {
		s.log.Error("view could not be closed", "err", err)
	}
	if len(fresh) == 0 {
		return nil
	}
	for _, d := range fresh {
		d.header.Directory = at
	}
	f := s.seal(fresh)
	if err := above(f, cursor.FeatureLevel()); err != nil {
		finishAll(fresh, err)
		return nil
	}
	s.flight.begin(f.drafts)
	return f
}

// namespaces are the namespaces that may be written to, as one view of the state and one of
// the directory see them.
type namespaces struct {
	view      *projections.View
	directory *projections.View // nil = the view has it
	living    map[events.ID]bool
}

// lives reports whether a namespace lives here. Its end needs no directory, which has
// told of it before.
func (f *namespaces) lives(h *events.Header) bool {
	if f.living[h.Namespace] {
		return true
	}
	ns, ok := f.view.NamespaceByID(h.Namespace)
	if !ok || ns.Deleted {
		return false
	}
	if h.Type == events.TypeNamespaceDeleted {
		return true
	}
	if f.directory != nil {
		e, ok := f.directory.NamespaceByID(h.Namespace)
		if !ok || e.Deleted {
			return false
		}
	}
	f.living[h.Namespace] = ns.Here(f.view)
	return f.living[h.Namespace]
}

// directoryAt is where the directory stood; zero where it is in the state itself.
func (f *namespaces) directoryAt() events.Position {
	if f.directory == nil {
		return events.Position{}
	}
	c := f.directory.Cursor()
	at := c.Position()
	at.Shard = 0
	return at
}

func (f *namespaces) close() error {
	if f.directory == nil {
		return nil
	}
	return f.directory.Close()
}

func finishAll(drafts []*draft, err error) {
	for _, d := range drafts {
		d.finish(projections.EventResult{}, err)
	}
}

// decide answers from state what need not be appended. The fold decides again. What it
// says is told once the leadership was confirmed, see answers.
func (s *sequencer) decide(v *projections.View, used *projections.UsedKeys, known *namespaces, d *draft) (projections.EventResult, bool, error) {
	h := &d.header
	if h.Type == events.TypeNamespaceCreated || h.Type == events.TypeNamespacePlaced {
		_, taken := v.Namespace(h.Name)
		return projections.EventResult{Outcome: projections.OutcomeConflict}, taken, nil
	}
	if h.Type == events.TypeLevelRaised {
		return decideLevel(v, d)
	}
	if !known.lives(h) {
		return projections.EventResult{Outcome: projections.OutcomeRejected}, true, nil
	}
	if !h.ClientID.IsZero() {
		spent, ok, err := used.Find(h.Namespace, h.ClientID, h.Agent)
		if err != nil {
			return projections.EventResult{}, false, err
		}
		if ok {
			res, err := s.usedResult(v, spent, d)
			return res, true, err
		}
	}
	switch h.Type {
	case events.TypeCaptured:
		return s.decideURI(v, d)
	case events.TypeGraphChanged:
		return decideGraph(v, d)
	case events.TypeRead:
		return projections.EventResult{}, false, below(v, events.ReadLevel)
	case events.TypeRevised, events.TypeForgotten, events.TypeVectorsAttached:
		return decideTarget(v, d)
	}
	return projections.EventResult{}, false, nil
}

func (s *sequencer) decideURI(v *projections.View, d *draft) (projections.EventResult, bool, error) {
	h, path := &d.header, d.uriPath()
	if path == "" {
		return projections.EventResult{}, false, nil
	}
	p, ok := v.Partition(h.Namespace, h.Scope, h.Agent)
	if !ok {
		return projections.EventResult{}, false, nil
	}
	owner, taken, err := v.URI(p.ID, path)
	return projections.EventResult{Outcome: projections.OutcomeConflict, Record: owner}, taken, err
}

func decideTarget(v *projections.View, d *draft) (projections.EventResult, bool, error) {
	h := &d.header
	head, ok, err := v.Head(h.Namespace, h.Target)
	if err != nil {
		return projections.EventResult{}, false, err
	}
	if !ok || !head.Living {
		return projections.EventResult{Outcome: projections.OutcomeRejected, Record: h.Target}, true, nil
	}
	stale := projections.EventResult{Outcome: projections.OutcomeConflict, Record: h.Target, Version: head.Versions}
	if (h.Type != events.TypeForgotten || d.exact) && head.Versions != h.BaseVersion {
		return stale, true, nil
	}
	if path := d.uriPath(); path != "" && path != head.URI {
		_, taken, err := v.URI(head.Partition, path)
		return stale, taken, err
	}
	return projections.EventResult{}, false, nil
}

// seal stamps times in order and seals in parallel.
func (s *sequencer) seal(drafts []*draft) *frame {
	f := &frame{drafts: drafts, encoded: make([][]byte, len(drafts)), contents: make([]*events.Content, len(drafts))}
	for _, d := range drafts {
		d.header.SealedAt = s.times.stamp()
		if d.header.OccurredAt == 0 && (d.content == nil || !d.content.OccurredSet) { // a time that was given may be 0, too
			d.header.OccurredAt = d.header.SealedAt
		}
	}
	_ = derive.Parallel(len(drafts), func(i int) error {
		d := drafts[i]
		f.contents[i] = d.content
		env := events.Envelope{Header: d.header}
		if d.key != nil {
			env.Payload = d.key.Seal(nil, settings.Identity(d.header.Event), d.header.AppendHeader(nil), d.plaintext())
		} else {
			env.Payload = d.payload // in clear
		}
		f.encoded[i] = env.Encode()
		return nil
	})
	return f
}
