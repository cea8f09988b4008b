package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"mneme/internal/derive"
	"mneme/internal/embed"
	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/settings"
	"mneme/internal/text"
	"mneme/memory"
)

const (
	batchVersions = 64        // versions embedded and written together
	batchBytes    = 256 << 10 // … but no further one once they have so much text
)

// batch is what is embedded and written together.
type batch struct {
	versions []pendingText
	bytes    int               // of their text
	at       map[uint32]uint32 // where to go on behind it, by partition
	end      bool              // nothing behind it lacks vectors
}

func (b *batch) full() bool { return len(b.versions) == batchVersions || b.bytes >= batchBytes }

// pendingText is a record version with the texts to embed.
type pendingText struct {
	doc    projections.PendingDoc
	header events.Header
	agent  string // who captured it
	text   string
	chunks []string
}

// fill gives the next versions without vectors theirs and reports how many it
// took, and whether it has seen the last one.
func (s *spaceWork) fill(ctx context.Context, j *job) (n int, end bool, err error) {
	began := time.Now()
	b, err := s.collect(j)
	if err != nil {
		return 0, false, err
	}
	if len(b.versions) > 0 {
		drafts, err := s.embed(ctx, j.space(), b.versions)
		// What was embedded before an error is not thrown away.
		if err = errors.Join(err, s.write(ctx, j, b.versions, drafts)); err != nil {
			return 0, false, err
		}
	}
	j.at = b.at
	s.measure(j, began, len(b.versions))
	return len(b.versions), b.end, nil
}

// measure keeps a moving average of versions a second, rests included.
func (s *spaceWork) measure(j *job, began time.Time, n int) {
	since := cmp.Or(j.last, began)
	j.last = time.Now()
	took := j.last.Sub(since).Seconds()
	if took <= 0 || n == 0 {
		return
	}
	s.backfill.mu.Lock()
	defer s.backfill.mu.Unlock()
	const weight = 0.2
	now := float64(n) / took
	if j.status.Rate == 0 {
		j.status.Rate = now
	}
	j.status.Rate += weight * (now - j.status.Rate)
}

// collect opens the next versions that lack vectors: in the current space those
// that are noted as pending, in one that is being built all that have none.
func (s *spaceWork) collect(j *job) (b *batch, err error) {
	v := s.writer.opt.State.View()
	defer func() { err = errors.Join(err, v.Close()) }()
	b = &batch{at: maps.Clone(j.at)}
	if !s.building {
		docs, err := v.Pending(j.ns, s.key, batchVersions+len(j.unembeddable))
		if err == nil {
			_, err = s.take(v, j, b, docs)
		}
		b.end = !b.full()
		return b, err
	}
	parts, err := v.Partitions(j.ns)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		for done := false; !done; {
			if b.full() {
				return b, nil
			}
			docs, next, last, err := v.Lacking(p, s.key, b.at[p.ID], batchVersions-len(b.versions))
			if err != nil {
				return nil, err
			}
			n, err := s.take(v, j, b, docs)
			if err != nil {
				return nil, err
			}
			if b.at[p.ID], done = next, last; n < len(docs) {
				b.at[p.ID], done = docs[n].Doc, false
			}
		}
	}
	b.end = true
	return b, nil
}

// take opens versions until the batch is full, and reports how many of them it has
// seen to.
func (s *spaceWork) take(v *projections.View, j *job, b *batch, docs []projections.PendingDoc) (n int, err error) {
	for i, doc := range docs {
		if b.full() {
			return i, nil
		}
		if j.unembeddable[doc] {
			continue
		}
		p, err := s.open(v, j, doc)
		if err != nil {
			return i, err
		}
		b.versions, b.bytes = append(b.versions, p), b.bytes+len(p.text)
	}
	return len(docs), nil
}

// open opens a version. One that was erased has no chunks.
func (s *spaceWork) open(v *projections.View, j *job, doc projections.PendingDoc) (pendingText, error) {
	p := pendingText{doc: doc}
	version, ok, err := v.Doc(doc.Partition, doc.Doc)
	if err != nil || !ok {
		return p, err
	}
	part, _ := v.PartitionByID(doc.Partition)
	env, _, err := v.Envelope(version.At)
	if err != nil {
		return p, err
	}
	key, err := s.writer.opt.Keys.KeyByID(env.Key)
	if settings.IsErased(err) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	c, err := derive.OpenContent(key, &env)
	if err != nil {
		return p, err
	}
	agent := part.Agent
	if part.Scope != events.ScopeAgent {
		agent = version.Agent
	}
	p.header = events.Header{Type: events.TypeVectorsAttached, Scope: part.Scope, Event: events.CausedID("vectors "+j.space().ID(), env.Event),
		Namespace: j.ns, Agent: agent, Target: version.Record, BaseVersion: version.Version, Key: env.Key}
	p.agent, p.text = env.Agent, c.Text
	for _, ch := range text.Chunks(c.Text, text.DefaultChunkTokens, text.DefaultChunkOverlap) {
		p.chunks = append(p.chunks, ch.Text)
	}
	return p, nil
}

// embed makes the events that give versions their vectors, with as few requests as
// can be. A nil draft is a version that has none in the space. With an error come
// the drafts of the versions before it.
func (s *spaceWork) embed(ctx context.Context, space embed.Space, versions []pendingText) ([]*draft, error) {
	e, err := s.backfill.source.For(ctx, space)
	if err != nil {
		return nil, err
	}
	out, err := s.embedTogether(ctx, e, space, versions)
	if !errors.Is(err, embed.ErrBadInput) {
		return out, err
	}
	for i := range versions {
		one, err := s.embedTogether(ctx, e, space, versions[i:i+1])
		if errors.Is(err, embed.ErrBadInput) {
			one, err = []*draft{nil}, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, one...)
	}
	return out, nil
}

// embedTogether is embed with one request. It is embed.ErrBadInput, and gives no
// draft, that one of the texts cannot be embedded.
func (s *spaceWork) embedTogether(ctx context.Context, e embed.Embedder, space embed.Space, versions []pendingText) (out []*draft, err error) {
	var chunks []string
	for _, p := range versions {
		chunks = append(chunks, p.chunks...)
	}
	var vectors [][]float32
	if _, derived := embed.Builtin(space); !derived {
		if vectors, err = e.Embed(ctx, embed.Document, chunks); err != nil {
			return nil, err
		}
		if len(vectors) != len(chunks) {
			return nil, fmt.Errorf("%s gave %d vectors for %d texts: %w", space, len(vectors), len(chunks), embed.ErrBadAnswer)
		}
	}
	for _, p := range versions {
		made := events.Vectors{Space: space.ID()}
		var derived bool
		if made.Small, derived = derive.BuiltinVectors(space, p.agent, p.text); !derived {
			n := len(p.chunks)
			made.Chunks, vectors = vectors[:n:n], vectors[n:]
		}
		d, err := s.draft(p, made)
		if err != nil {
			return out, err
		}
		out = append(out, d)
	}
	return out, nil
}

// draft makes the event that gives a version its vectors; nil for a version without
// text, or one that was erased.
func (s *spaceWork) draft(p pendingText, made events.Vectors) (*draft, error) {
	if len(p.chunks) == 0 {
		return nil, nil
	}
	key, err := s.writer.opt.Keys.KeyByID(p.header.Key)
	if settings.IsErased(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d := newDraft(p.header)
	d.key, d.payload = key, made.Encode()
	d.size = 400 + len(d.payload)
	return d, nil
}

// write writes the events and waits for them.
func (s *spaceWork) write(ctx context.Context, j *job, versions []pendingText, all []*draft) error {
	var docs []projections.PendingDoc
	var drafts []*draft
	for i, d := range all {
		if d == nil {
			j.unembeddable[versions[i].doc] = true
			continue
		}
		docs, drafts = append(docs, versions[i].doc), append(drafts, d)
	}
	if len(drafts) == 0 {
		return nil
	}
	if err := s.writer.queue.push(j.ns, drafts); err != nil {
		return err
	}
	for i, a := range answers(ctx, s.writer, memory.WaitApplied, drafts...) {
		if a.err != nil {
			return a.err
		}
		// Where it was revised or forgotten meanwhile it is not pending any more.
		// What is pending all the same is not tried for ever.
		if o := a.result.Outcome; o == projections.OutcomeQuarantined || o != projections.OutcomeApplied && !s.building {
			j.unembeddable[docs[i]] = true
		}
	}
	return nil
}
