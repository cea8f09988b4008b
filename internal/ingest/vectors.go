package ingest

import (
	"context"
	"errors"
	"fmt"

	"mneme/internal/derive"
	"mneme/internal/embed"
	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/settings"
	"mneme/internal/text"
	"mneme/memory"
)

// What the attacher and the builder share: opening versions that lack vectors,
// embedding them, writing vectors.attached events.

// pendingText is a record version with the texts to embed.
type pendingText struct {
	doc    projections.PendingDoc
	header events.Header
	agent  string // who captured it
	text   string
	chunks []string
}

// openText opens a version for a space. One that was erased has no chunks.
func (s *Writer) openText(v *projections.View, ns events.ID, space embed.Space, p projections.PendingDoc) (pendingText, error) {
	w := pendingText{doc: p}
	doc, ok, err := v.Doc(p.Partition, p.Doc)
	if err != nil || !ok {
		return w, err
	}
	part, _ := v.PartitionByID(p.Partition)
	env, _, err := v.Envelope(doc.At)
	if err != nil {
		return w, err
	}
	key, err := s.opt.Keys.KeyByID(env.Key)
	if settings.IsErased(err) {
		return w, nil
	}
	if err != nil {
		return w, err
	}
	c, err := derive.OpenContent(key, &env)
	if err != nil {
		return w, err
	}
	agent := part.Agent
	if part.Scope != events.ScopeAgent {
		agent = doc.Agent
	}
	w.header = events.Header{Type: events.TypeVectorsAttached, Scope: part.Scope, Event: events.CausedID("vectors "+space.ID(), env.Event),
		Namespace: ns, Agent: agent, Target: doc.Record, BaseVersion: doc.Version, Key: env.Key}
	w.agent, w.text = env.Agent, c.Text
	for _, ch := range text.Chunks(c.Text, text.DefaultChunkTokens, text.DefaultChunkOverlap) {
		w.chunks = append(w.chunks, ch.Text)
	}
	return w, nil
}

// embedOne makes the event that gives a version its vectors. Errors: those of
// the embedder, embed.ErrBadInput for a version without text among them; that
// its key was erased.
func (s *Writer) embedOne(ctx context.Context, e embed.Embedder, space embed.Space, w pendingText) (*draft, error) {
	if len(w.chunks) == 0 {
		return nil, embed.ErrBadInput
	}
	payload := events.Vectors{Space: space.ID()}
	var local bool
	if payload.Small, local = derive.LocalVectors(space, w.agent, w.text); !local {
		var err error
		if payload.Chunks, err = e.Embed(ctx, embed.Document, w.chunks); err != nil {
			return nil, err
		}
	}
	return s.attachDraft(w, payload)
}

// embedAll is embedOne for several versions with as few requests as can be.
// A nil draft is a version that has no vectors in the space.
func (s *Writer) embedAll(ctx context.Context, e embed.Embedder, space embed.Space, work []pendingText) ([]*draft, error) {
	out := make([]*draft, len(work))
	if !embed.IsLocal(space.Provider) {
		done, err := s.embedTogether(ctx, e, space, work, out)
		if done || err != nil {
			return out, err
		}
	}
	for i, w := range work {
		d, err := s.embedOne(ctx, e, space, w)
		switch {
		case errors.Is(err, embed.ErrBadInput), settings.IsErased(err):
		case err != nil:
			return out, err
		default:
			out[i] = d
		}
	}
	return out, nil
}

// embedTogether asks for all chunks at once. It reports false if one of them is
// bad input, so that each has to be asked for alone.
func (s *Writer) embedTogether(ctx context.Context, e embed.Embedder, space embed.Space, work []pendingText, out []*draft) (bool, error) {
	var chunks []string
	for _, w := range work {
		chunks = append(chunks, w.chunks...)
	}
	vectors, err := e.Embed(ctx, embed.Document, chunks)
	if errors.Is(err, embed.ErrBadInput) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if len(vectors) != len(chunks) {
		return false, fmt.Errorf("%s gave %d vectors for %d texts: %w", space, len(vectors), len(chunks), embed.ErrWrongDimensions)
	}
	for i, w := range work {
		n := len(w.chunks)
		mine := vectors[:n:n]
		vectors = vectors[n:]
		if n == 0 {
			continue
		}
		d, err := s.attachDraft(w, events.Vectors{Space: space.ID(), Chunks: mine})
		if settings.IsErased(err) {
			continue
		}
		if err != nil {
			return false, err
		}
		out[i] = d
	}
	return true, nil
}

func (s *Writer) attachDraft(w pendingText, payload events.Vectors) (*draft, error) {
	key, err := s.opt.Keys.KeyByID(w.header.Key)
	if err != nil {
		return nil, err
	}
	d := newDraft(w.header)
	d.key, d.payload = key, payload.Encode()
	d.size = 400 + len(d.payload)
	return d, nil
}

// attachAll writes events of one namespace, waits for them and says what became
// of each; after an error, of those before it.
func (s *Writer) attachAll(ctx context.Context, ns events.ID, drafts []*draft) ([]projections.EventResult, error) {
	if len(drafts) == 0 {
		return nil, nil
	}
	if err := s.queue.push(ns, drafts); err != nil {
		return nil, err
	}
	results := make([]projections.EventResult, 0, len(drafts))
	for _, d := range drafts {
		if err := d.wait(ctx, memory.WaitApplied); err != nil {
			return results, err
		}
		results = append(results, d.result)
	}
	return results, nil
}
