package ingest

import (
	"context"

	"mneme/internal/derive"
	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/settings"
	"mneme/memory"
)

// frame is a set of decided and sealed drafts on its way into the log.
type frame struct {
	drafts   []*draft
	adopted  uint64 // Shard.adopted when it was decided
	encoded  [][]byte
	contents []*events.Content
}

// decideLoop takes drafts in turn, answers those that are duplicates or
// conflicts, and seals the others into frames.
func (s *Shard) decideLoop(ctx context.Context) {
	defer s.wg.Done()
	defer close(s.frames)
	for {
		drafts := s.queue.take(ctx, s.opt.MaxFrameBytes, maxFrameItems)
		if drafts == nil {
			if ctx.Err() != nil {
				s.fail(s.queue.drop(), memory.Errorf(memory.CodeUnavailable, "the node is shutting down"))
				return
			}
			// What is in flight may yet come back to be decided again.
			if s.drain(ctx) == nil && !s.queue.empty() {
				continue
			}
			return
		}
		for len(drafts) > 0 {
			n := s.independent(drafts)
			if n == 0 {
				// The first one depends on what is in flight.
				if s.drain(ctx) != nil {
					s.fail(drafts, memory.Errorf(memory.CodeUnavailable, "the node is shutting down"))
					break
				}
				continue
			}
			s.sequence(ctx, drafts[:n])
			drafts = drafts[n:]
		}
		s.queue.decided()
	}
}

// independent returns how many drafts from the front share nothing with each
// other or with what is in flight, so that state alone decides on them.
func (s *Shard) independent(drafts []*draft) int {
	seen := map[string]bool{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, d := range drafts {
		for _, k := range d.keysInFlight() {
			if seen[k] || s.inFlight[k] != nil {
				return i
			}
			seen[k] = true
		}
	}
	return len(drafts)
}

func (s *Shard) sequence(ctx context.Context, drafts []*draft) {
	if err := s.refusal(); err != nil {
		s.fail(drafts, err)
		return
	}
	adopted := s.adopted.Load() // before the view
	v := s.opt.State.View()
	fresh := make([]*draft, 0, len(drafts))
	living := map[events.ID]bool{} // namespaces found in this view
	for _, d := range drafts {
		res, decided, err := s.decide(v, living, d)
		switch {
		case err != nil:
			d.finish(projections.EventResult{}, err)
		case decided:
			s.count(res.Outcome)
			d.finish(res, nil)
		default:
			fresh = append(fresh, d)
		}
	}
	if err := v.Close(); err != nil {
		s.opt.Logger.Error("view could not be closed", "err", err)
	}
	if len(fresh) == 0 {
		return
	}
	f := s.seal(fresh)
	f.adopted = adopted
	s.takeOff(f.drafts)
	select {
	case s.frames <- f:
	case <-ctx.Done():
		s.land(f.drafts)
		s.fail(f.drafts, memory.Errorf(memory.CodeUnavailable, "the node is shutting down"))
	}
}

// count notes what admission itself found out.
func (s *Shard) count(o projections.Outcome) {
	switch o {
	case projections.OutcomeDuplicate:
		s.counters.Duplicates.Add(1)
	case projections.OutcomeConflict:
		s.counters.Conflicts.Add(1)
	}
}

// decide answers from state what need not be appended. The fold decides again.
func (s *Shard) decide(v *projections.View, living map[events.ID]bool, d *draft) (projections.EventResult, bool, error) {
	h := &d.header
	if h.Type == events.TypeNamespaceCreated {
		_, taken, err := v.Namespace(h.Name)
		return projections.EventResult{Outcome: projections.OutcomeConflict}, taken, err
	}
	if !living[h.Namespace] {
		ns, ok, err := v.NamespaceByID(h.Namespace)
		if err != nil || !ok || ns.Deleted {
			return projections.EventResult{Outcome: projections.OutcomeRejected}, true, err
		}
		living[h.Namespace] = true
	}
	if !h.ClientID.IsZero() {
		spent, ok, err := v.UsedKey(h.Namespace, h.ClientID, h.Agent)
		if err != nil {
			return projections.EventResult{}, false, err
		}
		if ok {
			res, err := spentResult(v, spent, h.Body)
			return res, true, err
		}
	}
	switch h.Type {
	case events.TypeCaptured:
		return s.decideURI(v, d)
	case events.TypeRevised, events.TypeForgotten, events.TypeVectorsAttached:
		return decideTarget(v, d)
	}
	return projections.EventResult{}, false, nil
}

func (s *Shard) decideURI(v *projections.View, d *draft) (projections.EventResult, bool, error) {
	h, path := &d.header, d.uriPath()
	if path == "" {
		return projections.EventResult{}, false, nil
	}
	p, ok, err := v.Partition(h.Namespace, h.Scope, h.Agent)
	if err != nil || !ok {
		return projections.EventResult{}, false, err
	}
	owner, taken, err := v.URI(p.ID, path)
	return projections.EventResult{Outcome: projections.OutcomeConflict, Record: owner}, taken, err
}

func decideTarget(v *projections.View, d *draft) (projections.EventResult, bool, error) {
	h := &d.header
	head, ok, err := v.Head(h.Target)
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
func (s *Shard) seal(drafts []*draft) *frame {
	f := &frame{drafts: drafts, encoded: make([][]byte, len(drafts)), contents: make([]*events.Content, len(drafts))}
	s.mu.Lock()
	for _, d := range drafts {
		s.sealedAt = max(s.sealedAt+1, s.opt.Now().UnixNano())
		d.header.SealedAt = s.sealedAt
		if d.header.OccurredAt == 0 {
			d.header.OccurredAt = s.sealedAt
		}
	}
	s.mu.Unlock()
	_ = derive.Parallel(len(drafts), func(i int) error {
		d := drafts[i]
		f.contents[i] = d.content
		env := events.Envelope{Header: d.header}
		if d.key != nil {
			env.Payload = d.key.Seal(nil, settings.Identity(d.header.Event), d.header.AppendHeader(nil), d.plaintext())
		}
		f.encoded[i] = env.Encode()
		return nil
	})
	return f
}
