package query

import (
	"context"
	"errors"
	"math"

	"mneme/internal/events"
	"mneme/internal/query/rank"
	"mneme/internal/query/views"
	"mneme/internal/text"
	"mneme/memory"
)

// open opens the best candidates at or above the floor, and no others, until the limit is
// reached. Once the texts fill the answer, a hit has its snippet in place of its text.
func (s *search) open(ctx context.Context) ([]memory.Hit, error) {
	if err := s.preferNewer(); err != nil {
		return nil, err
	}
	out := make([]memory.Hit, 0, min(s.limit, len(s.ranking.Candidates())))
	size := 0
	for f, err := range s.order.all {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
		if f.c.Score < s.floor(s.places[f.c.Partition].in) {
			if s.refused = max(s.refused, f.c.Score); f.c.Score < s.lowestFloor() {
				break
			}
			continue
		}
		hit, err := s.hit(f)
		if errors.Is(err, views.ErrErased) {
			continue
		}
		if err != nil {
			return nil, err
		}
		s.foundNear(f.c)
		if whole := jsonBytes(hit.Text); size+whole <= maxAnswer {
			size += whole
		} else {
			hit.Text, hit.Truncated = hit.Snippet, true
		}
		if out = append(out, hit); len(out) == s.limit {
			break
		}
	}
	return out, nil
}

// floor is the least score of a result of a namespace.
func (s *search) floor(n *searched) float64 {
	switch {
	case s.req.All:
		return 0
	case s.req.MinScore != nil:
		return *s.req.MinScore
	}
	return n.view.Settings.MinScore
}

// lowestFloor is the least score of any result.
func (s *search) lowestFloor() float64 {
	lowest := math.Inf(1)
	for i := range s.namespaces {
		lowest = min(lowest, s.floor(&s.namespaces[i]))
	}
	return lowest
}

// hit opens one candidate.
func (s *search) hit(f foundDoc) (memory.Hit, error) {
	c, d := f.c, &f.doc
	p := &s.places[c.Partition]
	view := p.in.view
	content := s.order.take(c)
	if content == nil {
		var err error
		if content, err = view.Content(d.At); err != nil {
			return memory.Hit{}, err
		}
	}
	id := d.Record.String()
	h := memory.Hit{
		ID: id, RecordID: id, URI: p.in.uri(d.Record, content), Kind: d.Kind.Public(), Agent: d.Agent,
		Tags: content.Tags, OccurredAt: timeOf(d.OccurredAt), CreatedAt: timeOf(d.SealedAt), Metadata: content.Metadata,
		Conversation: content.Conversation, Version: int(d.Version), Score: c.Score, VectorScore: c.VectorScore(), TextScore: c.TextScore(),
		Position: view.Positions.Of(d.At), Scope: p.Scope.Public(), MatchedBy: c.MatchedBy(),
	}
	h.Text, h.Truncated = s.req.Text(content.Text)
	if s.named {
		h.Namespace = view.Capability.Namespace()
	}
	if h.Tags == nil {
		h.Tags = []string{}
	}
	h.Snippet, h.StartLine, h.EndLine = s.snippet(content, c)
	if s.req.Explain {
		h.Explain = s.ranking.Explain(c)
		m := s.moved.of(c)
		h.Explain.NewerThan, h.Explain.OlderThan = m.passed, m.passedBy
	}
	return h, nil
}

// snippet cuts the piece to show and counts its lines in the whole text. Where the text has
// words of the query it is the piece around them, from anywhere in it; what vectors alone
// found is shown by its best chunk. Where the search's budget is spent, it is the beginning.
func (s *search) snippet(content *events.Content, c *rank.Candidate) (shown string, startLine, endLine int) {
	from, piece, terms := 0, content.Text, s.plan.ShownTerms()
	if len(piece) > memory.MaxSnippetRunes {
		chunk := c.Chunk
		if c.HasWords() {
			chunk = -1
		}
		switch {
		case !s.left.forMore():
			chunk, terms = -1, nil
		case chunk >= 0 || len(terms) > 0:
			s.left.open(piece)
		}
		if chunk >= 0 {
			if chunks := text.Chunks(piece, text.DefaultChunkTokens, text.DefaultChunkOverlap); chunk < len(chunks) && len(chunks) > 1 {
				from, piece = chunks[chunk].Start, chunks[chunk].Text
			}
		}
	}
	var start, end int
	if len(piece) == len(content.Text) && len(piece) > memory.MaxSnippetRunes && len(terms) > 0 {
		shown, start, end = s.ranking.Analysis(piece).Snippet(terms, memory.MaxSnippetRunes)
	} else {
		shown, start, end = text.Snippet(piece, terms, memory.MaxSnippetRunes)
	}
	startLine, endLine = text.Lines(content.Text, from+start, from+end)
	return shown, startLine, endLine
}
