package query

import (
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"mneme/internal/embed"
	"mneme/memory"
)

// embedDeadline is how long a search waits for a model outside this process.
const embedDeadline = 3 * time.Second

// planVector gives the plan its query vector. Where that cannot be had, a
// hybrid search answers by text and says so; a vector search fails.
func (r *Reader) planVector(ctx context.Context, p *plan) error {
	if !r.set.HasVectors() {
		if p.mode == memory.ModeVector || len(p.req.Vector) > 0 {
			return memory.Errorf(memory.CodeInvalid, "namespace %q has no embedder, so it has no vectors to search", r.cap.name).
				WithHint("use mode text, or hybrid without a vector")
		}
		p.mode = memory.ModeText
		return nil
	}
	if len(p.req.Vector) > 0 {
		return r.givenVector(p)
	}
	v, err := r.s.embedQuery(ctx, r.set.Space, p.req.Query)
	switch {
	case err == nil:
		p.vector = v
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case p.mode == memory.ModeHybrid:
		if !errors.Is(err, embed.ErrBadInput) {
			r.s.opt.Logger.Warn("search answered by text alone", "namespace", r.cap.name, "err", err)
		}
		p.mode = memory.ModeText
		return nil
	case errors.Is(err, embed.ErrBadInput):
		return memory.Errorf(memory.CodeInvalid, "the query has nothing in it that can be embedded").WithCause(err)
	}
	return memory.Errorf(memory.CodeUnavailable, "the embedder of namespace %q does not answer: %v", r.cap.name, err).
		WithHint("use mode hybrid or text meanwhile").WithCause(err)
}

// givenVector takes the request's own vector.
func (r *Reader) givenVector(p *plan) error {
	if want := r.set.Space.Dimensions; len(p.req.Vector) != want {
		return memory.Errorf(memory.CodeInvalid, "vector has %d dimensions, namespace %q has %d", len(p.req.Vector), r.cap.name, want)
	}
	// The largest component first: squares of very large ones overflow.
	top := 0.0
	for _, x := range p.req.Vector {
		top = max(top, math.Abs(x))
	}
	if top == 0 {
		return memory.Errorf(memory.CodeInvalid, "vector is zero")
	}
	sum := 0.0
	for _, x := range p.req.Vector {
		sum += (x / top) * (x / top)
	}
	length := math.Sqrt(sum)
	p.vector = make([]float32, len(p.req.Vector))
	for i, x := range p.req.Vector {
		p.vector[i] = float32(x / top / length)
	}
	return nil
}

// embedQuery embeds a query in a space. Errors are those of package embed.
func (s *Service) embedQuery(ctx context.Context, space embed.Space, query string) ([]float32, error) {
	if strings.TrimSpace(query) == "" {
		return nil, embed.ErrBadInput
	}
	if embed.IsLocal(space.Provider) {
		return embedLocal(space, query)
	}
	if s.opt.Embedders == nil {
		return nil, embed.ErrUnavailable
	}
	ctx, cancel := context.WithTimeout(ctx, embedDeadline)
	defer cancel()
	e, err := s.opt.Embedders.For(ctx, space)
	if err != nil {
		return nil, err
	}
	out, err := e.Embed(ctx, embed.Query, []string{query})
	if err != nil {
		return nil, err
	}
	if len(out) != 1 || len(out[0]) != space.Dimensions {
		return nil, embed.ErrWrongDimensions
	}
	return out[0], nil
}

func embedLocal(space embed.Space, query string) ([]float32, error) {
	model, ok := embed.Local(space)
	if !ok {
		return nil, embed.ErrWrongDimensions
	}
	v, ok := model.Vector(query)
	if !ok {
		return nil, embed.ErrBadInput
	}
	return v, nil
}
