package query

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/text"
	"mneme/memory"
)

// leastEvidence is what must speak for an answer of a hybrid search: below it
// neither source found anything. A text search gives whatever holds a word of
// the query, or stands beside it; a vector search ranks whatever there is.
const leastEvidence = 1e-6

// hits opens the best candidates, and no others, until the limit is reached.
// Ties are broken by record id, so candidates of one score are looked at
// together.
func (r *Reader) hits(ctx context.Context, sc *scratch) ([]memory.Hit, error) {
	p := sc.plan
	out := make([]memory.Hit, 0, min(p.limit, len(sc.cands)))
	least := map[memory.Mode]float64{memory.ModeHybrid: leastEvidence, memory.ModeText: math.SmallestNonzeroFloat64}[p.mode]
	for from := 0; from < len(sc.cands) && len(out) < p.limit; {
		best := &sc.cands[from]
		if best.score < p.minScore || best.fused < least {
			break
		}
		to := from + 1
		for to < len(sc.cands) && sc.cands[to].fused == best.fused {
			to++
		}
		found, err := r.livingByID(p, sc.cands[from:to])
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			if len(out) == p.limit {
				break
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			hit, err := r.hit(sc, f.c, &f.doc)
			if errors.Is(err, errErased) {
				continue
			}
			if err != nil {
				return nil, err
			}
			out = append(out, hit)
		}
		from = to
	}
	return out, nil
}

type foundDoc struct {
	c   *candidate
	doc projections.Doc
}

// livingByID reads the rows of candidates, drops what is not alive at the
// reader's view, and orders the rest by record id.
func (r *Reader) livingByID(p *plan, cands []candidate) ([]foundDoc, error) {
	out := make([]foundDoc, 0, len(cands))
	for i := range cands {
		c := &cands[i]
		d, ok, err := r.view.Doc(p.parts[c.part].ID, c.doc)
		if err != nil {
			return nil, err
		}
		if ok && d.Living() {
			out = append(out, foundDoc{c, d})
		}
	}
	slices.SortFunc(out, func(a, b foundDoc) int {
		return cmp.Or(slices.Compare(a.doc.Record[:], b.doc.Record[:]), cmp.Compare(a.c.part, b.c.part))
	})
	return out, nil
}

// hit opens one candidate.
func (r *Reader) hit(sc *scratch, c *candidate, d *projections.Doc) (memory.Hit, error) {
	p := sc.plan
	env, _, err := r.view.Envelope(d.At)
	if err != nil {
		return memory.Hit{}, err
	}
	content, err := r.s.openEnvelope(&env)
	if err != nil {
		return memory.Hit{}, err
	}
	h := memory.Hit{
		ID: d.Record.String(), URI: r.uri(d.Record, content), Text: content.Text, Kind: d.Kind.Public(), Agent: d.Agent,
		Tags: content.Tags, OccurredAt: timeOf(d.OccurredAt), CreatedAt: timeOf(d.SealedAt), Metadata: content.Metadata,
		Conversation: content.Conversation, Version: int(d.Version), Score: c.score, VectorScore: c.values[partVector], TextScore: c.values[partText],
		Position: r.position(d.At), Scope: p.parts[c.part].Scope.Public(), MatchedBy: c.matchedBy(),
	}
	if h.Tags == nil {
		h.Tags = []string{}
	}
	h.Snippet, h.StartLine, h.EndLine = snippet(content, c, p.terms)
	if p.req.Explain {
		h.Explain = sc.explain(c)
	}
	return h, nil
}

// matchedBy names what speaks for a candidate: the sources that brought it, and
// what is around it.
func (c *candidate) matchedBy() []string {
	out := make([]string, 0, 4)
	for k, by := range sources {
		in := true
		switch part(k) {
		case partVector:
			in = c.inVector
		case partText:
			in = c.inText
		}
		if in && c.values[k] > 0 {
			out = append(out, by)
		}
	}
	return out
}

// snippet cuts the piece to show from the best chunk, and counts its lines in
// the whole text. Without a chunk it comes from anywhere.
func snippet(content *events.Content, c *candidate, terms []string) (s string, startLine, endLine int) {
	from, piece := 0, content.Text
	if c.chunk >= 0 && len(piece) > memory.MaxSnippetRunes {
		if chunks := text.Chunks(piece, text.DefaultChunkTokens, text.DefaultChunkOverlap); c.chunk < len(chunks) && len(chunks) > 1 {
			from, piece = chunks[c.chunk].Start, chunks[c.chunk].Text
		}
	}
	s, start, end := text.Snippet(piece, terms, memory.MaxSnippetRunes)
	startLine, endLine = text.Lines(content.Text, from+start, from+end)
	return s, startLine, endLine
}
